"""One language of a Milvus collection, searched by inner product: dense vectors, or sparse ones for lexical scores.

The language is the collection's partition key, so a search reads that language's partition alone. Lexical scores are
inner products too: a passage's sparse vector holds the score of each of its tokens, a query's how often it has each. So
a lexical search gives BM25's scores over the very tokens and statistics of the index that was loaded, on milvus-lite
and on a cluster alike, which Milvus's own BM25 function does not: milvus-lite reckons its statistics per segment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mrag_eval.retrievers.milvus._milvus_client import Connection
from mrag_eval.retrievers.shards._ordering import IdsOf, Rows, Scores, top_k

DENSE, SPARSE = "dense", "sparse"

# further results asked for, to see whether the k-th ties with what follows
_MARGIN = 8
# Milvus returns no more places of one query
_DEEPEST = 16_384
_QUERIES = 256
# rows in one filter
_LISTED = 10_000
# The last digits of a 32-bit inner product depend on the block of a matrix product that it came from: scores are
# multiples of 2^-20 of the largest there could be.
_STEPS = 20


class MilvusShard:
    """The passages of one language.

    Args:
        connection, collection: where they are.
        lang: the language.
        first_row, count: its rows in the collection.
        max_norm: the largest Euclidean norm among the vectors of all languages.
        search: parameters of the vector index for searching (``ef`` of HNSW).
    """

    def __init__(
        self,
        connection: Connection,
        collection: str,
        lang: str,
        first_row: int,
        count: int,
        max_norm: float = 1.0,
        search: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection, self._collection, self.lang = connection, collection, lang
        self.first_row, self.count, self.max_norm = first_row, count, max_norm
        self._params = dict(search or {})

    def search(
        self,
        field: str,
        vectors: Sequence[Any],
        k: int,
        ids_of: IdsOf,
        candidates: Sequence[Rows | None] | None = None,
    ) -> tuple[Scores, Rows]:
        """Scores and rows (queries × k) of the best passages; row -1 and score -inf where there are fewer.

        Scores are rounded to what 32 bits tell apart, so that equal vectors tie. In field ``sparse`` a passage without
        a term of the query is no hit, and a query without terms has none.

        Args:
            field: ``dense`` (arrays) or ``sparse`` (mappings term -> weight).
            vectors: one a query.
            candidates: per query the rows the search is restricted to (those of other shards are ignored), or None.
        """
        scores = np.full((len(vectors), k), -np.inf)
        rows = np.full((len(vectors), k), -1, dtype=np.int64)
        together: dict[bytes | None, list[int]] = {}
        wanted: dict[bytes | None, Rows | None] = {}
        for position, vector in enumerate(vectors):
            if field == SPARSE and not vector:
                continue
            chosen = None if candidates is None else candidates[position]
            if chosen is not None:
                chosen = np.unique(chosen[(chosen >= self.first_row) & (chosen < self.first_row + self.count)])
            key = None if chosen is None else chosen.tobytes()
            wanted[key] = chosen
            together.setdefault(key, []).append(position)
        for key, positions in together.items():
            for start in range(0, len(positions), _QUERIES):
                part = positions[start : start + _QUERIES]
                best, at = self._best(field, [vectors[position] for position in part], k, ids_of, wanted[key])
                scores[part, : best.shape[1]], rows[part, : at.shape[1]] = best, at
        return scores, rows

    def _best(
        self, field: str, vectors: Sequence[Any], k: int, ids_of: IdsOf, chosen: Rows | None
    ) -> tuple[Scores, Rows]:
        filters = [f"lang == {json.dumps(self.lang)}"]
        if chosen is not None:
            blocks = [chosen[start : start + _LISTED] for start in range(0, len(chosen), _LISTED)]
            filters = [f"{filters[0]} and row in {block.tolist()}" for block in blocks]
        found = [self._places(field, vectors, k, expression) for expression in filters]
        if not found:
            return np.empty((len(vectors), 0)), np.empty((len(vectors), 0), dtype=np.int64)
        scores = np.concatenate([one for one, _ in found], axis=1)
        rows = np.concatenate([one for _, one in found], axis=1)
        return top_k(scores, rows, k, ids_of)

    def _step(self, field: str, vector: Any) -> float:
        """The difference of two scores that mean something; a power of two, so that its multiples are exact."""
        if field == DENSE:
            most = float(np.linalg.norm(np.asarray(vector, dtype=np.float64))) * self.max_norm
        else:
            most = float(sum(vector.values()))
        return 2.0 ** (math.floor(math.log2(most)) - _STEPS) if most > 0 else 2.0**-_STEPS

    def _search_params(self, field: str, limit: int) -> dict[str, Any]:
        params = dict(self._params) if field == DENSE else {}
        if "ef" in params:  # HNSW looks at no fewer places than are asked for
            params["ef"] = max(int(params["ef"]), limit)
        return {"metric_type": "IP", "params": params}

    def _places(self, field: str, vectors: Sequence[Any], k: int, expression: str) -> tuple[Scores, Rows]:
        """Places of every query, at least ``k`` and all that tie with the k-th, where there are so many."""
        lists: list[list[tuple[float, int]]] = [[] for _ in vectors]
        steps = [self._step(field, vector) for vector in vectors]
        pending = list(range(len(vectors)))
        most = min(self.count, _DEEPEST)
        limit = min(k + _MARGIN, most)
        while pending:
            answers = self._connection.call(
                "search",
                self._collection,
                data=[vectors[position] for position in pending],
                anns_field=field,
                limit=limit,
                filter=expression,
                output_fields=["row"],
                search_params=self._search_params(field, limit),
            )
            unsure = []
            for position, hits in zip(pending, answers, strict=True):
                places = [(_rounded(hit["distance"], steps[position]), int(hit["row"])) for hit in hits]
                lists[position] = [place for place in places if field == DENSE or place[0] > 0]
                full = len(places) == limit and len(lists[position]) == limit
                if full and limit < most and len(places) > k and places[-1][0] == places[k - 1][0]:
                    unsure.append(position)
            pending, limit = unsure, min(8 * limit, most)
        width = max(map(len, lists), default=0)
        scores = np.full((len(vectors), width), -np.inf)
        rows = np.full((len(vectors), width), -1, dtype=np.int64)
        for position, places in enumerate(lists):
            if places:
                scores[position, : len(places)], rows[position, : len(places)] = zip(*places, strict=True)
        return scores, rows


def _rounded(score: float, step: float) -> float:
    return round(score / step) * step
