"""Sentence boundaries by Unicode punctuation, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.core import base_language
from mrag_eval.languages import Files, files_of_languages, language
from mrag_eval.platform import read_yaml
from mrag_eval.text._letters import HAN_KANA, marks, unspaced_letters

# Two Ethiopic word separators are a full stop. The full-width dot is one, except in 3．14 and U．S．
_LATIN = "A-Za-z\uff21-\uff3a\uff41-\uff5a"
_DOUBLED = "\u1361\u1361"
_WIDE_DOT = rf"\uff0e(?!\d)(?!(?<=[{_LATIN}]\uff0e)[{_LATIN}])"
_LINE_BREAK = "\n\r\x85\u2028\u2029"
_SPACE_ENDS = frozenset({"th", "lo"})
# The most characters of an abbreviation
_LONGEST = 12
_WORD = r"[^\s\d_.·,;:!?()\[\]{}\"'«»“”„‘’‚/*…—–-]"
_DOTS = re.compile("[.\u2024\ufe52\u2026]+")
_BREAKS = re.compile(f"[{_LINE_BREAK}]")
_WORD_BEFORE = re.compile(rf"(\d[ \u00a0]|(?<![^\W_]))({_WORD}+(?:[.·][ \u00a0]?{_WORD}+)*)$")
_NEXT = re.compile(f"{_WORD}*")
# A number in a list ("1. The mill"), and one in a date ("3. 10. 1990")
_LISTED = re.compile(rf"[\W_]*(?:\d{{1,2}}|{_WORD})")
_DAY = re.compile(r"(?<![^\W_])\d{1,4}$")
_DATE = re.compile(r"\d{1,2}\.|\d{4}")
_QUOTED = re.compile("[\"'”’」』»]$")
_QUOTES = "「『“‘\"'"
# Up to an opening bracket or quotation mark, or emphasis, before the next character
_OPENED = re.compile(r"[(\[{\"'*_\u00ab\u2018\u201c\u201e\u201a]{0,3}(?=.)")


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return dict(read_yaml(Path(__file__).with_name("sentence_marks.yaml")))


@lru_cache(maxsize=1)
def _closing() -> str:
    """Return the closing quotes and brackets: punctuation of the categories Pe and Pf, and straight quotes."""
    codes = (chr(c) for c in range(0x80, 0x10000))
    return "\"')\\]}" + "".join(c for c in codes if unicodedata.category(c) in ("Pe", "Pf"))


@lru_cache(maxsize=16)
def _pattern(language: str, phrases: bool, beyond: bool) -> re.Pattern[str]:
    # classes with characters beyond the basic plane are slow, so only texts that hold some pay for them
    full = rf"[{_table()['always']}{_table()['always_beyond'] * beyond}{_table()['phrases'] * phrases}]"
    unit = rf"(?:{full}|{_DOUBLED}|{_WIDE_DOT})"
    some = _table()["before_space"] + _table()["in_language"].get(language, "")
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


@lru_cache(maxsize=64)
def _words(lang: str, _files: Files) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...], frozenset[str]]:
    """Return, of a language's file and English, abbreviations, words behind ordinals and quotations, and labels."""
    known = [each for code in dict.fromkeys((lang, "en")) if (each := language(code)) is not None]
    short = [word for each in known for word in each.words.abbreviations]
    return (
        frozenset(form for word in short for form in (word, word.lstrip("1"), word[0].upper() + word[1:])),
        tuple(word for each in known for word in each.words.ordinals),
        tuple(word for each in known for word in each.words.continues),
        frozenset(label for each in known for row in each.labels for label in row.split()),
    )


def _goes_on(text: str, lang: str, start: int, match: re.Match[str], capitals: bool) -> bool:
    """Return whether a mark does not end the sentence that begins at ``start``, by what stands around it.

    ``capitals``: whether the text has any, without which a lower-case letter may open a sentence.
    """
    mark, end, at = match[0], *match.span()
    if at == len(text) or _BREAKS.search(mark):
        return False
    abbreviations, ordinals, continues, labels = _words(lang, files_of_languages())
    if _QUOTED.search(mark) and text[at].isalpha():
        # a quotation that opens a sentence has its speaker behind it
        return text[start] in _QUOTES or text.startswith(continues, at)
    dots, bare = _DOTS.match(mark), mark.rstrip()
    # Georgian letters are lower-case without being written in upper case
    opened = _OPENED.match(text, at) if capitals and (dots or _QUOTED.search(bare)) else None
    if opened and (first := text[opened.end()]).islower() and first.title() != first:
        return True
    label = text[end - 1] if bare in ".．" and _LISTED.fullmatch(text, start, end) else " "
    if label in labels or label.isdecimal() or label.lower() != label.upper():
        return True
    before = text[max(end - _LONGEST, start) : end]
    if ordinals and _DAY.search(before) and (text.startswith(ordinals, at) or _DATE.match(text, at)):
        return bare == "."
    found = _WORD_BEFORE.search(before)
    if found is None or bare != ".":
        return False
    # of "v. Chr." both dots, and not of "5 g. Der", where it may be a unit, at the end
    whole = re.sub(r"\s", "", found[2])
    word, upper = re.split("[.·]", whole)[-1], text[at].isupper()
    if f"{whole}.{_NEXT.match(text, at)[0]}" in abbreviations:  # type: ignore[index]
        return True
    if found[1] and upper and (len(word) <= 2 or word != whole):
        return f"1{whole}" in abbreviations
    named = whole in abbreviations or word in abbreviations
    if text[at].isdecimal():
        return named or (len(word) <= 3 and word.lower() != word.upper())
    return (named and text[at].isalpha()) or (upper and len(word) == 1 and (word.isupper() or word != whole))


def sentence_spans(text: str, lang: str, *, phrases: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of the sentences of ``text``, which cover it without gaps.

    A sentence ends at a full stop of any script (with closing quotes and brackets) or at a line break. It includes the
    white space after it. Thai and Lao have no full stop, so a line is a sentence there. A dot before a lower-case
    letter ends none (UAX #29, rule SB8), nor does one behind an initial, an abbreviation that the language's file or
    English has, the number of a list, an ordinal before what has one (``3. Oktober``), or up to three letters before a
    number (``no. 5``). A quotation in Chinese or Japanese ends none if the sentence goes on behind it.

    With ``phrases`` it is cut also where a sentence may end: at a space in Thai and Lao, at the Tibetan shad and the
    Burmese comma, behind an abbreviation.
    """
    start = 0
    capitals = not text.islower()
    pattern = _pattern(base_language(lang), phrases, max(text, default="") > "\uffff")
    for match in pattern.finditer(text):
        if text[start : match.end()].strip() and (phrases or not _goes_on(text, lang, start, match, capitals)):
            yield start, match.end()
            start = match.end()
    if text[start:].strip():
        yield start, len(text)


def sentences_marked(text: str, lang: str) -> bool:
    """Return whether marks or lines tell the sentences of a text, and not only spaces, which also separate phrases.

    Such scripts are Thai and Lao, and Khmer, Burmese and Tibetan where a sentence has no full stop.
    """
    space = re.compile(rf"(?:[{unspaced_letters()}\u0f00-\u0fbc][{marks()}]*) +[{unspaced_letters()}\u0f00-\u0fbc]")
    stop = re.compile(rf"[{_table()['always']}{_table()['before_space']}][\W_]*$")
    spans = (text[start:end] for start, end in sentence_spans(text, lang))
    return not any(space.search(span) and not stop.search(span) for span in spans)
