"""Character classes for regular expressions, from the Unicode database."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

# Han with iteration marks and the number zero, Kana with the prolonged sound mark
HAN_KANA = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
# Thai, Lao, Burmese (with its extensions), Khmer
_UNSPACED_BLOCKS = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F))
# Chakma and Adlam; a class with all marks beyond the basic plane would be five times slower
_MARKS_BEYOND = "\U00011100-\U00011102\U00011127-\U00011134\U0001e944-\U0001e94a"


def character_class(codepoints: Iterable[int]) -> str:
    """Return the inside of a regular expression's character class for the given (ascending) code points."""
    ranges: list[list[int]] = []
    for code in codepoints:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in ranges)


@lru_cache(maxsize=1)
def marks() -> str:
    """Return the combining marks (vowel signs, tones, accents), which belong to the letter before them."""
    basic_plane = (c for c in range(0x300, 0x10000) if unicodedata.category(chr(c)).startswith("M"))
    return character_class(basic_plane) + _MARKS_BEYOND


@lru_cache(maxsize=1)
def unspaced_letters() -> str:
    """Return the letters of Thai, Lao, Burmese and Khmer, which are written without spaces."""
    codes = (c for low, high in _UNSPACED_BLOCKS for c in range(low, high + 1))
    return character_class(c for c in codes if unicodedata.category(chr(c)).startswith("L"))
