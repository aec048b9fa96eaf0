"""Cutting of a text that is too long, without losing or moving a character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

_JOINER = "\u200d"
# Code points of the first attempt at a piece.
_FIRST = 64
BETWEEN_WORDS = re.compile(r"\S\s+")
# After a comma, a colon or a stop: in most scripts with a space behind it, in some without
_CLOSING = "[\"'”’»›」』）】)]*"
BETWEEN_CLAUSES = re.compile(
    rf"[,;:.!?…]{_CLOSING}\s+|[、，；：。！？،؛؟।፣፤፥።\u104a\u104b\u17d4\u0f0d]{_CLOSING}(?!\d)\s*"
)


def fitting_spans(
    text: str, start: int, stop: int, fits: Callable[[str], bool], breaks: Sequence[re.Pattern[str]]
) -> Iterator[tuple[int, int]]:
    """Yield contiguous half-open spans of ``text[start:stop]``, each as long as fits.

    A span ends at the last match of a pattern, the first pattern with a match in the second half of the span, or the
    last pattern with any; else between two letters. A letter keeps its combining marks. White space around a span does
    not count. A single letter is a span even if it does not fit.
    """
    while start < stop:
        end = _longest(text, start, stop, fits)
        if end < stop:
            end = _last_break(text, start, end, breaks)
        yield start, end
        start = end


def _longest(text: str, start: int, stop: int, fits: Callable[[str], bool]) -> int:
    fitting, step = start, _FIRST
    while fits(text[start : (probe := min(stop, start + step))].strip()):
        if probe == stop:
            return stop
        fitting, step = probe, 2 * step
    too_long = probe
    while too_long - fitting > 1:
        middle = (fitting + too_long) // 2
        if fits(text[start:middle].strip()):
            fitting = middle
        else:
            too_long = middle
    end = fitting
    while end > start and _continues(text, end):
        end -= 1
    if end == start:
        end += 1
        while end < stop and _continues(text, end):
            end += 1
    while end < stop and text[end].isspace():
        end += 1
    return end


def _continues(text: str, position: int) -> bool:
    """Return whether the character belongs to the letter before it."""
    return unicodedata.category(text[position])[0] == "M" or _JOINER in text[position - 1 : position + 1]


def _last_break(text: str, start: int, end: int, breaks: Sequence[re.Pattern[str]]) -> int:
    piece = text[start:end]
    for pattern in breaks:
        last = max((match.end() for match in pattern.finditer(piece)), default=0)
        if last > len(piece) // 2 or (last and pattern is breaks[-1]):
            return start + last
    return end
