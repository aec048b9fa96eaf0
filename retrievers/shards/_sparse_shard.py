"""Shards of learned sparse vectors: memory-mapped postings by term, written in constant memory.

During a build, the number of terms and the (term, weight) pairs of each passage are appended to two files.
:func:`finish` sorts the pairs by term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import CorpusError, mapped_array, save_array
from mrag_eval.retrievers.embedding._sparse_encoders import SparseVector

_BLOCK = 32_768
_PAIR = np.dtype([("term", "<i4"), ("weight", "<f4")])
FILES = ("starts.npy", "rows.npy", "weights.npy")


def encode(vectors: Sequence[SparseVector]) -> tuple[bytes, bytes]:
    """Return the bytes to append to the files of lengths (int32) and of pairs."""
    lengths = np.array([len(vector.terms) for vector in vectors], "<i4")
    pairs = np.empty(int(lengths.sum()), _PAIR)
    if len(pairs):
        pairs["term"] = np.concatenate([vector.terms for vector in vectors])
        pairs["weight"] = np.concatenate([vector.weights for vector in vectors])
    return lengths.tobytes(), pairs.tobytes()


def decode(content: bytes, count: int) -> list[SparseVector]:
    """Return the vectors of ``count`` passages from their lengths and pairs."""
    ends = np.cumsum(np.frombuffer(content, "<i4", count))
    pairs = np.frombuffer(content, _PAIR, offset=4 * count)
    return [
        SparseVector(pairs["term"][start:end].astype(np.int32), pairs["weight"][start:end].astype(np.float32))
        for start, end in pairwise([0, *ends.tolist()])
    ]


def _blocks(lengths_path: Path, pairs_path: Path) -> Iterator[tuple[NDArray[np.int32], NDArray[Any]]]:
    with lengths_path.open("rb") as lengths_file, pairs_path.open("rb") as pairs_file:
        while raw := lengths_file.read(4 * _BLOCK):
            lengths = np.frombuffer(raw, "<i4")
            yield lengths, np.frombuffer(pairs_file.read(_PAIR.itemsize * int(lengths.sum())), _PAIR)


def finish(folder: Path, lengths_path: Path, pairs_path: Path, dim: int) -> None:
    """Write the shard: starts of each term's postings, their passages (ascending) and weights.

    Two passes over the files; memory grows with the vocabulary and one block of passages, not with the corpus.
    """
    folder.mkdir(parents=True, exist_ok=True)
    frequencies = np.zeros(dim, dtype=np.int64)
    for _, pairs in _blocks(lengths_path, pairs_path):
        frequencies += np.bincount(pairs["term"], minlength=dim)
    starts = np.zeros(dim + 1, dtype=np.int64)
    np.cumsum(frequencies, out=starts[1:])
    save_array(folder / "starts.npy", starts)
    # an empty file cannot be mapped, so a shard without terms keeps one unused entry
    shape = (max(int(starts[-1]), 1),)
    rows = mapped_array(folder / "rows.npy", np.int32, shape)
    weights = mapped_array(folder / "weights.npy", np.float32, shape)
    cursor = starts[:-1].copy()
    first = 0
    for lengths, pairs in _blocks(lengths_path, pairs_path):
        passage = np.repeat(np.arange(first, first + len(lengths)), lengths)
        order = np.argsort(pairs["term"], kind="stable")
        distinct, at, times = np.unique(pairs["term"][order], return_index=True, return_counts=True)
        place = np.repeat(cursor[distinct] - at, times) + np.arange(len(order))
        rows[place] = passage[order]
        weights[place] = pairs["weight"][order]
        cursor[distinct] += times
        first += len(lengths)
    rows.flush()
    weights.flush()


class SparseShard:
    """The passages of one language, scored by inner product with a query's sparse vector.

    Args:
        folder: the three files.
        count: expected number of passages.
        dim: terms of the vocabulary.
        first_row: the row of the first passage in the index.
        mmap: map the postings instead of reading them.
    """

    def __init__(self, folder: Path, count: int, dim: int, *, first_row: int = 0, mmap: bool = True) -> None:
        self.folder, self.count, self.dim, self.first_row, self.mmap = folder, count, dim, first_row, mmap
        self._arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None

    def _opened(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        if self._arrays is None:
            mode: Any = "r" if self.mmap else None
            try:
                starts, rows, weights = (
                    np.load(self.folder / name, mmap_mode=mode, allow_pickle=False) for name in FILES
                )
            except (OSError, ValueError) as error:
                raise CorpusError(f"shard {self.folder} cannot be read: {error}", "rebuild the index") from error
            if len(starts) != self.dim + 1:
                raise CorpusError(
                    f"shard {self.folder} has {len(starts) - 1} terms, the manifest says {self.dim}",
                    "rebuild the index",
                )
            self._arrays = (starts, rows, weights)
        return self._arrays

    def scores(self, query: SparseVector) -> NDArray[np.float32] | None:
        """Return the inner product of every passage with the query, or None for a query without terms."""
        if not len(query.terms):
            return None
        starts, rows, weights = self._opened()
        out = np.zeros(self.count, dtype=np.float32)
        for term, weight in zip(query.terms.tolist(), query.weights, strict=True):
            postings = slice(int(starts[term]), int(starts[term + 1]))
            out[rows[postings]] += weight * weights[postings]
        return out
