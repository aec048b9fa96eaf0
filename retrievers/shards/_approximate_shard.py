"""Approximate search in one language: a FAISS index finds candidates, the stored vectors score them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.shards._codes import FLOAT32, Vectors
from mrag_eval.retrievers.shards._faiss_shard import MARGIN, MOST_RESULTS, FaissShard
from mrag_eval.retrievers.shards._manifest import ApproximateRecord, Manifest, approximate_name
from mrag_eval.retrievers.shards._ordering import Rows, Scores, top_k


class ApproximateShard(FaissShard):
    """A :class:`FaissShard` whose unrestricted searches use an approximate index.

    Scores come from the stored vectors, as in exact search, so exact and approximate lists can be merged; only hits may
    be missing. A search restricted to candidates is exact, and so is one for which the index finds fewer than ``k``
    hits.

    Args:
        path: the FAISS file of the vectors.
        approximate_path: the FAISS file of the approximate index.
        record: its search parameters.
        count, dimension, first_row, max_norm, store, mmap: as for :class:`FaissShard`.
    """

    def __init__(
        self,
        path: Path,
        approximate_path: Path,
        record: ApproximateRecord,
        count: int,
        dimension: int,
        *,
        first_row: int = 0,
        max_norm: float = 1.0,
        store: str = FLOAT32,
        mmap: bool = True,
    ) -> None:
        super().__init__(path, count, dimension, first_row=first_row, max_norm=max_norm, store=store, mmap=mmap)
        self.approximate_path, self.record = approximate_path, record
        self._refined: Any = None
        self._approximate: Any = None

    @property
    def approximate(self) -> Any:
        """Return the approximate FAISS index with its search parameters, opened on first use."""
        if self._approximate is None:
            import faiss

            # codes that cannot be mapped are read, as mapping would copy them
            flag = getattr(faiss, "IO_FLAG_MMAP_IFC", 0) if self.mmap and self.record.mapped else 0
            try:
                index = faiss.read_index(str(self.approximate_path), flag)
            except RuntimeError as error:
                raise CorpusError(
                    f"shard {self.approximate_path} cannot be read by FAISS", "rebuild the index"
                ) from error
            if (index.ntotal, index.d) != (self.count, self.dimension):
                raise CorpusError(
                    f"shard {self.approximate_path} holds {index.ntotal} vectors of {index.d} dimensions, "
                    f"the manifest says {self.count} of {self.dimension}",
                    "rebuild the index",
                )
            if self.record.parameter is not None and self.record.value is not None:
                faiss.ParameterSpace().set_index_parameter(index, self.record.parameter, self.record.value)
            self._approximate = index
        return self._approximate

    def _search_all(self, queries: Vectors, k: int, ids_of: Callable[[Rows], list[str]]) -> tuple[Scores, Rows]:
        import faiss

        if self._refined is None:
            self._refined = faiss.IndexRefine(self.approximate, self.index)
        scores = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        depth = min(k + MARGIN, self.count)
        # at least as many candidates as recall was measured with, so a short list is a prefix of a longer one
        candidates = min(self.record.rescore * max(k, self.record.k), self.count)
        parameters = faiss.IndexRefineSearchParameters()
        parameters.k_factor = max(1.0, candidates / depth)
        step = max(1, MOST_RESULTS // max(candidates, depth))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            _, local = self._refined.search(part, depth, params=parameters)
            exact = self._rescore(part, np.maximum(local, 0)).astype(np.float64)
            exact[local < 0] = -np.inf
            found = np.where(local < 0, -1, local + self.first_row)
            scores[start : start + step], rows[start : start + step] = top_k(exact, found, k, ids_of)
        short = np.flatnonzero(rows[:, -1] < 0)
        if len(short):
            scores[short], rows[short] = super()._search_all(queries[short], k, ids_of)
        return scores, rows


def open_dense(path: Path, manifest: Manifest, lang: str, *, first_row: int, mmap: bool) -> FaissShard:
    """Return the dense shard of a language in the index at ``path``; files are opened on first search."""
    assert manifest.embedder is not None
    record = manifest.languages[lang]
    flat = path / "dense" / f"{lang}.faiss"
    count, dimension = record.passages, manifest.embedder.dim
    shared: dict[str, Any] = {
        "first_row": first_row, "max_norm": record.max_norm or 1.0, "store": manifest.store, "mmap": mmap
    }  # fmt: skip
    if record.approximate is None:
        return FaissShard(flat, count, dimension, **shared)
    return ApproximateShard(flat, path / approximate_name(lang), record.approximate, count, dimension, **shared)
