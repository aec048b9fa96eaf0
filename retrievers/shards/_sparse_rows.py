"""The vectors of a sparse shard by passage: its postings transposed on disk."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.platform import read_array
from mrag_eval.retrievers.embedding._sparse_encoders import SparseVector
from mrag_eval.retrievers.shards._sparse_shard import FILES

_POSTINGS = 4 << 20
_PASSAGES = 4_096


def vectors_by_passage(shard: Path, count: int, scratch: Path) -> Iterator[list[SparseVector]]:
    """Yield the vectors of ``count`` passages, 4,096 at a time, terms ascending; ``scratch`` is a working folder.

    Two passes over the postings. Memory grows with the vocabulary and the passages (16 bytes each), not with the
    postings.
    """
    starts, rows, weights = (read_array(shard / name) for name in FILES)
    total = int(starts[-1])
    lengths = np.zeros(count, dtype=np.int64)
    for first in range(0, total, _POSTINGS):
        lengths += np.bincount(rows[first : min(first + _POSTINGS, total)], minlength=count)
    begins = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(lengths, out=begins[1:])
    scratch.mkdir(parents=True, exist_ok=True)
    kept = max(total, 1)
    terms: Any = np.memmap(scratch / "terms", dtype="<i4", mode="w+", shape=(kept,))
    values: Any = np.memmap(scratch / "weights", dtype="<f4", mode="w+", shape=(kept,))
    cursor = begins[:-1].copy()
    for first in range(0, total, _POSTINGS):
        last = min(first + _POSTINGS, total)
        passage = np.asarray(rows[first:last])
        term = np.searchsorted(starts, np.arange(first, last), side="right") - 1
        order = np.argsort(passage, kind="stable")
        distinct, at, times = np.unique(passage[order], return_index=True, return_counts=True)
        place = np.repeat(cursor[distinct] - at, times) + np.arange(len(order))
        terms[place] = term[order]
        values[place] = np.asarray(weights[first:last])[order]
        cursor[distinct] += times
    for low in range(0, count, _PASSAGES):
        bounds = begins[low : low + _PASSAGES + 1].tolist()
        yield [
            SparseVector(np.array(terms[a:b], dtype=np.int32), np.array(values[a:b], dtype=np.float32))
            for a, b in pairwise(bounds)
        ]
