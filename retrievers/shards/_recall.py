"""Recall against exact search on sampled queries, collected in one pass over the vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrag_eval.retrievers.shards._codes import Vectors
from mrag_eval.retrievers.shards._ordering import Rows

# recall is measured at this many hits
K = 20
# depth, in multiples of K, to which equal scores are detected
_TIES = 5
# the 95th percentile of the normal distribution
_ONE_SIDED = 1.645


class QuerySample:
    """Sampled queries and their exact best among the vectors shown so far.

    Args:
        queries: their vectors.
        count: total number of vectors.
        own: the rows of queries that are stored vectors; each is its own best and is not counted.
    """

    def __init__(self, queries: Vectors, count: int, own: Rows | None = None) -> None:
        self.queries, self.own = np.ascontiguousarray(queries, dtype=np.float32), own
        self._most = min(K, count - (own is not None))
        self._depth = min(_TIES * K + 1, count)
        self._scores = np.full((len(queries), self._depth), -np.inf, dtype=np.float32)
        self._rows = np.full((len(queries), self._depth), -1, dtype=np.int64)

    def show(self, first: int, vectors: Vectors) -> None:
        """Add the vectors of the rows from ``first`` on, each once."""
        import faiss

        width = min(self._depth, len(vectors))
        scores, rows = faiss.knn(self.queries, vectors, width, metric=faiss.METRIC_INNER_PRODUCT)
        scores = np.concatenate([self._scores, scores], axis=1)
        rows = np.concatenate([self._rows, rows + first], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self._depth]
        self._scores = np.take_along_axis(scores, order, axis=1)
        self._rows = np.take_along_axis(rows, order, axis=1)

    def right(self) -> list[set[int]]:
        """Return, per query, the correct rows: the exact 20 best and all ties with the last of them."""
        out = []
        for number in range(len(self.queries)):
            scores, rows = self._scores[number], self._rows[number]
            if self.own is not None:
                other = rows != self.own[number]
                scores, rows = scores[other], rows[other]
            last = scores[min(K, len(scores)) - 1]
            # scores of equal vectors differ in the last digits, depending on their position in a block
            slack = 1e-6 * max(1.0, abs(float(last)))
            out.append(set(rows[scores >= last - slack].tolist()))
        return out

    def recalls(self, found: NDArray[np.int64], numbers: Rows, right: list[set[int]]) -> NDArray[np.float64]:
        """Return the share of the exact 20 best among the rows ``found``, for each of the queries ``numbers``."""
        shares = []
        for place, number in enumerate(numbers.tolist()):
            rows = set(found[place].tolist())
            if self.own is not None:
                rows.discard(int(self.own[number]))
            shares.append(min(len(rows & right[number]), self._most) / self._most)
        return np.asarray(shares)


def likely_at_least(recalls: NDArray[np.float64]) -> float:
    """Return a lower 95 % confidence bound of the mean recall (one-sided, normal).

    The cheapest sufficient setting is chosen among many; choosing by the mean itself would favour settings that do well
    on these queries by chance.
    """
    error = float(np.std(recalls, ddof=1)) / len(recalls) ** 0.5 if len(recalls) > 1 else 0.0
    return float(np.mean(recalls)) - _ONE_SIDED * error
