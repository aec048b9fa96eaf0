"""Normalisation of the first version of the words for search, for indexes built with it.

NFKC and case folding; optional vowel points of Arabic and Hebrew and the tatweel are dropped; the dot that case folding
leaves on a Turkish ``İ`` is dropped; a zero-width non-joiner separates words in Arabic script and is ignored elsewhere;
decimal digits of every script become ASCII digits.
"""

from __future__ import annotations

import re
import unicodedata

_HEBREW_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_ARABIC_POINTS = "\u0610-\u061a\u0640\u064b-\u065f\u0670"
_OPTIONAL_POINTS = re.compile(f"[{_HEBREW_POINTS}{_ARABIC_POINTS}]")
_IGNORED = re.compile("[\u00ad\u200b\u200d\u2060\ufeff\ufe00-\ufe0f]")
_NON_JOINER_IN_ARABIC = re.compile("(?<=[\u0600-\u06ff\u0750-\u077f])\u200c")
_DIGIT = re.compile(r"[^\D0-9]")


def normalize_v1(text: str) -> str:
    """Return NFKC, case-folded text with ASCII digits, without optional vowel points or invisible characters."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _NON_JOINER_IN_ARABIC.sub(" ", text).replace("\u200c", "").replace("i\u0307", "i")
    return _DIGIT.sub(
        lambda digit: str(unicodedata.decimal(digit.group())), _OPTIONAL_POINTS.sub("", _IGNORED.sub("", text))
    )
