"""Verbatim quotes: which quotes of a reply are in the passages shown, and how much of it is copied from them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal

from mrag_eval.metrics._citations import without_citations
from mrag_eval.metrics._punctuation import Punctuation
from mrag_eval.text import HAN_KANA, HANGUL, marks, unspaced_letters

Source = Literal["shown", "elsewhere", "stitched", "nowhere"]
# A word weighs as much as three characters of a script without spaces, as in the windows of language_mix.
_WORD = 3
# The least weight of a quote, and of each part of one that is stitched: three words, or nine characters.
LEAST_QUOTED = 3 * _WORD
# The least weight of a copy without quotation marks: eight words, or 24 characters.
LEAST_COPIED = 8 * _WORD
# Every copy of that weight holds a whole block of this one, wherever blocks begin.
_BLOCK = 10
# Opening marks (Quotation_Mark of Unicode, PropList.txt, and ornaments), each with those that close it.
_MARKS = {
    "“": "”", "„": "“”\"", "”": "”", "‟": "”", "⹂": "”", "«": "»", "»": "«»", "‹": "›", "›": "‹›", "❝": "❞", "❛": "❜",
    "「": "」", "『": "』", "﹁": "﹂", "﹃": "﹄", "｢": "｣", "〝": "〞〟",
}  # fmt: skip
# Marks that are also apostrophes, inches or signs of abbreviations, in a word or at its end.
_SINGLE = {"‘": "’", "‚": "‘’", "‛": "’"}
_STRAIGHT = '"＂״'
_PUNCTUATION = Punctuation()
# İ and ı are another letter's cases in Turkish, and that letter elsewhere.
_CASES = {0x307: None, 0x131: "i"}
_OMISSION = re.compile(r"\[?(?:\.{3,}|…+|⋯+)\]?")


@dataclass(frozen=True, slots=True)
class Quotes:
    """The quotes of a reply, each in the words that are compared, with where it stands."""

    found: tuple[tuple[str, Source], ...]

    def share(self, source: Source) -> float | None:
        """Return the share of the quotes that stand there, in 0..1; None without a quote."""
        return sum(place == source for _, place in self.found) / len(self.found) if self.found else None


def verbatim_quotes(reply: str, passages: Iterable[str], elsewhere: Container[str] = ()) -> Quotes:
    """Return where the quotes of a reply stand.

    A quote is what stands between quotation marks of any script, or in a block quote of Markdown, and has three words
    or nine characters of a script without spaces; shorter ones are names and irony. The apostrophe (') is no quotation
    mark. Parts on both sides of an omission (``…``) are two quotes. Quotes and passages are compared word by word,
    without case, punctuation, citations and Unicode forms.

    ``shown``: the whole quote is in one passage. ``elsewhere``: it is in ``elsewhere``, the quotes (as ``found`` has
    them) that other passages of the log hold. ``stitched``: it is not in one piece, and two parts of it, each of which
    would be a quote, are in passages. ``nowhere``: none of these. A paraphrase between quotation marks counts as
    nowhere.

    Args:
        reply: the reply.
        passages: texts that were shown.
        elsewhere: quotes found in other passages of the log.
    """
    quotes = _quoted(reply)
    if not quotes:
        return Quotes(())
    held = _joined(passages)
    return Quotes(tuple((" ".join(quote), _source(quote, held, elsewhere)) for quote in quotes))


def _source(quote: list[str], held: str, elsewhere: Container[str]) -> Source:
    if _within(quote, held):
        return "shown"
    if " ".join(quote) in elsewhere:
        return "elsewhere"
    return "stitched" if _stitched(quote, held) else "nowhere"


def copied_share(reply: str, passages: Iterable[str]) -> float | None:
    """Return the share of a reply, by the weight of its words, in runs copied from a passage, marked as quotes or not.

    A run has at least eight words, or 24 characters of a script without spaces, in the order of the passage; words are
    compared as in :func:`verbatim_quotes`. None for a reply that is shorter.
    """
    words = plain_words(reply)
    weights = [0, *accumulate(map(_weight, words))]
    if weights[-1] < LEAST_COPIED:
        return None
    held = _joined(passages)
    copied = start = end = 0
    for stop in range(1, len(words) + 1):
        if stop <= start or weights[stop] - weights[start] < _BLOCK:
            continue
        if not _within(words[start:stop], held):
            start = stop
            continue
        first = start
        while first > end and _within(words[first - 1 : stop], held):
            first -= 1
        end = _longest(words, first, stop, held)
        if weights[end] - weights[first] >= LEAST_COPIED:
            copied += weights[end] - weights[first]
        start = end
    return copied / weights[-1]


def held_elsewhere(quotes: Iterable[str], passages: Iterable[str]) -> frozenset[str]:
    """Return those of the quotes, as :class:`Quotes` has them, that one of the passages holds."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for quote in dict.fromkeys(quotes):
        # the longest pair of words is rarely in a passage without the quote
        pair = max(pairwise(quote.split(" ")), key=lambda words: sum(map(len, words)))
        wanted.setdefault(pair, []).append(quote)
    found: set[str] = set()
    for passage in passages if wanted else ():
        words = plain_words(passage)
        if pairs := [pair for pair in pairwise(words) if pair in wanted]:
            held = f" {' '.join(words)} "
            found |= {quote for pair in pairs for quote in wanted[pair] if f" {quote} " in held}
    return frozenset(found)


def _quoted(reply: str) -> list[list[str]]:
    """Return the words of each quote that is long enough, in order, each once."""
    spans = (next(filter(None, match.groups())) for match in _quotation().finditer(reply))
    parts = (tuple(plain_words(part)) for span in spans for part in _OMISSION.split(span))
    return [list(words) for words in dict.fromkeys(parts) if sum(map(_weight, words)) >= LEAST_QUOTED]


@lru_cache(maxsize=1)
def _quotation() -> re.Pattern[str]:
    # a mark without its partner must not reach into the next line
    spans = [rf"{opens}([^{opens}{closes}\n]+)[{closes}]" for opens, closes in _MARKS.items()]
    # where words have no spaces between them, or no apostrophes, a mark beside a letter may open and close
    letter = rf"[^\W_{HAN_KANA}{HANGUL}{unspaced_letters()}]"
    for opens, closes in (*_SINGLE.items(), *zip(_STRAIGHT, _STRAIGHT, strict=True)):
        inside = rf"(?:[^{opens}{closes}\n]|(?<={letter})[{closes}](?={letter}))+?"
        spans.append(rf"(?<!{letter}){opens}(?=\S)({inside})(?<=\S)[{closes}](?!{letter})")
    for mark in _STRAIGHT:
        # a letter may be joined to one end of a quote: prefixes in Hebrew, suffixes in Turkish
        inside = rf"{mark}(?=\S)([^{mark}„\n]+)(?<=\S){mark}"
        spans += [rf"(?<!{letter}){inside}", rf"(?<={letter}){inside}(?!{letter})"]
    marks = "|".join((*spans, r"``((?:[^`'\n]|'(?!'))+)''"))
    # most places of a reply are told by the first test
    return re.compile(rf"(?=[{''.join((*_MARKS, *_SINGLE))}{_STRAIGHT}`])(?:{marks})|^ *>[ \t]+(\S.*)$", re.MULTILINE)


@lru_cache(maxsize=1)
def _character() -> re.Pattern[str]:
    return re.compile(f"[{HAN_KANA}{unspaced_letters()}][{marks()}]*")


def plain_words(text: str) -> list[str]:
    """Return the words of a text without its citations, and characters of scripts without spaces, in one form."""
    plain = unicodedata.normalize("NFKC", without_citations(text)).casefold()
    plain = unicodedata.normalize("NFKC", plain).translate(_CASES).translate(_PUNCTUATION)
    if not plain.isascii():
        plain = _character().sub(r" \g<0> ", plain)
    return plain.split()


def is_character(word: str) -> bool:
    """Return whether a word of :func:`plain_words` is a character of a script without spaces."""
    return _character().match(word) is not None


def _weight(word: str) -> int:
    return 1 if is_character(word) else _WORD


def _joined(passages: Iterable[str]) -> str:
    # no word is a line end, so that nothing stands across two passages
    return "\n".join(f" {' '.join(plain_words(passage))} " for passage in passages)


def _within(words: Sequence[str], held: str) -> bool:
    return f" {' '.join(words)} " in held


def _stitched(quote: list[str], held: str) -> bool:
    weights = [0, *accumulate(map(_weight, quote))]
    first = next(n for n, weight in enumerate(weights) if weight >= LEAST_QUOTED)
    last = max(n for n, weight in enumerate(weights) if weights[-1] - weight >= LEAST_QUOTED)
    if last < first or not _within(quote[:first], held):
        return False
    # the longer the first part, the shorter the second
    return _within(quote[min(_longest(quote, 0, first, held), last) :], held)


def _longest(words: Sequence[str], start: int, stop: int, held: str) -> int:
    """Return the end of the longest run from ``start`` that ``held`` contains; it contains the one to ``stop``."""
    step = 1
    while stop + step <= len(words) and _within(words[start : stop + step], held):
        stop, step = stop + step, 2 * step
    while step > 1:
        step //= 2
        if stop + step <= len(words) and _within(words[start : stop + step], held):
            stop += step
    return stop
