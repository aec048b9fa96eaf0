"""Languages: one BCP 47 code each, with their names, scripts and resource tiers.

Benchmarks use various codes (``zhs``, ``zh_cn``, ``iw``, ``arabic``, ``kor_Hang``); :func:`normalize_language` maps all
of them to one. langcodes knows all languages; the tables here hold only our own policy. The script is kept if it is not
the usual one of the language (``hi-Latn``, ``sr-Latn``), and for Chinese (``zh-Hans``, ``zh-Hant``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from functools import lru_cache

from mrag_eval.platform import ConfigError

# The key of all languages that a map of languages does not name.
ANY_LANGUAGE = "default"
# Spellings that BCP 47 lacks, and codes that we read differently. Keys are lower case with '-' for '_'.
_ALIASES: dict[str, str] = {
    "zhs": "zh-Hans",
    "zht": "zh-Hant",
    "zh-cn": "zh-Hans",
    "zh-sg": "zh-Hans",
    "zh-tw": "zh-Hant",
    "zh-hk": "zh-Hant",
    "zh-mo": "zh-Hant",
    # Wikipedia, benchmarks and detectors mean Bokmål
    "no": "nb",
    # detectors use this code for Bosnian, Croatian and Serbian alike; langcodes takes it for Serbian
    "sh": "sh",
    "hbs": "sh",
}
# English names that differ from those of CLDR.
_NAMES: dict[str, str] = {
    "bn": "Bengali",
    "ht": "Haitian",
    "prs": "Dari",
    "zh-Hans": "Chinese (simplified)",
    "zh-Hant": "Chinese (traditional)",
}
# ISO 15924 codes of several scripts, or of one with another spelling: a label with one of them says nothing new.
_ANY_OF = frozenset({"Hani", "Hans", "Hant", "Jpan", "Kore"})
# ISO 15924 codes for languages where CLDR has no script, another, or only one of several.
_SCRIPTS: dict[str, tuple[str, ...]] = {
    "crh": ("Latn", "Cyrl"),
    "ko": ("Hang",),
    "ks": ("Arab", "Deva"),
    "ku": ("Latn", "Arab"),
    "prs": ("Arab",),
    "sd": ("Arab", "Deva"),
    "sh": ("Latn", "Cyrl"),
    "sr": ("Cyrl", "Latn"),
    "tzm": ("Tfng", "Latn"),
    "zh": ("Hans", "Hant"),
}
# Around the script in a name.
_IN, _SCRIPT = " in ", " script"
# Two or three letters, except the ISO 639 codes that name no language (several, none, not coded, private use).
_LANGUAGE = re.compile(r"(?!und|mul|mis|zxx|q[a-t][a-z])[a-z]{2,3}")


def normalize_language(code: str) -> str:
    """Return the BCP 47 code of a language given in any benchmark's, model's or detector's spelling.

    Accepts any BCP 47 tag, three-letter codes, ``zh_cn``-style regions, FLORES labels (``kor_Hang``), fastText labels
    (``__label__ko``) and English names (``arabic``). Regions and variants are dropped. Varieties of Arabic map to
    Arabic; the main language of a macrolanguage maps to the macrolanguage's two letters (``kmr``: ``ku``), as in CLDR.
    Raises ConfigError for anything else.
    """
    found = _lookup(code)
    if found is None:
        raise ConfigError(f"unknown language '{code:.40}'", suggestion(code))
    return found


@lru_cache(maxsize=4096)
def _lookup(code: str) -> str | None:
    key = code.strip().removeprefix("__label__").lower().replace("_", "-")
    if key in _ALIASES:
        return _ALIASES[key]
    head, _, tail = key.partition("-")
    found = None if head in _ALIASES else _from_tag(key) or _from_name(key)
    if found is None and tail and (language := _lookup(head)) is not None:
        # a spelling that is not a tag, followed by a script or a region
        found = _from_tag(f"{language.partition('-')[0]}-{tail}")
        # of languages that langcodes does not know under their code, such as sh
        kept = found is None or found.startswith(f"{language.partition('-')[0]}-")
        return found if kept else language
    return found


def _from_tag(tag: str) -> str | None:
    # langcodes and its tables take 50 ms to load
    from langcodes import Language
    from langcodes.data_dicts import MACROLANGUAGES
    from langcodes.tag_parser import LanguageTagError

    try:
        parsed = Language.get(tag)
    except LanguageTagError:
        return None
    language = parsed.language or ""
    # models have invented regions (en_XX), so regions are not checked
    checked = Language.make(language, script=parsed.script, variants=parsed.variants)
    if parsed.extlangs or not _LANGUAGE.fullmatch(language) or not checked.is_valid():
        return None
    if len(language) == 3:
        wider = checked.prefer_macrolanguage().language or ""
        language = "ar" if MACROLANGUAGES.get(language) == "ar" else wider if len(wider) == 2 else language
    # CLDR's code for Dari
    language = "prs" if (language, parsed.territory) == ("fa", "AF") else _ALIASES.get(language, language)
    return f"{language}-{parsed.script}" if _is_unusual(language, parsed.script) else language


def _is_unusual(language: str, script: str | None) -> bool:
    """Return whether a script says more than the language: either script of Chinese, and any but the usual one."""
    if language == "zh":
        return script in ("Hans", "Hant")
    if script is None or script in _ANY_OF:
        return False
    usual = _scripts(language)[:1]
    return bool(usual) and script not in usual


def _from_name(name: str) -> str | None:
    from language_data.names import code_to_names, name_to_code, normalize_name

    if name.endswith(_SCRIPT):
        language, _, written = name.removesuffix(_SCRIPT).rpartition(_IN)
        tag, known = name_to_code("script", written, "en"), _lookup(language) if language else None
        return None if tag is None or known is None else _from_tag(f"{known.partition('-')[0]}-{tag}")
    wanted = normalize_name(name)
    # a shorter string would be a code; half a surrogate pair cannot be looked up
    if len(wanted) < 4 or not wanted.isprintable():
        return None
    own = next((code for code, ours in _NAMES.items() if normalize_name(ours) == wanted), None)
    code = own or name_to_code("language", wanted, "en")
    # the look-up also accepts the beginning of a name: "Malayalm" would be Malay
    if code is None or (own is None and normalize_name(code_to_names(code).get("en", "")) != wanted):
        return None
    return _ALIASES.get(code) or _from_tag(code)


def is_language(code: str) -> bool:
    """Return whether :func:`normalize_language` accepts ``code``."""
    return _lookup(code) is not None


def suggestion(code: str) -> str:
    """Return the next step for an unknown language code: the most likely intended code, if any, and the rule."""
    guess = _guess(code.strip().replace("_", "-"))
    meant = "" if guess is None else f"did you mean {guess} ({language_name(guess)})? "
    return f"{meant}use a BCP 47 code, such as en, zh-Hans or ml"


def _guess(code: str) -> str | None:
    from langcodes.data_dicts import LIKELY_SUBTAGS
    from language_data.name_data import CODE_TO_NAMES

    head, _, tail = code.partition("-")
    if tail and is_language(head):
        return normalize_language(head)
    # a country's code: jp, cn, cz; Antarctica's (aq) has no language
    likely = LIKELY_SUBTAGS.get(f"und-{code.upper()}")
    if likely is not None and is_language(likely):
        return base_language(likely)
    wanted = code.title()
    names = {
        texts["en"]: code
        for code, texts in CODE_TO_NAMES.items()
        if _LANGUAGE.fullmatch(code) and texts.get("en", "").startswith(wanted[:1])
    }
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.75)
    return _lookup(names[close[0]]) if close else None


def base_language(code: str) -> str:
    """Return the language without its script: ``zh-Hant`` and ``zh_cn`` give ``zh``."""
    return normalize_language(code).partition("-")[0]


def same_language(a: str, b: str) -> bool:
    """Return whether two codes name one language, ignoring script and region (``zh_cn`` and ``zho_Hant``)."""
    return base_language(a) == base_language(b)


def matching_languages(code: str, held: Collection[str]) -> set[str]:
    """Return the codes in ``held`` that match the language ``code``.

    The code itself matches; if ``held`` lacks it, a language matches all its scripts (``zh``: ``zh-Hans`` and
    ``zh-Hant``), and a script matches the language without one (``zh-Hant``: ``zh``), but never another script.
    """
    wanted = normalize_language(code)
    if wanted in held:
        return {wanted}
    if wanted == base_language(wanted):
        return {other for other in held if base_language(other) == wanted}
    return {base_language(wanted)} & set(held)


def language_name(code: str) -> str:
    """Return the English name: ``Korean`` of ``ko``, ``Hindi in Latin script`` of ``hi-Latn``."""
    return _name(normalize_language(code))


def named_language(label: str) -> str:
    """Return the English name of a language, and any other label as it is."""
    return language_name(label) if is_language(label) else label


@lru_cache(maxsize=4096)
def _name(code: str) -> str:
    if code in _NAMES:
        return _NAMES[code]
    from language_data.names import code_to_names

    language, _, own = code.partition("-")
    if own:
        return f"{_name(language)}{_IN}{script_name(own)}{_SCRIPT}"
    return str(code_to_names(code).get("en", code))


@lru_cache(maxsize=256)
def script_name(code: str) -> str:
    """Return the English name of a script (ISO 15924): ``script_name("Deva") == "Devanagari"``."""
    from language_data.names import code_to_names

    return str(code_to_names(code).get("en", code))


def language_scripts(code: str) -> tuple[str, ...]:
    """Return the ISO 15924 codes of the scripts a language is usually written in; empty if unknown."""
    return _scripts(normalize_language(code))


@lru_cache(maxsize=4096)
def _scripts(code: str) -> tuple[str, ...]:
    from langcodes.data_dicts import LIKELY_SUBTAGS

    language, _, own = code.partition("-")
    if own:
        return (own,)
    likely = LIKELY_SUBTAGS.get(language)
    return _SCRIPTS.get(code) or (() if likely is None else (likely.split("-")[1],))


def iso_639_3(code: str) -> str:
    """Return a language as three letters (ISO 639-3) and script: ``iso_639_3("zh-Hant") == "zho-Hant"``.

    A code without a script gets the usual one of the language, if that is known.
    """
    from langcodes import Language

    known = normalize_language(code)
    return "-".join((Language.make(base_language(known)).to_alpha3(), *language_scripts(known)[:1]))


# Resource tiers of CORAL: derived from its Table 8, the only grouping that reproduces the averages of Table 1.
CORAL_TIERS: dict[str, tuple[str, ...]] = {
    "low": ("am", "as", "az", "ha", "su"),
    "mid": ("el", "fa", "id", "ko"),
    "high": ("ar", "en", "es", "zh"),
}
# The 13 corpora that CORAL's planner chooses from (its section 4).
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
NO_SPACES: frozenset[str] = frozenset(
    {
        *("zh", "yue", "wuu", "gan", "hak", "hsn", "nan", "lzh", "ja"),
        *("th", "tts", "nod", "lo", "km", "my", "mnw", "shn", "bo", "dz", "ii"),
    }
)
