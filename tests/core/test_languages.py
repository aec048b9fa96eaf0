"""Languages: every BCP 47 code is read, the first 81 as always, and everything else is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval.core import (
    CORAL_POOL,
    NO_SPACES,
    RESOURCE_GROUPS,
    base_language,
    is_language,
    iso_639_3,
    language_name,
    language_scripts,
    matching_languages,
    normalize_language,
    same_language,
    suggestion,
)
from mrag_eval.core._languages import CORAL_TIERS
from mrag_eval.metrics import FastTextDetector
from mrag_eval.platform import ConfigError, visible
from tests.core.first_languages import ALIASES, FIRST, SPELLINGS, first_reading, first_tails

# code -> English name, usual script
NEW = {
    "ml": ("Malayalam", "Mlym"), "eu": ("Basque", "Latn"), "ig": ("Igbo", "Latn"), "gl": ("Galician", "Latn"),
    "cy": ("Welsh", "Latn"), "gu": ("Gujarati", "Gujr"), "kn": ("Kannada", "Knda"), "xh": ("Xhosa", "Latn"),
    "qu": ("Quechua", "Latn"), "ku": ("Kurdish", "Latn"), "jv": ("Javanese", "Latn"), "ceb": ("Cebuano", "Latn"),
    "or": ("Odia", "Orya"), "rw": ("Kinyarwanda", "Latn"), "ckb": ("Central Kurdish", "Arab"),
    "ps": ("Pashto", "Arab"), "sd": ("Sindhi", "Arab"), "ga": ("Irish", "Latn"), "bo": ("Tibetan", "Tibt"),
    "yi": ("Yiddish", "Hebr"), "lb": ("Luxembourgish", "Latn"), "mt": ("Maltese", "Latn"), "eo": ("Esperanto", "Latn"),
    "mi": ("Māori", "Latn"), "tt": ("Tatar", "Cyrl"), "tk": ("Turkmen", "Latn"), "ug": ("Uyghur", "Arab"),
    "ny": ("Nyanja", "Latn"), "st": ("Southern Sotho", "Latn"), "tn": ("Tswana", "Latn"), "wo": ("Wolof", "Latn"),
    "ln": ("Lingala", "Latn"), "om": ("Oromo", "Latn"), "gn": ("Guarani", "Latn"), "af": ("Afrikaans", "Latn"),
}  # fmt: skip


def test_the_first_81_languages_are_read_as_ever() -> None:
    """Check codes, aliases and names in every spelling, with and without scripts and regions."""
    spellings = [
        form
        for word in SPELLINGS
        for key in (word, *(f"{word}-{tail}" for tail in first_tails()))
        for form in (key, key.upper(), key.title(), key.replace("-", "_"), f"__label__{key}", f" {key}\n")
    ]
    expected = {form: code for form in spellings if (code := first_reading(form)) is not None}
    assert len(expected) > 10_000
    assert {
        form: (code, normalize_language(form)) for form, code in expected.items() if normalize_language(form) != code
    } == {}


def test_the_first_81_languages_have_their_names_and_scripts() -> None:
    assert {code: (language_name(code), language_scripts(code)) for code in FIRST} == FIRST
    assert set(FIRST) >= {code for codes in (*CORAL_TIERS.values(), *RESOURCE_GROUPS.values()) for code in codes}
    assert {code for code in FIRST if base_language(code) in NO_SPACES} == {
        *("zh", "zh-Hans", "zh-Hant", "yue", "ja", "th", "km", "lo", "my", "dz")
    }
    assert sorted(CORAL_POOL) == sorted(code for codes in CORAL_TIERS.values() for code in codes)


def test_a_detectors_labels_keep_their_languages() -> None:
    labels = FastTextDetector().supported
    assert len(labels) > 170
    # Emilian-Romagnol now has two codes, and this is neither
    assert {label for label in labels if not is_language(label)} == {"eml"}
    for label in labels - {"eml"}:
        # of its own today
        if label == "nn":
            continue
        assert base_language(label) == (first_reading(label) or label).partition("-")[0], label


@pytest.mark.parametrize("code", NEW)
def test_languages_outside_the_first_81(code: str) -> None:
    english, script = NEW[code]
    assert (normalize_language(code), language_name(code), language_scripts(code)[0]) == (code, english, script)
    assert (
        normalize_language(english)
        == normalize_language(english.upper())
        == normalize_language(f"{code.upper()}_{script}")
        == code
    )
    assert same_language(code, f"{code}-{script}-ZZ")
    assert matching_languages(f"__label__{code}", ["en", code]) == {code}


@pytest.mark.parametrize(
    ("spelling", "code"),
    [
        # the old code for YIDDISH was in no table
        ("ji", "yi"),
        # tags with more than two parts, numeric regions, variants, extensions
        ("zh-Hant-TW", "zh-Hant"),
        ("zh_hans_cn", "zh-Hans"),
        ("zh-cmn-Hans", "zh-Hans"),
        ("zh-yue-HK", "yue"),
        ("zh-min-nan", "nan"),
        ("es-419", "es"),
        ("de-CH-1996", "de"),
        ("en-x-simple", "en"),
        ("de-u-co-phonebk", "de"),
        # a region that mBART invented
        ("gu_IN", "gu"),
        ("ml_XX", "ml"),
        # one FLORES label of each kind: an own code, the main language of a macrolanguage, a variety
        ("tam_Taml", "ta"),
        ("srp_Cyrl", "sr"),
        ("kmr_Latn", "ku"),
        ("ory_Orya", "or"),
        ("ydd_Hebr", "yi"),
        ("gaz_Latn", "om"),
        ("ckb_Arab", "ckb"),
        ("twi_Latn", "tw"),
        # varieties of Arabic, including unlisted ones; Maltese is not one of them
        ("arq", "ar"),
        ("apd_Arab", "ar"),
        ("afb", "ar"),
        ("mlt", "mt"),
        # Sinitic languages stay distinct, as do those whose macrolanguage has three letters
        ("wuu", "wuu"),
        ("hak_Hant", "hak"),
        ("bcl", "bcl"),
        ("pnb", "pnb"),
        # detectors confuse Bosnian, Croatian and Serbian
        ("sh", "sh"),
        ("hbs_Latn", "sh"),
        # bibliographic codes, and deprecated ones
        ("ger", "de"),
        ("wel", "cy"),
        ("jw", "jv"),
        # one Norwegian is not the other, nor is Dari Persian, which CLDR writes as its region
        ("nn", "nn"),
        ("nno_Latn", "nn"),
        ("Norwegian", "nb"),
        ("nor", "nb"),
        ("prs", "prs"),
        ("fa_AF", "prs"),
        ("prs_Arab", "prs"),
        ("fa-IR", "fa"),
        # a script is kept where it is not the usual one, and only there
        ("hi-Latn", "hi-Latn"),
        ("hin_Latn", "hi-Latn"),
        ("hi-Deva-IN", "hi"),
        ("sr-Latn-RS", "sr-Latn"),
        ("arabic-Latn", "ar-Latn"),
        ("ks_Deva", "ks-Deva"),
        ("jpn_Jpan", "ja"),
        ("kor_Kore", "ko"),
        ("cmn_Hani", "zh"),
        ("yue_Hant", "yue"),
        ("sh-Cyrl", "sh"),
        ("Hindi in Latin script", "hi-Latn"),
        # names with blanks, marks and brackets
        ("Southern Sotho", "st"),
        ("serbo-croatian", "sh"),
        ("Volapük", "vo"),
        ("chinese simplified", "zh-Hans"),
        ("basque_ES", "eu"),
    ],
)
def test_spellings(spelling: str, code: str) -> None:
    assert normalize_language(spelling) == code
    assert normalize_language(code) == code


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("jp", "did you mean ja (Japanese)?"),
        ("CZ", "did you mean cs (Czech)?"),
        ("malayalm", "did you mean ml (Malayalam)?"),
        ("Portugese", "did you mean pt (Portuguese)?"),
        ("en-Foob", "did you mean en (English)?"),
        ("zh-classical", "did you mean zh (Chinese)?"),
        ("xx", "use a BCP 47 code"),
        ("dothraki", "use a BCP 47 code"),
        ("false", "use a BCP 47 code"),
        ("", "use a BCP 47 code"),
        ("-", "use a BCP 47 code"),
        # ISO 639 codes that do not denote a language
        ("und", "use a BCP 47 code"),
        ("mul", "use a BCP 47 code"),
        ("mis", "use a BCP 47 code"),
        ("zxx", "use a BCP 47 code"),
        ("qaa", "use a BCP 47 code"),
        ("x-mine", "use a BCP 47 code"),
        ("root", "use a BCP 47 code"),
        ("eml", "use a BCP 47 code"),
        ("unknown language", "use a BCP 47 code"),
        # strings that look like tags but are not
        ("001", "use a BCP 47 code"),
        ("Latn", "use a BCP 47 code"),
        ("en-", "use a BCP 47 code"),
        ("\ud800", "use a BCP 47 code"),
    ],
)
def test_an_unknown_language_is_refused_with_a_suggestion(wrong: str, meant: str) -> None:
    assert not is_language(wrong)
    with pytest.raises(ConfigError) as caught:
        normalize_language(wrong)
    assert caught.value.message == f"unknown language '{visible(wrong)}'"
    assert "\n" not in str(caught.value.next_step)
    assert meant in str(caught.value.next_step)
    assert caught.value.next_step == suggestion(wrong)


@settings(max_examples=100)
@given(st.text(max_size=12) | st.from_regex(r"[a-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,3}", fullmatch=True))
def test_any_text_is_a_language_or_refused(text: str) -> None:
    if not is_language(text):
        assert suggestion(text)
        return
    code = normalize_language(text)
    assert normalize_language(code) == code
    assert code.startswith(base_language(code))
    assert language_name(code)
    assert all(len(script) == 4 for script in language_scripts(code))


def test_a_country_without_a_language_suggests_none() -> None:
    with pytest.raises(ConfigError, match="unknown language 'AQ'") as caught:
        normalize_language("AQ")
    assert caught.value.next_step == "use a BCP 47 code, such as en, zh-Hans or ml"


def test_a_language_without_a_known_script() -> None:
    assert (language_name("quy"), language_scripts("quy")) == ("Ayacucho Quechua", ())


def test_aliases_name_languages() -> None:
    assert {language_name(code) for code in ALIASES} == {language_name(code) for code in ALIASES.values()}


def test_the_tables_of_languages_are_loaded_on_first_use() -> None:
    code = (
        "import sys, mrag_eval, mrag_eval.core._languages, mrag_eval.config._retrieval, mrag_eval.cli;"
        "loaded = {'langcodes', 'language_data', 'marisa_trie'} & set(sys.modules);"
        "assert not loaded, loaded;"
        "mrag_eval.core._languages.normalize_language('ko');"
        "assert 'langcodes' in sys.modules and 'language_data' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_kept_script_is_named_and_belongs_to_its_language() -> None:
    assert [language_name(code) for code in ("hi-Latn", "sr_Latn", "zh-Hant", "nn", "nb", "prs")] == [
        *("Hindi in Latin script", "Serbian in Latin script", "Chinese (traditional)"),
        *("Norwegian Nynorsk", "Norwegian Bokmål", "Dari"),
    ]
    assert [language_scripts(code) for code in ("hi-Latn", "sr-Latn", "zh-Hant")] == [("Latn",), ("Latn",), ("Hant",)]
    assert [iso_639_3(code) for code in ("hi-Latn", "hi", "nn", "prs")] == [
        "hin-Latn",
        "hin-Deva",
        "nno-Latn",
        "prs-Arab",
    ]
    assert same_language("hi-Latn", "hi")
    assert not same_language("nn", "nb")
    # a shard of the language serves its scripts; one script does not serve another
    assert matching_languages("hi-Latn", ["hi", "en"]) == {"hi"}
    assert matching_languages("sr", ["sr-Latn"]) == {"sr-Latn"}
    assert matching_languages("sr-Latn", ["sr-Cyrl-X", "hr"]) == set()


@pytest.mark.parametrize("name", ["Hindi in Klingon script", "Dothraki in Latin script", " in Latin script"])
def test_a_script_or_language_that_is_unknown_is_refused(name: str) -> None:
    assert not is_language(name)
