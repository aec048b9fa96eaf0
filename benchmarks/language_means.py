"""Measure what the means of languages cost: their share of a build, and of a search with the merge ``centered``.

The vectors are drawn, so nothing is embedded: of a build with an embedder the share is far smaller.

    python benchmarks/language_means.py            10 x 5,000 vectors of 384 dimensions, 1,000 queries
    python benchmarks/language_means.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _clustered import ClusteredVectors
from _rows import arguments, row, write_rows

from mrag_eval.core import Passage
from mrag_eval.retrievers import build_index, center_index

LANGS = ("ar", "de", "el", "en", "es", "hi", "ko", "ru", "th", "zh")
DIMENSION = 384


def passages(count: int) -> Iterator[Passage]:
    for number in range(count):
        lang = LANGS[number % len(LANGS)]
        yield Passage(id=f"{number:08x}", lang=lang, text=f"Passage {number} of a corpus.", doc_id=f"d{number}")


def main() -> None:
    options = arguments(__doc__).parse_args()
    count, queries = (5_000, 50) if options.quick else (50_000, 1_000)
    shares, searches = [], []
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(3):
            path = Path(folder) / str(repeat)
            start = time.perf_counter()
            index = build_index(passages(count), path, embedder=ClusteredVectors(DIMENSION), progress=False)
            whole = time.perf_counter() - start
            (path / "means.json").unlink()
            start = time.perf_counter()
            center_index(path)
            shares.append((time.perf_counter() - start) / whole)
            vectors = np.random.default_rng(repeat).standard_normal((queries, DIMENSION)).astype(np.float32)
            texts = [f"query {number}" for number in range(queries)]
            start = time.perf_counter()
            index.search_by_language(texts, 20, embeddings=vectors)
            searched = time.perf_counter() - start
            start = time.perf_counter()
            for lang in LANGS:
                index.means.offsets(vectors, lang)
            searches.append((time.perf_counter() - start) / searched)
    print(f"means: {statistics.median(shares):.2%} of a build of {count:,} passages without an embedder")
    print(f"offsets: {statistics.median(searches):.3%} of a search for {queries:,} queries")
    work = f"{count:,} x {DIMENSION}"
    write_rows(
        options.json,
        [
            row(f"means, {work}", "building the index", shares, at_most=0.03, judged=not options.quick),
            row(
                f"offsets, {queries:,} queries",
                "searching by language",
                searches,
                at_most=0.03,
                judged=not options.quick,
            ),
        ],
    )


if __name__ == "__main__":
    main()
