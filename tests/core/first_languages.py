"""The first 81 supported languages and how their spellings are read.

Readings that have changed since: Macao (zh-MO) writes Traditional Chinese; Nynorsk and Dari have their own codes;
a script that is not the usual one of its language is kept.
"""

from __future__ import annotations

_TABLE = """
am Amharic Ethi|ar Arabic Arab|as Assamese Beng|az Azerbaijani Latn|be Belarusian Cyrl|bg Bulgarian Cyrl
bn Bengali Beng|bs Bosnian Latn|ca Catalan Latn|cs Czech Latn|da Danish Latn|de German Latn|dz Dzongkha Tibt
el Greek Grek|en English Latn|es Spanish Latn|et Estonian Latn|fa Persian Arab|fi Finnish Latn|fil Filipino Latn
fr French Latn|ha Hausa Latn|he Hebrew Hebr|hi Hindi Deva|hr Croatian Latn|ht Haitian Latn|hu Hungarian Latn
hy Armenian Armn|id Indonesian Latn|is Icelandic Latn|it Italian Latn|ja Japanese Jpan|ka Georgian Geor|kk Kazakh Cyrl
km Khmer Khmr|ko Korean Hang|ky Kyrgyz Cyrl|lo Lao Laoo|lt Lithuanian Latn|lv Latvian Latn|mg Malagasy Latn
mk Macedonian Cyrl|mn Mongolian Cyrl|mr Marathi Deva|ms Malay Latn|my Burmese Mymr
nb Norwegian_Bokmål Latn|ne Nepali Deva
nl Dutch Latn|pa Punjabi Guru|pl Polish Latn|pt Portuguese Latn|ro Romanian Latn|ru Russian Cyrl|si Sinhala Sinh
sk Slovak Latn|sl Slovenian Latn|sn Shona Latn|so Somali Latn|sq Albanian Latn|sr Serbian Cyrl,Latn|su Sundanese Latn
sv Swedish Latn|sw Swahili Latn|ta Tamil Taml|te Telugu Telu|tg Tajik Cyrl|th Thai Thai|ti Tigrinya Ethi|to Tongan Latn
tr Turkish Latn|uk Ukrainian Cyrl|ur Urdu Arab|uz Uzbek Latn|vi Vietnamese Latn|yo Yoruba Latn|yue Cantonese Hant
zh Chinese Hans,Hant|zh-Hans Chinese_(simplified) Hans|zh-Hant Chinese_(traditional) Hant|zu Zulu Latn
"""
_ALIASES = """
iw he|tl fil|in id|no nb|mo ro|ji yi|zhs zh-Hans|zht zh-Hant|zh-cn zh-Hans|zh-sg zh-Hans|zh-tw zh-Hant
zh-hk zh-Hant|zh-mo zh-Hant|zh-hans zh-Hans|zh-hant zh-Hant
cmn zh|zho zh|chi zh|arb ar|arz ar|ary ar|apc ar|ars ar|acm ar|ajp ar
aeb ar|acq ar|ara ar|pes fa|fas fa|zsm ms|als sq|azj az|khk mn|uzn uz|npi ne|plt mg|nob nb|ekk et|lvs lv
eng en|deu de|spa es|fra fr|fin fi|ita it|jpn ja|kor ko|por pt|rus ru|tha th|ell el|hin hi|tur tr|vie vi|ind id|sun su
amh am|asm as|hau ha|ron ro|heb he|ben bn|swh sw|swa sw|tgl fil|ukr uk|urd ur|nld nl|pol pl|ces cs|hun hu|swe sv
dan da|tam ta|tel te|yor yo|bel be|bul bg
"""
_SCRIPTS = frozenset(
    ["arab", "beng", "cyrl", "deva", "ethi", "grek", "hang", "hans", "hant", "hebr", "jpan", "latn", "thai"]
)


def _entries(text: str) -> list[list[str]]:
    return [entry.split() for entry in text.replace("\n", "|").split("|") if entry.strip()]


# code -> English name, ISO 15924 codes
FIRST: dict[str, tuple[str, tuple[str, ...]]] = {
    code: (name.replace("_", " "), tuple(scripts.split(","))) for code, name, scripts in _entries(_TABLE)
}
ALIASES: dict[str, str] = dict(_entries(_ALIASES))
_BY_NAME = {name.lower(): code for code, (name, _) in FIRST.items()}
SPELLINGS = (*FIRST, *ALIASES, *_BY_NAME)


def first_reading(code: str) -> str | None:
    """Return the code of a spelling by the table above, or None if it is missing."""
    key = code.strip().removeprefix("__label__").lower().replace("_", "-")
    if key in FIRST:
        return key
    if key in ALIASES or key in _BY_NAME:
        return ALIASES.get(key) or _BY_NAME[key]
    head, _, tail = key.partition("-")
    language = first_reading(head) if tail else None
    if language is not None and language.startswith("zh") and tail in ("hans", "hant"):
        return f"zh-{tail.title()}"
    usual = "Hebr" if language == "yi" else FIRST[language][1][0] if language is not None else None
    if language is not None and tail in _SCRIPTS - {"hans", "hant", "jpan"} and tail.title() != usual:
        return language if language.startswith("zh") else f"{language}-{tail.title()}"
    if language is not None and (tail in _SCRIPTS or (len(tail) == 2 and tail.isalpha())):
        return language
    return None


def first_tails() -> tuple[str, ...]:
    """Return every script that could follow a language, and regions, both real and invented."""
    return (*_SCRIPTS, "us", "cn", "tw", "sg", "hk", "mo", "no", "il", "xx", "zz")
