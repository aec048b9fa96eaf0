"""Edges of words: whether a text contains an answer as words, not within one."""

from __future__ import annotations

import re
import unicodedata

from mrag_eval.core import base_language
from mrag_eval.text import NO_SPACE_SCRIPTS, script

# Prefixes that a script writes with the word, in folded letters: and, in, as, to, the (Arabic); and, the, in, as,
# to, from, that (Hebrew); of, in, from, to, about, until, like (Amharic)
_BEFORE = {
    "Arab": re.compile("[وف]?(?:[بكل]?(?:ال)?|لل)"),
    "Hebr": re.compile("[והבכלמש]{1,3}"),
    "Ethi": re.compile("[የበከለ]|ስለ|እስከ|እንደ"),
}
# Languages that attach case endings or articles to the end of a name
_WITH_ENDINGS = frozenset(
    [
        "am",
        "as",
        "az",
        "ba",
        "be",
        "bg",
        "bn",
        "bs",
        "ckb",
        "cs",
        "el",
        "et",
        "eu",
        "fi",
        "gu",
        "hr",
        "hu",
        "hy",
        "is",
        "ka",
        "kk",
        "kn",
        "ky",
        "lt",
        "lv",
        "mk",
        "ml",
        "mn",
        "mr",
        "ne",
        "or",
        "pl",
        "qu",
        "ro",
        "ru",
        "si",
        "sk",
        "sl",
        "so",
        "sq",
        "sr",
        "ta",
        "te",
        "tg",
        "ti",
        "tk",
        "tr",
        "tt",
        "ug",
        "uk",
        "uz",
    ]
)
_LONGEST_BEFORE, _LONGEST_ENDING = 5, 4
# Shorter answers are whole words
_SHORTEST = 3
_SHORTEST_HANGUL = 2


def contains(text: str, answer: str, lang: str | None) -> bool:
    """Return whether a normalised text contains a normalised answer (an empty one always).

    In scripts with spaces the answer begins and ends with words. Where a language attaches prepositions, articles or
    endings to words, they may precede or follow an answer of three letters and more (in Korean, two syllables); an
    ending is shorter than the answer. In scripts without spaces it begins and ends anywhere between two graphemes. A
    number is never part of another.
    """
    start = text.find(answer)
    while start >= 0:
        end = start + len(answer)
        if _begins(text, start, answer) and _ends(text, end, answer, lang):
            return True
        start = text.find(answer, start + 1)
    return False


def _begins(text: str, start: int, answer: str) -> bool:
    if not _within(text, start):
        return True
    before = _BEFORE.get(script(answer[0]) or "")
    if before is None or len(answer) < _SHORTEST:
        return False
    word = text.rfind(" ", max(0, start - _LONGEST_BEFORE - 1), start) + 1
    return start - word <= _LONGEST_BEFORE and before.fullmatch(text, word, start) is not None


def _ends(text: str, end: int, answer: str, lang: str | None) -> bool:
    if not _within(text, end):
        return True
    if unicodedata.category(text[end])[0] == "M" or answer[-1].isdigit():
        return False
    following = text.find(" ", end, end + _LONGEST_ENDING + 1)
    ending = text[end : following if following >= 0 else end + _LONGEST_ENDING + 1]
    if script(answer[-1]) == "Hang":
        return len(answer) >= _SHORTEST_HANGUL and len(ending) <= _LONGEST_ENDING
    base = None if lang is None else base_language(lang)
    if base == "en":
        return ending == "s"
    longest = min(_LONGEST_ENDING, len(answer) - 1)
    return base in _WITH_ENDINGS and len(answer) >= _SHORTEST and len(ending) <= longest


def _within(text: str, at: int) -> bool:
    """Return whether a position is between two characters of one word or number."""
    if not 0 < at < len(text):
        return False
    left, right = text[at - 1], text[at]
    if unicodedata.category(right)[0] == "M":
        return True
    if left.isdigit() or right.isdigit():
        return left.isdigit() and right.isdigit()
    if left.isspace() or right.isspace():
        return False
    # a mark belongs to the script of its letter
    scripts = script(left), script(right)
    return scripts[0] == scripts[1] and scripts[0] not in NO_SPACE_SCRIPTS
