"""One language's vectors: a FAISS inner-product index over all of them, memory-mapped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import CorpusError
from mrag_eval.retrievers.shards._codes import FLOAT32, Codes, Vectors, codes_of
from mrag_eval.retrievers.shards._ordering import Rows, Scores, top_k, top_k_line

# Extra candidates, to detect ties and rounding differences at the last rank
MARGIN = 8
# Number of parts from which threads are used
_WORTH_THREADS = 8
MOST_RESULTS = 4_000_000
_EPSILON = float(np.finfo(np.float32).eps)


class FaissShard:
    """Exact inner-product search in one language.

    FAISS ranks; the best scores are then recomputed, each from its own vector alone, and sorted by score, then id. So
    equal vectors get equal scores, and a query gets the same hits alone and in a batch, which blocked matrix products
    do not guarantee in the last digits. Scores are those of the vectors as they are stored.

    Args:
        path: the FAISS file.
        count: vectors it must hold.
        dimension: their dimension.
        first_row: the row of the first vector in the index; rows given and returned count from there.
        max_norm: the largest Euclidean norm among the vectors, which bounds the rounding error of a score.
        store: how they are stored: ``float32``, ``float16`` or ``int8``.
        mmap: map the file (pages are shared between processes and dropped under pressure) instead of reading it.
    """

    def __init__(
        self,
        path: Path,
        count: int,
        dimension: int,
        *,
        first_row: int = 0,
        max_norm: float = 1.0,
        store: str = FLOAT32,
        mmap: bool = True,
    ) -> None:
        self.path, self.count, self.dimension, self.first_row = path, count, dimension, first_row
        self.max_norm, self.store, self.mmap = max_norm, store, mmap
        self._opened: tuple[Any, Codes] | None = None
        self._bytes: NDArray[np.uint8] | None = None

    @property
    def index(self) -> Any:
        """Return the FAISS index, opened on first use."""
        return self._open()[0]

    @property
    def codes(self) -> Codes:
        """Return how the vectors are coded."""
        return self._open()[1]

    def _open(self) -> tuple[Any, Codes]:
        if self._opened is None:
            import faiss

            # IO_FLAG_MMAP alone reads such indexes into memory; the IFC variant really maps them (FAISS 1.11 and later)
            flag = getattr(faiss, "IO_FLAG_MMAP_IFC", 0) if self.mmap else 0
            try:
                index = faiss.read_index(str(self.path), flag)
            except RuntimeError as error:
                raise CorpusError(f"shard {self.path} cannot be read by FAISS", "rebuild the index") from error
            if (index.ntotal, index.d) != (self.count, self.dimension):
                raise CorpusError(
                    f"shard {self.path} holds {index.ntotal} vectors of {index.d} dimensions, "
                    f"the manifest says {self.count} of {self.dimension}",
                    "rebuild the index",
                )
            codes = codes_of(index)
            if codes is None or codes.store != self.store:
                held = "an unknown kind of vectors" if codes is None else f"{codes.store} vectors"
                raise CorpusError(
                    f"shard {self.path} holds {held}, the manifest says {self.store}", "rebuild the index"
                )
            self._opened = index, codes
        return self._opened

    @property
    def _vector_bytes(self) -> NDArray[np.uint8]:
        if self._bytes is None:
            # the codes start at an odd offset, so they are gathered as bytes
            width = self.codes.width
            offset = self.path.stat().st_size - width * self.count
            shape = (self.count, width)
            self._bytes = np.memmap(self.path, dtype=np.uint8, mode="r", offset=offset, shape=shape)
        return self._bytes

    def vectors(self, local_rows: Rows) -> Vectors:
        """Return the vectors of rows within the shard; shape: that of ``local_rows`` × dimension."""
        return self.codes.decode(np.take(self._vector_bytes, local_rows, axis=0))

    def search(
        self,
        queries: Vectors,
        k: int,
        ids_of: Callable[[Rows], list[str]],
        candidates: Sequence[Rows | None] | None = None,
    ) -> tuple[Scores, Rows]:
        """Return scores and rows (queries × k) of the best passages; missing ones have row -1 and score -inf.

        ``candidates``: per query the rows to restrict the search to (those of other shards are ignored), or None.
        """
        scores = np.full((len(queries), k), -np.inf)
        rows = np.full((len(queries), k), -1, dtype=np.int64)
        restricted = {i: wanted for i, wanted in enumerate(candidates or ()) if wanted is not None}
        free = np.asarray([i for i in range(len(queries)) if i not in restricted], dtype=np.int64)
        if len(free):
            width = min(k, self.count)
            batch = queries if not restricted else queries[free]
            scores[free, :width], rows[free, :width] = self._search_all(batch, width, ids_of)
        for i, wanted in restricted.items():
            local = np.unique(wanted) - self.first_row
            local = local[(local >= 0) & (local < self.count)]
            if len(local):
                found, at = top_k_line(self._score(queries[i], local), local + self.first_row, k, ids_of)
                scores[i, : len(at)], rows[i, : len(at)] = found, at
        return scores, rows

    def _search_all(self, queries: Vectors, k: int, ids_of: Callable[[Rows], list[str]]) -> tuple[Scores, Rows]:
        scores = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        # maximum difference to FAISS's score of a passage: rounding of dot products grows with the root of the length
        norms = np.sqrt(np.einsum("qd,qd->q", queries, queries, dtype=np.float64))
        slack = 4.0 * _EPSILON * np.sqrt(self.dimension) * norms * self.codes.largest(self.max_norm)
        pending = np.arange(len(queries))
        depth = min(k + MARGIN, self.count)
        while len(pending):
            unsure: list[Rows] = []
            # deep searches (many equal scores) run in parts, so that their lists fit into memory
            step = max(1, MOST_RESULTS // depth)
            for part in (pending[start : start + step] for start in range(0, len(pending), step)):
                batch = queries if len(part) == len(queries) else queries[part]
                approximate, local = self.index.search(batch, depth)
                exact = self._rescore(batch, local).astype(np.float64)
                best, at = top_k(exact, local + self.first_row, k, ids_of)
                scores[part], rows[part] = best, at
                # a passage that FAISS did not return scores at most its last score plus the slack
                unsure.append(part[approximate[:, -1] + slack[part] >= best[:, -1]])
            if depth == self.count:
                break
            pending = np.concatenate(unsure)
            depth = min(8 * depth, self.count)
        return scores, rows

    def _rescore(self, queries: Vectors, local: Rows) -> Vectors:
        out = np.empty(local.shape, dtype=np.float32)
        # about 1 MB of vectors at a time stays in the CPU cache
        step = max(1, (1 << 18) // (local.shape[1] * self.dimension))

        def part(start: int) -> None:
            end = start + step
            vectors = self.vectors(local[start:end])
            vectors *= queries[start:end, None, :]
            np.sum(vectors, axis=2, out=out[start:end])

        starts = range(0, len(queries), step)
        if len(starts) < _WORTH_THREADS:
            for start in starts:
                part(start)
        else:
            # numpy releases the interpreter lock here
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                list(threads.map(part, starts))
        return out

    def _score(self, query: Vectors, local: Rows) -> Vectors:
        return np.concatenate([self._rescore(query[None, :], block[None, :])[0] for block in _blocks(local)])


def _blocks(rows: Rows, size: int = 4_096) -> Iterator[Rows]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
