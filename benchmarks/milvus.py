"""Compare an index in Milvus (milvus-lite, a local file) with the same index in a folder: hits and speed.

    python benchmarks/milvus.py            100,000 passages of 384 dimensions, 1,000 queries
    python benchmarks/milvus.py --quick    2,000 passages, 20 queries, for a smoke test

Vectors are clustered around 500 centres, as embeddings are, in two languages. Both are searched in turn by the same
call, with the queries' vectors given and nothing cached; medians are compared. Required: 0.99 of the first 20 places
agree. Times are reported.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.retrievers import MilvusPlace, build_index, load_into_milvus

CENTRES = 500


class Clustered:
    """Return vectors around centres; the number at the end of a text selects the centre."""

    name, revision = "clustered", "1"

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._centres = np.random.default_rng(0).standard_normal((CENTRES, dim)).astype(np.float32)

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        numbers = [int(text.rsplit(" ", 1)[1]) for text in texts]
        noise = np.stack([np.random.default_rng(number).standard_normal(self.dim) for number in numbers])
        vectors = self._centres[np.asarray(numbers) % CENTRES] + 0.5 * noise
        unit: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit

    embed_queries = embed_passages


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.passages, options.queries, options.repetitions = 2_000, 20, 2
    embedder = Clustered(options.dim)
    queries = [f"query {10**9 + number}" for number in range(options.queries)]
    vectors = embedder.embed_queries(queries)
    with tempfile.TemporaryDirectory() as folder:
        corpus = (
            Passage(str(number), ("en", "ko")[number % 2], f"passage {number}") for number in range(options.passages)
        )
        here = build_index(corpus, Path(folder) / "index", embedder=embedder, progress=False)
        start = time.perf_counter()
        there = load_into_milvus(here, MilvusPlace(str(Path(folder) / "passages.db"), "passages"), progress=False)
        loading = time.perf_counter() - start
        found = [index.search(queries, options.k, embeddings=vectors) for index in (here, there)]
        runs: list[tuple[float, float]] = []
        for _ in range(options.repetitions):
            start = time.perf_counter()
            here.search(queries, options.k, embeddings=vectors)
            middle = time.perf_counter()
            there.search(queries, options.k, embeddings=vectors)
            runs.append((middle - start, time.perf_counter() - middle))
    shares = [
        len({hit.id for hit in ours} & {hit.id for hit in theirs}) / options.k
        for ours, theirs in zip(*found, strict=True)
    ]
    overlap = statistics.mean(shares)
    folder_s, milvus_s = (statistics.median(run[which] for run in runs) for which in (0, 1))
    work = f"{options.passages:,} x {options.dim} in milvus-lite, {options.queries:,} queries"
    print(
        f"{work}: overlap@{options.k} {overlap:.4f}; index in a folder (FAISS) {folder_s:.2f} s, milvus-lite "
        f"{milvus_s:.2f} s, ratio {milvus_s / folder_s:.2f}; loaded in {loading:.1f} s"
    )
    figures = {"folder_s": folder_s, "milvus_s": milvus_s, "loading_s": loading, "overlap": overlap}
    places = f"the same places (overlap@{options.k})"
    write_rows(
        options.json,
        [
            row(work, places, overlap, at_least=0.99, unit="", figures=figures),
            row(work, "the index in a folder (FAISS)", [other / own for own, other in runs], figures=figures),
        ],
    )


if __name__ == "__main__":
    main()
