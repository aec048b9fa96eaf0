"""Languages: one code each (BCP 47), their names, scripts and resource tiers.

Every benchmark has codes of its own (``zhs``, ``zh_cn``, ``iw``, ``arabic``, ``kor_Hang``); :func:`normalize` turns
all of them into one. The script is kept only where a language is written in several that matter to a reader
(``zh-Hans``, ``zh-Hant``).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from mrag_eval.core._errors import ConfigError


class Language(NamedTuple):
    """``code`` is BCP 47; ``scripts`` are ISO 15924 codes of the script(s) it is usually written in."""

    code: str
    name: str
    scripts: tuple[str, ...]


_TABLE = """
am Amharic Ethi|ar Arabic Arab|as Assamese Beng|az Azerbaijani Latn|be Belarusian Cyrl|bg Bulgarian Cyrl
bn Bengali Beng|bs Bosnian Latn|ca Catalan Latn|cs Czech Latn|da Danish Latn|de German Latn|dz Dzongkha Tibt
el Greek Grek|en English Latn|es Spanish Latn|et Estonian Latn|fa Persian Arab|fi Finnish Latn|fil Filipino Latn
fr French Latn|ha Hausa Latn|he Hebrew Hebr|hi Hindi Deva|hr Croatian Latn|ht Haitian Latn|hu Hungarian Latn
hy Armenian Armn|id Indonesian Latn|is Icelandic Latn|it Italian Latn|ja Japanese Jpan|ka Georgian Geor|kk Kazakh Cyrl
km Khmer Khmr|ko Korean Hang|ky Kyrgyz Cyrl|lo Lao Laoo|lt Lithuanian Latn|lv Latvian Latn|mg Malagasy Latn
mk Macedonian Cyrl|mn Mongolian Cyrl|mr Marathi Deva|ms Malay Latn|my Burmese Mymr|nb Norwegian Latn|ne Nepali Deva
nl Dutch Latn|pa Punjabi Guru|pl Polish Latn|pt Portuguese Latn|ro Romanian Latn|ru Russian Cyrl|si Sinhala Sinh
sk Slovak Latn|sl Slovenian Latn|sn Shona Latn|so Somali Latn|sq Albanian Latn|sr Serbian Cyrl,Latn|su Sundanese Latn
sv Swedish Latn|sw Swahili Latn|ta Tamil Taml|te Telugu Telu|tg Tajik Cyrl|th Thai Thai|ti Tigrinya Ethi|to Tongan Latn
tr Turkish Latn|uk Ukrainian Cyrl|ur Urdu Arab|uz Uzbek Latn|vi Vietnamese Latn|yo Yoruba Latn|yue Cantonese Hant
zh Chinese Hans,Hant|zh-Hans Chinese_(simplified) Hans|zh-Hant Chinese_(traditional) Hant|zu Zulu Latn
"""

LANGUAGES: dict[str, Language] = {
    code: Language(code, language_name.replace("_", " "), tuple(language_scripts.split(",")))
    for code, language_name, language_scripts in (
        entry.split() for entry in _TABLE.replace("\n", "|").split("|") if entry.strip()
    )
}

# Codes that name the same language elsewhere. Keys are lower case with '-' for '_'.
_ALIASES: dict[str, str] = {
    "iw": "he",
    "tl": "fil",
    "in": "id",
    "no": "nb",
    "nn": "nb",
    "mo": "ro",
    "ji": "yi",
    "zhs": "zh-Hans",
    "zht": "zh-Hant",
    "zh-cn": "zh-Hans",
    "zh-sg": "zh-Hans",
    "zh-tw": "zh-Hant",
    "zh-hk": "zh-Hant",
    "zh-hans": "zh-Hans",
    "zh-hant": "zh-Hant",
    "cmn": "zh",
    "zho": "zh",
    "chi": "zh",
    # FLORES / NLLB and ISO 639-3 labels (Arabic varieties count as Arabic, Persian and Malay macro-languages likewise)
    "arb": "ar",
    "arz": "ar",
    "ary": "ar",
    "apc": "ar",
    "ars": "ar",
    "acm": "ar",
    "ajp": "ar",
    "aeb": "ar",
    "acq": "ar",
    "ara": "ar",
    "pes": "fa",
    "prs": "fa",
    "fas": "fa",
    "zsm": "ms",
    "als": "sq",
    "azj": "az",
    "khk": "mn",
    "uzn": "uz",
    "npi": "ne",
    "plt": "mg",
    "nob": "nb",
    "nno": "nb",
    "ekk": "et",
    "lvs": "lv",
    "eng": "en",
    "deu": "de",
    "spa": "es",
    "fra": "fr",
    "fin": "fi",
    "ita": "it",
    "jpn": "ja",
    "kor": "ko",
    "por": "pt",
    "rus": "ru",
    "tha": "th",
    "ell": "el",
    "hin": "hi",
    "tur": "tr",
    "vie": "vi",
    "ind": "id",
    "sun": "su",
    "amh": "am",
    "asm": "as",
    "hau": "ha",
    "ron": "ro",
    "heb": "he",
    "ben": "bn",
    "swh": "sw",
    "swa": "sw",
    "tgl": "fil",
    "ukr": "uk",
    "urd": "ur",
    "nld": "nl",
    "pol": "pl",
    "ces": "cs",
    "hun": "hu",
    "swe": "sv",
    "dan": "da",
    "tam": "ta",
    "tel": "te",
    "yor": "yo",
    "bel": "be",
    "bul": "bg",
}
# Full FLORES labels carry a script ("zho_Hant"); only for Chinese does it change the code.
_SCRIPT_SUFFIXES = {
    "hans",
    "hant",
    "latn",
    "cyrl",
    "arab",
    "deva",
    "jpan",
    "hang",
    "thai",
    "ethi",
    "grek",
    "hebr",
    "beng",
}
_BY_NAME = {lang.name.lower(): lang.code for lang in LANGUAGES.values()}


def normalize_language(code: str) -> str:
    """The BCP 47 code of a language given in any benchmark's, model's or detector's spelling.

    Accepts two- and three-letter codes, ``zh_cn``-style regions, FLORES labels (``kor_Hang``), fastText labels
    (``__label__ko``) and English names (``arabic``). Raises :class:`~mrag_eval.core.ConfigError` for anything else.
    """
    found = _lookup(code)
    if found is None:
        raise ConfigError(
            f"unknown language '{code}'", "use a BCP 47 code such as en, zh-Hans, ar (mrag_eval.core._languages)"
        )
    return found


@lru_cache(maxsize=4096)
def _lookup(code: str) -> str | None:
    key = code.strip().removeprefix("__label__").lower().replace("_", "-")
    if key in LANGUAGES:
        return key
    if key in _ALIASES:
        return _ALIASES[key]
    if key in _BY_NAME:
        return _BY_NAME[key]
    head, _, tail = key.partition("-")
    if not tail:
        return None
    base = _lookup(head)
    if base is not None and base.startswith("zh") and tail in ("hans", "hant"):
        return f"zh-{tail.title()}"
    if base is not None and (tail in _SCRIPT_SUFFIXES or (len(tail) == 2 and tail.isalpha())):
        return base
    return None


def is_language(code: str) -> bool:
    """Whether :func:`normalize` accepts ``code``."""
    return _lookup(code) is not None


def base_language(code: str) -> str:
    """The language without its script: ``zh-Hant`` and ``zh_cn`` give ``zh``."""
    return normalize_language(code).partition("-")[0]


def same_language(a: str, b: str) -> bool:
    """Whether two codes name one language, scripts and regions aside (``zh_cn`` and ``zho_Hant``)."""
    return base_language(a) == base_language(b)


def matching_languages(code: str, held: Collection[str]) -> set[str]:
    """Which of the codes ``held`` by a corpus stand for the language ``code``; empty where none does.

    The code itself; where that is not held, a language finds all its scripts (``zh``: ``zh-Hans`` and ``zh-Hant``), and
    a script the language without one (``zh-Hant``: ``zh``), but never another script.
    """
    wanted = normalize_language(code)
    if wanted in held:
        return {wanted}
    if wanted == base_language(wanted):
        return {other for other in held if base_language(other) == wanted}
    return {base_language(wanted)} & set(held)


def language_name(code: str) -> str:
    """English name: ``name("ko") == "Korean"``."""
    return LANGUAGES[normalize_language(code)].name


def language_scripts(code: str) -> tuple[str, ...]:
    """ISO 15924 codes of the scripts the language is usually written in."""
    return LANGUAGES[normalize_language(code)].scripts


# Resource tiers of CORAL: derived from its Table 8, the only grouping that reproduces the averages of Table 1.
CORAL_TIERS: dict[str, tuple[str, ...]] = {
    "low": ("am", "as", "az", "ha", "su"),
    "mid": ("el", "fa", "id", "ko"),
    "high": ("ar", "en", "es", "zh"),
}
# The 13 corpora CORAL's planner chooses from (its section 4).
CORAL_POOL: tuple[str, ...] = ("id", "am", "su", "ar", "ha", "en", "zh", "ko", "as", "el", "fa", "es", "az")

# The classes 0 to 5 of Joshi et al., "The State and Fate of Linguistic Diversity and Inclusion in the NLP World"
# (ACL 2020), as published in their table lang2tax, in three steps: high is 4 and 5, mid is 3, low is 0 to 2.
RESOURCE_GROUPS: dict[str, tuple[str, ...]] = {
    "high": (
        *("ar", "ca", "cs", "de", "en", "es", "fa", "fi", "fr", "hi", "hr", "hu", "it", "ja", "ko", "nl"),
        *("pl", "pt", "ru", "sr", "sv", "tr", "vi", "zh"),
    ),
    "mid": (
        *("be", "bg", "bn", "bs", "da", "el", "et", "fil", "he", "id", "ka", "kk", "lt", "lv", "ms", "ro", "sk"),
        *("sl", "ta", "th", "uk", "ur", "uz"),
    ),
    "low": (
        *("am", "as", "az", "dz", "ha", "ht", "hy", "is", "km", "ky", "lo", "mg", "mk", "mn", "mr", "my", "ne"),
        *("pa", "si", "sn", "so", "sq", "su", "sw", "te", "tg", "ti", "to", "yo", "zu"),
    ),
}

# Written without spaces between words: chunking, tokenising and word metrics must not rely on whitespace.
NO_SPACES: frozenset[str] = frozenset({"zh", "ja", "th", "km", "lo", "my", "yue", "dz"})


def language_tier(code: str) -> str | None:
    """CORAL's resource tier (``low``, ``mid``, ``high``) of a language; None outside its 13."""
    key = base_language(code)
    return next((t for t, members in CORAL_TIERS.items() if key in members), None)
