"""Inner-product search in one language of a Milvus collection, over dense or sparse (lexical) vectors.

The language is the partition key, so a search reads only its partition. Lexical scores are inner products, too: the
sparse vector of a passage holds the scores of its tokens, that of a query their counts. So lexical search returns the
BM25 scores of the index that was loaded, with its tokens and statistics, on milvus-lite and on a cluster alike.
Milvus's own BM25 function does not: milvus-lite computes statistics per segment.
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

# extra results, to detect ties with the k-th
_MARGIN = 8
# maximum number of results per query
_DEEPEST = 16_384
_QUERIES = 256
# rows per filter
_LISTED = 10_000
# The last digits of a 32-bit inner product depend on the block of its matrix product, so scores are rounded to
# multiples of 2^-20 of the largest possible one.
_STEPS = 20


class MilvusShard:
    """The passages of one language.

    Args:
        connection, collection: their location.
        lang: the language.
        first_row, count: its rows in the collection.
        max_norm: the largest Euclidean norm among the vectors of all languages.
        search: search parameters of the vector index (``ef`` of HNSW).
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
        """Return scores and rows (queries × k) of the best passages; missing ones have row -1 and score -inf.

        Scores are rounded to 32-bit accuracy, so that equal vectors tie. In field ``sparse``, a hit shares at least one
        term with its query.

        Args:
            field: ``dense`` (arrays) or ``sparse`` (mappings term -> weight).
            vectors: one per query.
            candidates: per query the rows to restrict the search to (those of other shards are ignored), or None.
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
        """Return the rounding step of scores: a power of two, so that its multiples are exact."""
        if field == DENSE:
            most = float(np.linalg.norm(np.asarray(vector, dtype=np.float64))) * self.max_norm
        else:
            most = float(sum(vector.values()))
        return 2.0 ** (math.floor(math.log2(most)) - _STEPS) if most > 0 else 2.0**-_STEPS

    def _search_params(self, field: str, limit: int) -> dict[str, Any]:
        params = dict(self._params) if field == DENSE else {}
        if "ef" in params:  # HNSW requires ef >= limit
            params["ef"] = max(int(params["ef"]), limit)
        return {"metric_type": "IP", "params": params}

    def _places(self, field: str, vectors: Sequence[Any], k: int, expression: str) -> tuple[Scores, Rows]:
        """Return the results of every query: at least ``k``, if available, and all ties with the k-th."""
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
                step = steps[position]
                places = [(round(hit["distance"] / step) * step, int(hit["row"])) for hit in hits]
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
