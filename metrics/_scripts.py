"""The script of a letter, by Unicode name.

The standard library knows no script property, but the name of a letter starts with its script ("CYRILLIC SMALL LETTER
A"); compatibility forms (full-width, mathematical, half-width kana) are folded by NFKC first. The answers agree with
the Unicode script property on every letter of the scripts listed here (the tests compare the two).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache

from mrag_eval import languages

# First word of the Unicode name -> ISO 15924. Names that are absent here keep the word itself as their "script".
_BY_NAME = {
    "LATIN": "Latn", "CYRILLIC": "Cyrl", "GREEK": "Grek", "ARABIC": "Arab", "HEBREW": "Hebr", "DEVANAGARI": "Deva",
    "BENGALI": "Beng", "ETHIOPIC": "Ethi", "THAI": "Thai", "LAO": "Laoo", "KHMER": "Khmr", "MYANMAR": "Mymr",
    "TIBETAN": "Tibt", "GEORGIAN": "Geor", "ARMENIAN": "Armn", "SINHALA": "Sinh", "TAMIL": "Taml", "TELUGU": "Telu",
    "GURMUKHI": "Guru", "GUJARATI": "Gujr", "KANNADA": "Knda", "MALAYALAM": "Mlym", "ORIYA": "Orya",
    "HANGUL": "Hang", "HIRAGANA": "Hira", "KATAKANA": "Kana", "BOPOMOFO": "Bopo", "CJK": "Hani",
    "IDEOGRAPHIC": "Hani", "MONGOLIAN": "Mong", "CHEROKEE": "Cher", "SYRIAC": "Syrc", "THAANA": "Thaa", "NKO": "Nkoo",
    "COPTIC": "Copt", "TIFINAGH": "Tfng", "JAVANESE": "Java", "SUNDANESE": "Sund", "BALINESE": "Bali",
}  # fmt: skip

# Scripts that stand for several in the language table.
_PARTS = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Hans": ("Hani", "Bopo"),
    "Hant": ("Hani", "Bopo"),
}

# Written without spaces between words; word measures take one grapheme as a token there.
NO_SPACE_SCRIPTS = frozenset({"Hani", "Hira", "Kana", "Bopo", "Thai", "Laoo", "Khmr", "Mymr"})


@cache
def script(char: str) -> str | None:
    """ISO 15924 code of a letter's or combining letter-mark's script; None for anything shared between scripts."""
    if unicodedata.category(char)[0] not in "LM":
        return None
    folded = unicodedata.normalize("NFKC", char)[:1]
    name = unicodedata.name(folded, "")
    word = name.split(" ", 1)[0]
    if word in ("COMBINING", "MODIFIER", "VARIATION", "MATHEMATICAL") or not name:
        return None
    if word.startswith("KATAKANA-HIRAGANA"):
        return "Kana"
    return _BY_NAME.get(word.split("-", 1)[0], word)


def expected_scripts(language: str) -> frozenset[str]:
    """The scripts a language's letters may come from (``ja``: Hani, Hira, Kana)."""
    found: set[str] = set()
    for code in languages.scripts(language):
        found.update(_PARTS.get(code, (code,)))
    return frozenset(found)


def letter_scripts(text: str) -> Counter[str]:
    """How many letters (category L; marks and digits are no letters) the text has of each script."""
    counts: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            found = script(char)
            if found is not None:
                counts[found] += 1
    return counts
