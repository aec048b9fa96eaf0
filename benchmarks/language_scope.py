"""Compare a search in 2 of 10 languages over language shards with one joint flat index and post-filtering.

The baseline does what retrieval over a single FAISS index does when a language is requested: it searches deep enough to
find ``k`` hits in the two languages, and searches deeper if there are too few. Languages are spread evenly over the
vectors, which is the baseline's best case. Both are exact and find the same.

    python benchmarks/language_scope.py            10 x 100,000 vectors of 384 dimensions, 1,000 queries, k = 20
    python benchmarks/language_scope.py --quick    a smoke test with small numbers
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
from mrag_eval.retrievers import build_index

LANGS = ("ar", "de", "el", "en", "es", "hi", "ko", "ru", "th", "zh")
SCOPE = ("en", "ko")


def passages(count: int) -> Iterator[Passage]:
    for number in range(count):
        # five passages of an article have one language
        lang = LANGS[number // 5 % len(LANGS)]
        yield Passage(id=f"{number:08x}", lang=lang, text=f"Passage {number} of a corpus.", doc_id=f"d{number // 5}")


def post_filtered(joint: object, inside: np.ndarray, vectors: np.ndarray, k: int) -> np.ndarray:
    """Return the rows of the best ``k`` vectors inside the scope, from one index over all of them."""
    depth = 2 * k * len(inside) // int(inside.sum())
    while True:
        _, found = joint.search(vectors, depth)  # type: ignore[attr-defined]
        kept = inside[found]
        if int(kept.sum(axis=1).min()) >= k or depth >= len(inside):
            first = np.argsort(~kept, axis=1, kind="stable")[:, :k]
            return np.take_along_axis(found, first, axis=1)
        depth *= 2


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the index is made; default: a temporary folder")
    options = parser.parse_args()
    if options.quick:
        options.vectors, options.queries, options.repetitions = 10_000, 50, 3
    import faiss

    embedder = ClusteredVectors(options.dim)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        index = build_index(
            passages(options.vectors), Path(folder) / "index", embedder=embedder, batch_size=8192, progress=False
        )
        joint = faiss.IndexFlatIP(options.dim)
        inside = np.zeros(options.vectors, dtype=bool)
        names: list[str] = []
        for lang in index.languages:
            count = index.counts[lang]
            inside[joint.ntotal : joint.ntotal + count] = lang in SCOPE
            for first in range(0, count, 65_536):
                joint.add(index.shard(lang).vectors(np.arange(first, min(first + 65_536, count))))
            names += [lang] * count
        queries = [f"question {number}" for number in range(options.queries)]
        vectors = embedder.embed_queries(queries)
        hits = index.search(queries, options.k, languages=SCOPE, embeddings=vectors)
        rows = post_filtered(joint, inside, vectors, options.k)
        assert all(names[at] in SCOPE for at in rows.ravel().tolist())
        ours = np.asarray([[hit.score for hit in found] for found in hits])
        stored = {lang: index.shard(lang) for lang in SCOPE}
        start = {lang: names.index(lang) for lang in SCOPE}
        theirs = np.asarray(
            [
                [float(vectors[q] @ stored[names[at]].vectors(np.asarray([at - start[names[at]]]))[0]) for at in line]
                for q, line in enumerate(rows[:50].tolist())
            ]
        )
        same = bool(np.allclose(ours[:50], theirs, atol=1e-5))
        by_shards: list[float] = []
        filtered: list[float] = []
        for _ in range(options.repetitions):
            begin = time.perf_counter()
            index.search(queries, options.k, languages=SCOPE, embeddings=vectors)
            middle = time.perf_counter()
            post_filtered(joint, inside, vectors, options.k)
            by_shards.append(middle - begin)
            filtered.append(time.perf_counter() - middle)
    size = f"{options.vectors:,} x {options.dim}, {options.queries:,} queries"
    figures = {"shards s": statistics.median(by_shards), "joint s": statistics.median(filtered), "same scores": same}
    found = row(
        f"search in 2 of 10 languages, {size}", "one joint flat index, post-filtered",
        [theirs_s / ours_s for ours_s, theirs_s in zip(by_shards, filtered, strict=True)],
        at_least=3, judged=not options.quick, holds=same, figures=figures,
    )  # fmt: skip
    write_rows(options.json, [found])
    print(f"{found['work']}, k = {options.k}; medians of {options.repetitions} runs")
    print("| search | s | ratio | asked |")
    print("|---|---:|---:|---:|")
    print(f"| joint flat index, post-filtered | {figures['joint s']:.3f} | | |")
    faster = f"{found['ratio']:.1f} times faster{'' if same else ', OTHER HITS'}"
    print(f"| Index.search, shards by language | {figures['shards s']:.3f} | {faster} | {found['asked']} |")


if __name__ == "__main__":
    main()
