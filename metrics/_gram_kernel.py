"""Array kernel of the character n-gram measures, which cuts and counts whole columns of texts at once.

Most n-grams of a response occur in no answer, so they are first filtered by a table of hashed (row, n-gram) pairs of
the answers. The remaining ones are compared exactly, as integers that pack the code points without loss.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Code points per chunk: large enough to make numpy's overhead negligible, small enough for the caches.
_CHUNK = 1 << 18
_SLOT_BITS = 19
_SHIFT = np.uint32(32 - _SLOT_BITS)


class GramCounts(NamedTuple):
    """Multiset sizes: ``common`` and ``gold`` have one entry per answer, ``predicted`` one per prediction."""

    common: NDArray[np.int64]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]


def count_grams(
    predictions: Sequence[str], answers: Sequence[str], rows: NDArray[np.int64], n: int, *, normalized: bool = False
) -> GramCounts:
    """Count n-grams of predictions and answers, and those that each answer shares with its prediction.

    Args:
        predictions: N texts.
        answers: M texts, ordered by row.
        rows: shape (M,), the prediction each answer belongs to; non-decreasing.
        n: n-gram length in code points.
        normalized: the texts are already normalised; only whitespace separates tokens.
    """
    common = np.zeros(len(answers), dtype=np.int64)
    gold = np.zeros(len(answers), dtype=np.int64)
    predicted = np.zeros(len(predictions), dtype=np.int64)
    # Freeing an untouched block of this size makes glibc keep the chunks' arrays for reuse; it would otherwise return
    # them to the kernel after each chunk, and faulting them in again takes a third of the time.
    np.empty(_CHUNK * 64, dtype=np.uint8)
    sieve = _Sieve()
    for first, last, a_first, a_last in _chunks(predictions, answers, rows):
        golds, own_rows = answers[a_first:a_last], rows[a_first:a_last] - first
        part = _count_chunk(predictions[first:last], golds, own_rows, n, normalized, sieve)
        common[a_first:a_last], gold[a_first:a_last], predicted[first:last] = part
    return GramCounts(common, gold, predicted)


def _chunks(
    predictions: Sequence[str], answers: Sequence[str], rows: NDArray[np.int64]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield row and answer ranges of about :data:`_CHUNK` code points; a row is never split."""
    lengths = np.fromiter(map(len, predictions), dtype=np.int64, count=len(predictions))
    answer_lengths = np.fromiter(map(len, answers), dtype=np.int64, count=len(answers))
    lengths += np.bincount(rows, weights=answer_lengths, minlength=len(predictions)).astype(np.int64)
    ends = np.cumsum(lengths)
    first = 0
    while first < len(predictions):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK, side="right")))
        a_first, a_last = np.searchsorted(rows, [first, last])
        yield first, last, int(a_first), int(a_last)
        first = last


class _Sieve:
    """Two tables over hashes, kept from chunk to chunk: whether a slot is taken, and by which item of the answers."""

    def __init__(self) -> None:
        self.taken = np.zeros(1 << _SLOT_BITS, dtype=np.bool_)
        self.by = np.zeros(1 << _SLOT_BITS, dtype=np.int32)


class _Items(NamedTuple):
    """n-grams with the row they belong to and their slot in the sieve; one entry per occurrence."""

    gram: NDArray[np.uint64]
    row: NDArray[np.int64]
    slot: NDArray[np.uint32]


def _count_chunk(
    predictions: Sequence[str],
    answers: Sequence[str],
    rows: NDArray[np.int64],
    n: int,
    normalized: bool,
    sieve: _Sieve,
) -> tuple[Array, Array, Array]:
    n_rows = len(predictions)
    codes, ends, starts, lengths, last = tokenize([*predictions, *answers], normalized=normalized)
    counts = np.maximum(lengths - (n - 1), 1)
    items = np.diff(np.concatenate([[0], np.cumsum(counts)])[last], prepend=0)
    predicted, gold = items[:n_rows], items[n_rows:]
    if not predicted.any() or not gold.any():
        return np.zeros(len(answers), dtype=np.int64), gold, predicted

    codes = np.concatenate([codes, np.zeros(n, dtype=np.uint32)])
    salts = np.arange(1, n_rows + 1, dtype=np.uint32) * np.uint32(0x9E3779B1)
    first_gold = int(last[n_rows - 1])
    gold_columns = _columns(codes, _gram_starts(starts[first_gold:], counts[first_gold:]), n)
    gold_answer = np.repeat(np.arange(len(answers)), gold)
    gold_row = rows[gold_answer]
    gold_slot = (_hash(gold_columns) ^ salts[gold_row]) >> _SHIFT
    sieve.taken[gold_slot] = True

    # all windows of the predictions; those that reach beyond their token match nothing
    split = int(ends[n_rows - 1]) + 1
    slots = _hash([codes[offset : split + offset] for offset in range(n)])
    slots ^= np.repeat(salts, np.diff(ends[:n_rows], prepend=-1))
    slots >>= _SHIFT
    found = np.flatnonzero(look_up(sieve.taken, slots))
    for offset in range(n):
        found = found[codes[found + offset] != 0]
    # tokens shorter than n, each one item as a whole
    is_short = np.flatnonzero(lengths[:first_gold] < n)
    short = starts[is_short]
    short_row = owner(short, ends[:n_rows])
    short_slot = (_hash(_columns(codes, short, n)) ^ salts[short_row]) >> _SHIFT
    hit = np.flatnonzero(sieve.taken.take(short_slot))
    sieve.taken[gold_slot] = False

    at = np.concatenate([found, short[hit]])
    grams = _pack([np.concatenate(pair) for pair in zip(gold_columns, _columns(codes, at, n), strict=True)])
    found_items = _Items(
        grams[len(gold_row) :],
        np.concatenate([owner(found, ends[:n_rows]), short_row[hit]]),
        np.concatenate([slots[found], short_slot[hit]]),
    )
    gold_id, found_id = _identify(_Items(grams[: len(gold_row)], gold_row, gold_slot), found_items, sieve)
    return _common(gold_id, gold_answer, found_id, len(answers)), gold, predicted


def _gram_starts(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def _columns(codes: NDArray[np.uint32], at: NDArray[np.int64], n: int) -> list[NDArray[np.uint32]]:
    """Return n columns of code points from each position on; 0 from the end of the token on."""
    columns = [codes[at]]
    for offset in range(1, n):
        column = codes[at + offset]
        column[columns[-1] == 0] = 0
        columns.append(column)
    return columns


def _hash(columns: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    factor = 0x9E3779B1
    total = columns[0] * np.uint32(factor)
    term = np.empty_like(total)
    for column in columns[1:]:
        factor = factor * 0x85EBCA77 & 0xFFFFFFFF
        np.multiply(column, np.uint32(factor), out=term)
        total += term
    return total


def _pack(columns: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint64]:
    """Return one integer per row of code points, equal exactly if the rows are; ranks are recomputed before an
    overflow.
    """
    packed = columns[0].astype(np.uint64)
    bits = BITS
    for column in columns[1:]:
        if bits + BITS > 64:
            distinct, ranks = np.unique(packed, return_inverse=True)
            packed = ranks.astype(np.uint64)
            bits = len(distinct).bit_length()
        packed = (packed << np.uint64(BITS)) | column
        bits += BITS
    return packed


def _identify(gold: _Items, found: _Items, sieve: _Sieve) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return an id for each distinct (row, n-gram) of the answers, and the same ids for ``found`` (-1: in no answer).

    The id is the position of the item that took the slot. The few items that lost their slot are found by search.
    """
    sieve.by[gold.slot] = np.arange(len(gold.gram), dtype=np.int32)
    gold_id, found_id = sieve.by.take(gold.slot), sieve.by.take(found.slot)
    lost = np.flatnonzero((gold.gram[gold_id] != gold.gram) | (gold.row[gold_id] != gold.row))
    left = np.flatnonzero((gold.gram[found_id] != found.gram) | (gold.row[found_id] != found.row))
    found_id[left] = -1
    if len(lost):
        contested = gold.slot[lost]
        sieve.taken[contested] = True
        left = left[sieve.taken[found.slot[left]]]
        sieve.taken[contested] = False
        order = lost[np.lexsort((gold.row[lost], gold.gram[lost]))]
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = np.diff(gold.gram[order]).astype(np.bool_) | np.diff(gold.row[order]).astype(np.bool_)
        # equal items share the position of the first
        heads = order[is_new]
        gold_id[order] = heads[np.cumsum(is_new) - 1]
        grams = np.unique(gold.gram[heads])
        n_rows = int(max(gold.row.max(), found.row.max(initial=0))) + 1
        keys = np.searchsorted(grams, gold.gram[heads]) * n_rows + gold.row[heads]
        rank = _find(grams, found.gram[left])
        left, rank = left[rank >= 0], rank[rank >= 0]
        spot = _find(keys, rank * n_rows + found.row[left])
        found_id[left[spot >= 0]] = heads[spot[spot >= 0]]
    return gold_id, found_id


def _find(ascending: Array, wanted: Array) -> NDArray[np.int64]:
    """Return the position of each wanted value, -1 if absent."""
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[at] == wanted, at, -1)


def _common(
    gold_id: NDArray[np.int32], gold_answer: NDArray[np.int64], found_id: NDArray[np.int32], n_answers: int
) -> NDArray[np.int64]:
    """Return the size of the multiset intersection of each answer with its row's prediction."""
    have = np.bincount(found_id[found_id >= 0], minlength=len(gold_id))
    # an n-gram that occurs once in all answers of its row needs no counting
    times = np.bincount(gold_id, minlength=len(gold_id))
    repeated = np.flatnonzero(times[gold_id] > 1)
    hit = (have > 0) & (times == 1)
    common = np.bincount(gold_answer[hit[gold_id]], minlength=n_answers)
    keys, needed = np.unique(gold_answer[repeated] * len(gold_id) + gold_id[repeated], return_counts=True)
    answer, item = np.divmod(keys, len(gold_id))
    return common + np.bincount(answer, weights=np.minimum(have[item], needed), minlength=n_answers).astype(np.int64)


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
