"""Script of a letter, by Unicode name.

The standard library lacks the script property, but the name of a letter starts with its script ("CYRILLIC SMALL LETTER
A"). Letters whose own name does not (full-width and mathematical forms) count as their NFKC form. On the letters of the
scripts listed here this agrees with the Unicode script property (the tests compare the two).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache

from mrag_eval.core import language_scripts

# First word of the Unicode name -> ISO 15924. Names that are absent here keep the word itself as their "script".
_BY_NAME = {
    "LATIN": "Latn", "TURNED": "Latn", "ROMAN": "Latn",
    "CYRILLIC": "Cyrl", "GREEK": "Grek", "ARABIC": "Arab", "HEBREW": "Hebr", "DEVANAGARI": "Deva",
    "BENGALI": "Beng", "ETHIOPIC": "Ethi", "THAI": "Thai", "LAO": "Laoo", "KHMER": "Khmr", "MYANMAR": "Mymr",
    "TIBETAN": "Tibt", "GEORGIAN": "Geor", "ARMENIAN": "Armn", "SINHALA": "Sinh", "TAMIL": "Taml", "TELUGU": "Telu",
    "GURMUKHI": "Guru", "GUJARATI": "Gujr", "KANNADA": "Knda", "MALAYALAM": "Mlym", "ORIYA": "Orya",
    "HANGUL": "Hang", "HIRAGANA": "Hira", "HENTAIGANA": "Hira", "KATAKANA": "Kana", "BOPOMOFO": "Bopo", "CJK": "Hani",
    "IDEOGRAPHIC": "Hani", "MONGOLIAN": "Mong", "CHEROKEE": "Cher", "SYRIAC": "Syrc", "THAANA": "Thaa", "NKO": "Nkoo",
    "COPTIC": "Copt", "TIFINAGH": "Tfng", "JAVANESE": "Java", "SUNDANESE": "Sund", "BALINESE": "Bali",
    "CANADIAN": "Cans", "OL": "Olck", "MEETEI": "Mtei", "YI": "Yiii", "VAI": "Vaii", "ADLAM": "Adlm", "LISU": "Lisu",
    "LEPCHA": "Lepc", "LIMBU": "Limb", "CHAKMA": "Cakm", "CHAM": "Cham", "BUGINESE": "Bugi", "NEWA": "Newa",
    "OSAGE": "Osge", "HANIFI": "Rohg", "SAURASHTRA": "Saur", "KAYAH": "Kali", "BATAK": "Batk", "REJANG": "Rjng",
    "SYLOTI": "Sylo", "MIAO": "Plrd", "GOTHIC": "Goth",
}  # fmt: skip

_SHARED = ("ARABIC TATWEEL",)
_NO_SCRIPT = frozenset({"", "COMBINING", "MODIFIER", "VARIATION", "MATHEMATICAL", "DOUBLE", "SPACE"})

_KNOWN_SCRIPTS = frozenset(_BY_NAME.values())

# Codes that stand for several scripts.
_PARTS = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Hans": ("Hani", "Bopo"),
    "Hant": ("Hani", "Bopo"),
}

# Written without spaces between words; word measures take one grapheme as a token there.
NO_SPACE_SCRIPTS = frozenset({"Hani", "Hira", "Kana", "Bopo", "Thai", "Laoo", "Khmr", "Mymr"})


@cache
def script(char: str) -> str | None:
    """Return the ISO 15924 code of a letter's or combining letter-mark's script; None for anything shared between
    scripts.
    """
    if unicodedata.category(char)[0] not in "LM":
        return None
    for candidate in (char, unicodedata.normalize("NFKC", char)[:1]):
        name = unicodedata.name(candidate, "")
        word = name.partition(" ")[0].partition("-")[0]
        if name.startswith(_SHARED):
            return None
        if word in _BY_NAME:
            return _BY_NAME[word]
        if name.endswith("IDEOGRAPHIC ITERATION MARK"):
            return "Hani"
    return word if word not in _NO_SCRIPT else None


def expected_scripts(language: str) -> frozenset[str]:
    """Return the scripts a language's letters may come from (``ja``: Hani, Hira, Kana).

    Empty if its scripts are unknown, or not among those of :func:`script`.
    """
    parts = (part for code in language_scripts(language) for part in _PARTS.get(code, (code,)))
    return frozenset(parts) & _KNOWN_SCRIPTS


def letter_scripts(text: str) -> Counter[str]:
    """Count the letters (category L, without marks and digits) of each script in the text."""
    counts: dict[str, int] = {}
    # a text has few characters, many times each
    for char, times in Counter(text).items():
        if char.isalpha() and (found := script(char)) is not None:
            counts[found] = counts.get(found, 0) + times
    return Counter(counts)
