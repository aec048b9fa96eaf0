"""What ``Index.search`` costs over the bare FAISS call on the same shard and batch of queries.

One shard of random unit vectors, one batch of queries; the two calls alternate, the medians are compared. The bare
call returns row numbers and scores; ours also breaks ties, merges and reads the texts of every hit.

    python benchmarks/search.py            100,000 vectors of 384 dimensions, 1,000 queries, k = 20
    python benchmarks/search.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mrag_eval.retrievers import build_index
from mrag_eval.schema import Passage


class SeededUnitVectors:
    """An embedder of random unit vectors: what it measures does not depend on a model."""

    name, revision = "random", "1"

    def __init__(self, dim: int, seed: int = 0) -> None:
        self.dim = dim
        self._generator = np.random.default_rng(seed)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._generator.standard_normal((len(texts), self.dim), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    embed_passages = embed_queries


def passages(count: int) -> Iterator[Passage]:
    for number in range(count):
        text = f"Passage {number}. " + "Some hundred words of text stand in every passage of a corpus. " * 9
        yield Passage(id=f"{number:08x}", lang="en", text=text, title=f"Title {number}", doc_id=f"d{number // 3}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it runs")
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()
    if options.quick:
        options.vectors, options.queries, options.repetitions = 5_000, 100, 3
    embedder = SeededUnitVectors(options.dim)
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(
            passages(options.vectors), Path(folder) / "index", embedder=embedder, batch_size=8192, progress=False
        )
        queries = [f"question {number}" for number in range(options.queries)]
        vectors = embedder.embed_queries(queries)
        shard = index.shard("en").index
        index.search(queries, options.k, embeddings=vectors)
        shard.search(vectors, options.k)
        bare: list[float] = []
        ours: list[float] = []
        for _ in range(options.repetitions):
            start = time.perf_counter()
            shard.search(vectors, options.k)
            middle = time.perf_counter()
            index.search(queries, options.k, embeddings=vectors)
            bare.append(middle - start)
            ours.append(time.perf_counter() - middle)
    ratio = statistics.median(ours) / statistics.median(bare)
    print(
        f"search {options.vectors:,} x {options.dim}, {options.queries:,} queries, k = {options.k}: "
        f"bare FAISS {statistics.median(bare) * 1e3:.0f} ms, Index.search {statistics.median(ours) * 1e3:.0f} ms, "
        f"ratio {ratio:.3f}"
    )


if __name__ == "__main__":
    main()
