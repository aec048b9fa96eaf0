"""Sparse vectors by passage, from the postings of a lexical shard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import read_array

# postings read at a time
_BLOCK = 1 << 22

BM25_FILES = ("indptr.csc.index.npy", "indices.csc.index.npy", "data.csc.index.npy")


def passage_vectors(
    folder: Path, files: tuple[str, str, str], first: int, last: int, *, room: int = 1 << 24
) -> Iterator[dict[int, float]]:
    """Yield the weights by term of passages ``first`` to ``last - 1`` of a shard.

    ``files`` are the starts of the terms' postings, the passages and the weights. Memory holds ``room`` postings; all
    postings are read once for each such part.
    """
    starts, passages, weights = (read_array(folder / name) for name in files)
    total = int(starts[-1])
    lengths = np.zeros(last - first, dtype=np.int64)
    for start in range(0, total, _BLOCK):
        block = np.asarray(passages[start : min(start + _BLOCK, total)])
        here = block[(block >= first) & (block < last)]
        lengths += np.bincount(here - first, minlength=last - first)
    held = np.cumsum(lengths)
    low = 0
    while low < last - first:
        before = int(held[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(held, before + room, side="right")))
        yield from _window(starts, passages, weights, first + low, first + high)
        low = high


def _window(
    starts: NDArray[np.int64], passages: NDArray[np.int32], weights: NDArray[np.float32], low: int, high: int
) -> Iterator[dict[int, float]]:
    total = int(starts[-1])
    rows, terms, values = [], [], []
    for start in range(0, total, _BLOCK):
        block = np.asarray(passages[start : min(start + _BLOCK, total)])
        at = np.flatnonzero((block >= low) & (block < high))
        rows.append(block[at] - low)
        terms.append(np.searchsorted(starts, at + start, side="right") - 1)
        values.append(np.asarray(weights[start : start + len(block)])[at])
    if not rows:
        yield from ({} for _ in range(low, high))
        return
    row, term, value = np.concatenate(rows), np.concatenate(terms), np.concatenate(values)
    order = np.argsort(row, kind="stable")
    term, value = term[order], value[order]
    ends = np.cumsum(np.bincount(row, minlength=high - low)).tolist()
    begin = 0
    for end in ends:
        yield dict(zip(term[begin:end].tolist(), value[begin:end].tolist(), strict=True))
        begin = end
