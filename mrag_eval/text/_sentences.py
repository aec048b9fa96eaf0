"""Sentence boundaries by Unicode punctuation, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from mrag_eval.core import base_language
from mrag_eval.text._letters import HAN_KANA

# Marks that always end a sentence: Sentence_Break=STerm of Unicode 17.0 (UAX #29, SentenceBreakProperty.txt), without
# "!" and "?" (below) and the Burmese comma U+104A, which ends a phrase
_STERM = (
    "\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f"
    "\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54"
    "\u2e60\u2e61\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f"
    "\uaaf0\uaaf1\uabeb\ufe12\ufe15\ufe16\ufe56\ufe57\uff01\uff1f\uff61"
)
_STERM_BEYOND = (
    "\U00010a56\U00010a57\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1"
    "\U00011141-\U00011143\U000111c5\U000111c6\U000111cd\U000111de\U000111df\U00011238\U00011239"
    "\U0001123b\U0001123c\U000112a9\U000113d4\U000113d5\U0001144b\U0001144c\U000115c2\U000115c3"
    "\U000115c9-\U000115d7\U00011641\U00011642\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43"
    "\U00011a9b\U00011a9c\U00011c41\U00011c42\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f"
    "\U00016af5\U00016b37\U00016b38\U00016b44\U00016d6e\U00016d6f\U00016e98\U0001bc9f\U0001da88"
)
# Marks that end a sentence only before white space, since they also occur in numbers, abbreviations and addresses:
# "!", "?", Sentence_Break=ATerm, the ellipsis and the Greek question mark
_OPEN = ".!?\u2024\ufe52\u2026\u037e"
# ... and in one language: the Greek question mark as typed, and the colon that Armenians type for their full stop
_OPEN_IN = {"el": ";", "grc": ";", "hy": ":"}
# Two Ethiopic word separators are a full stop. The full-width dot is one, except in 3．14 and U．S．
_LATIN = "A-Za-z\uff21-\uff3a\uff41-\uff5a"
_DOUBLED = "\u1361\u1361"
_WIDE_DOT = rf"\uff0e(?!\d)(?!(?<=[{_LATIN}]\uff0e)[{_LATIN}])"
_LINE_BREAK = "\n\r\x85\u2028\u2029"
# The shad ends phrases and sentences of Tibetan; Thai and Lao have no mark for either, but a space
_PHRASE = "\u104a\u0f0d\u0f0e\u0f11"
_SPACE_ENDS = frozenset({"th", "lo"})


# Titles that stand before a name, and never at the end of a sentence
_TITLES = frozenset({
    "Dr", "Dra", "Prof", "Mr", "Mrs", "Ms", "Mx", "Mme", "Mlle", "Sr", "Sra", "Srta", "Sig", "Dott", "Hr", "Fr", "St",
    "Ste", "Sta", "Rev", "Gen", "Col", "Capt", "Lt", "Проф", "Акад", "Ген", "Гр", "Св",
})  # fmt: skip
_LONGEST = 6
_DOTS = re.compile("[.\u2024\ufe52\u2026]+")
_BREAKS = re.compile(f"[{_LINE_BREAK}]")
_WORD_BEFORE = re.compile(r"(?<![^\W_])[^\W\d_]+$")
# Up to an opening bracket or quotation mark, or emphasis, before the next character
_OPENED = re.compile(r"[(\[{\"'*_\u00ab\u2018\u201c\u201e\u201a]{0,3}(?=.)")


@lru_cache(maxsize=1)
def _closing() -> str:
    """Return the closing quotes and brackets: punctuation of the categories Pe and Pf, and straight quotes."""
    codes = (chr(c) for c in range(0x80, 0x10000))
    return "\"')\\]}" + "".join(c for c in codes if unicodedata.category(c) in ("Pe", "Pf"))


@lru_cache(maxsize=16)
def _pattern(language: str, phrases: bool, beyond: bool) -> re.Pattern[str]:
    # classes with characters beyond the basic plane are slow, so only texts that hold some pay for them
    full = rf"[{_STERM}{_STERM_BEYOND if beyond else ''}{_PHRASE if phrases else ''}]"
    unit = rf"(?:{full}|{_DOUBLED}|{_WIDE_DOT})"
    some = _OPEN + _OPEN_IN.get(language, "")
    # French sets a space before closing quotes; “ and « close in German and Danish
    closing = rf"(?:[\u00a0\u202f]?[{_closing()}])*"
    closing_before_space = rf"(?:[\u00a0\u202f]?[{_closing()}\u2018\u201c\u2039\u00ab])*"
    ends = (
        rf"{unit}(?:{unit}|[{some}])*{closing}\s*",
        rf"(?<![{some}])[{some}]+{closing_before_space}(?:\s+|$)",
        rf"(?<![{some}])[!?]+{closing}(?=[{HAN_KANA}])",
        rf"[{_LINE_BREAK}]\s*",
        *([r"\s+"] if phrases and language in _SPACE_ENDS else []),
    )
    return re.compile("|".join(ends))


def _goes_on(text: str, match: re.Match[str], capitals: bool) -> bool:
    """Return whether dots and a space do not end a sentence, by the word before them and the character behind.

    ``capitals``: whether the text has any, without which a lower-case letter may open a sentence.
    """
    dots = _DOTS.match(match[0])
    if dots is None or match.end() == len(text) or _BREAKS.search(match[0]):
        return False
    at = match.end()
    # Georgian letters are lower-case without being written in upper case
    opened = _OPENED.match(text, at) if capitals else None
    if opened and (first := text[opened.end()]).islower() and first.title() != first:
        return True
    before = _WORD_BEFORE.search(text[max(match.start() - _LONGEST, 0) : match.start()])
    word = before[0] if before and dots[0] == match[0].rstrip() == "." else ""
    if text[at].isdecimal():
        return 0 < len(word) <= 3 and word.lower() != word.upper()
    initial = len(word) == 1 and (word.isupper() or text[match.start() - 2 : match.start() - 1] == ".")
    return (initial or word in _TITLES) and text[at].isupper()


def sentence_spans(text: str, lang: str) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of the sentences of ``text``, which cover it without gaps.

    A sentence ends at a full stop of any script (with closing quotes and brackets) or at a line break. It includes the
    white space after it. Thai and Lao have no full stop, so a line is a sentence there. A dot before a lower-case
    letter ends none (UAX #29, rule SB8), nor does one behind an initial, a title, or up to three letters before a
    number (``no. 5``). Known limits: other abbreviations before a capital letter (``ca. Montag``), and all of them in a
    text without capitals.
    """
    return _spans(text, lang, phrases=False)


def phrase_spans(text: str, lang: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of :func:`sentence_spans`, cut also where a sentence may end: at a space in Thai and Lao, at the
    Tibetan shad and the Burmese comma, behind an abbreviation.
    """
    return _spans(text, lang, phrases=True)


def _spans(text: str, lang: str, *, phrases: bool) -> Iterator[tuple[int, int]]:
    start = 0
    capitals = not text.islower()
    pattern = _pattern(base_language(lang), phrases, max(text, default="") > "\uffff")
    for match in pattern.finditer(text):
        if text[start : match.end()].strip() and (phrases or not _goes_on(text, match, capitals)):
            yield start, match.end()
            start = match.end()
    if text[start:].strip():
        yield start, len(text)
