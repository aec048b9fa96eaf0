"""Hits with their texts, from the scores and rows of ranked lists."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mrag_eval.core import Hit
from mrag_eval.retrievers.index._passages import PassageRows, Record
from mrag_eval.retrievers.shards._ordering import Rows, Scores


def hits_of(store: PassageRows, scores: Scores, rows: Rows) -> list[list[Hit]]:
    """Return the hits of every list (queries × k); row -1 is an empty place. Each passage is read once."""
    present = rows >= 0
    unique, where = np.unique(rows[present], return_inverse=True)
    places = iter(where.reshape(-1).tolist())
    values = iter(scores[present].tolist())
    with _no_collection():
        known: list[tuple[str, Record]] = [("", ("", "", "", ""))] * len(unique)
        for lang, positions, records in store.records(unique):
            for position, record in zip(positions.tolist(), records, strict=True):
                known[position] = (lang, record)
        out: list[list[Hit]] = []
        for number in present.sum(axis=1).tolist():
            hits: list[Hit] = []
            for rank in range(1, number + 1):
                lang, (identifier, doc_id, title, text) = known[next(places)]
                hits.append(Hit(identifier, lang, text, next(values), rank, title, doc_id))
            out.append(hits)
    return out


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the garbage collector, which would scan tens of thousands of new hits repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
