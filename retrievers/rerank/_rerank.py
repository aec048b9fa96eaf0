"""Rerankers: a second, better score for retrieved passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import CorpusError

Scores = NDArray[np.float64]


@runtime_checkable
class Reranker(Protocol):
    """Scores passages for queries; higher is better.

    ``name`` and ``revision`` identify the model with every setting that changes its scores. A score depends on the
    query and the passage only, unless the reranker has the attribute ``reads_lists`` and it is true: then it depends on
    the other passages, too.
    """

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Scores]:
        """Return, for every query, the scores of its passages in order."""
        ...


def checked_scores(reranker: Reranker, scores: Sequence[Scores], passages: Sequence[Sequence[str]]) -> list[Scores]:
    """Return the scores as float64; raise CorpusError unless there is one finite number per passage."""
    out = [np.asarray(row, dtype=np.float64).reshape(-1) for row in scores]
    if [len(row) for row in out] != [len(row) for row in passages]:
        raise CorpusError(
            f"reranker {reranker.name} returned a different number of scores than passages",
            "return one score per passage",
        )
    for number, row in enumerate(out):
        if not np.isfinite(row).all():
            place = int(np.flatnonzero(~np.isfinite(row))[0])
            raise CorpusError(
                f"reranker {reranker.name} gave the score {row[place]} (query {number}, passage {place} of the batch)",
                "models in half precision overflow on some hardware: choose another device, or check the model",
            )
    return out
