"""Columns of texts as arrays of code points, normalised as in the paper, token by token.

The normaliser becomes a table look-up (lower case and character class), a compression (punctuation) and a mask
(articles, whitespace). It equals :func:`mrag_eval.metrics.normalize_answer` on every string.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

_BLOCK = 1 << 14
# Whitespace for str.split, so it ends tokens as well as texts; in texts that contain it, a space replaces it.
_END = "\x1e"
# A table entry is the lower-cased code point plus one (0 is reserved for "no character"), with its class in the upper
# bits.
BITS = 21
_CODE = np.uint32((1 << BITS) - 1)
_OTHER, _SPACE, _DELETED = (np.uint32(kind << BITS) for kind in (1, 2, 3))
_UNSEEN = np.uint32(0xFFFFFFFF)
# The only characters that str.lower maps by context (final sigma) or to two code points.
_LOWERED_BY_PYTHON = ("\u03a3", "\u0130")
_ARTICLES = tuple(tuple(ord(char) + 1 for char in word) for word in ("a", "an", "the"))


class Tokens(NamedTuple):
    """Texts as code points.

    Attributes:
        codes: code point + 1 of every character, 0 for whitespace and the end of each text.
        ends: position of the end of each text in ``codes``.
        starts: position of each token, ascending.
        lengths: its number of code points.
        last: for each text, the number of tokens up to its end.
    """

    codes: NDArray[np.uint32]
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    last: NDArray[np.int64]


def tokenize(texts: Sequence[str], *, normalized: bool) -> Tokens:
    """Return the tokens of all texts; ``normalized`` texts are only split at whitespace."""
    joined = _END.join(texts) + _END
    if not normalized and any(char in joined for char in _LOWERED_BY_PYTHON):
        joined = joined.lower()
    entries = _table(normalized).take(np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4"))
    if not normalized:
        entries = entries[entries < _DELETED]
        _blank_articles(entries)
    # every text ends in a gap, so the stretches between gaps are the tokens
    gaps = np.flatnonzero(entries >= _SPACE)
    ends = gaps[entries[gaps] == _SPACE + np.uint32(ord(_END) + 1)]
    if len(ends) != len(texts):
        return tokenize([text.replace(_END, " ") for text in texts], normalized=normalized)
    entries &= _CODE
    entries[gaps] = 0
    lengths = np.diff(gaps, prepend=-1)
    lengths -= 1
    kept = np.flatnonzero(lengths)
    lengths = lengths[kept]
    starts = gaps[kept] - lengths
    return Tokens(entries, ends, starts, lengths, np.searchsorted(starts, ends))


def look_up(table: NDArray[Scalar], index: NDArray[np.uint32]) -> NDArray[Scalar]:
    """Return ``table[index]``, block by block: numpy widens the whole index first, which costs more than the
    look-up.
    """
    found = np.empty(len(index), dtype=table.dtype)
    for first in range(0, len(index), _BLOCK):
        block = slice(first, first + _BLOCK)
        table.take(index[block], out=found[block], mode="clip")
    return found


def owner(positions: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the text that contains each of the ascending positions."""
    return np.repeat(np.arange(len(ends)), np.diff(np.searchsorted(positions, ends), prepend=0))


class _Table:
    """Map of code point -> entry, filled as characters occur."""

    def __init__(self, normalized: bool) -> None:
        self._normalized = normalized
        self._entries = np.full(0x110000, _UNSEEN, dtype=np.uint32)

    def take(self, codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the entry of each code point."""
        found = look_up(self._entries, codes)
        if found.size and found.max() == _UNSEEN:
            for code in np.unique(codes[found == _UNSEEN]).tolist():
                self._entries[code] = self._entry(chr(code))
            found = look_up(self._entries, codes)
        return found

    def _entry(self, char: str) -> int:
        if self._normalized:
            return (ord(char) + 1) | (int(_SPACE) if char.isspace() else 0)
        if char in string.punctuation:
            return int(_DELETED)
        lowered = char.lower()
        kind = 0 if lowered.isalnum() else int(_SPACE if lowered.isspace() else _OTHER)
        return (ord(lowered) + 1) | kind


@cache
def _table(normalized: bool) -> _Table:
    return _Table(normalized)


def _blank_articles(entries: NDArray[np.uint32]) -> None:
    """Turn the words a, an, the into whitespace; as in the regular expression, words are runs of letters and digits."""
    initial = (entries == _ARTICLES[0][0]) | (entries == _ARTICLES[2][0])
    initial[1:] &= entries[:-1] >= _OTHER
    begins = np.flatnonzero(initial)
    for word in _ARTICLES:
        # every text ends in a gap, so a match cannot run past the end
        at = begins[begins + len(word) < len(entries)]
        for offset, code in enumerate(word):
            at = at[entries[at + offset] == code]
        at = at[entries[at + len(word)] >= _OTHER]
        for offset in range(len(word)):
            entries[at + offset] = _SPACE
