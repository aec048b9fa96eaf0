"""Compare lexical search through an index with bm25s itself, over the same tokens.

    python benchmarks/bm25.py            500,000 passages, 1,000 queries
    python benchmarks/bm25.py --quick    3,000 passages, 40 queries, for a smoke test

Texts are drawn from a vocabulary by Zipf's law (the word of rank r in proportion to 1/r) and are 20 to 60 words long;
queries are two to six words of one passage. bm25s searches with its default backend (numpy), one query after another,
as ours does, from its own memory-mapped files, and is given tokens. Ours is given texts, and returns hits with their
passages. The two alternate, and medians are compared. Required: at most 1.1 times its time, and the same passages (ties
may be broken differently).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.retrievers import build_index
from mrag_eval.text import Analyzer

WORDS = 60_000


def texts(count: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield passages of Zipf-distributed words."""
    words = np.asarray([f"w{number:x}" for number in range(WORDS)])
    shares = np.cumsum(1.0 / np.arange(1, WORDS + 1))
    shares /= shares[-1]
    for _ in range(count):
        drawn = np.searchsorted(shares, rng.random(int(rng.integers(20, 61))))
        yield " ".join(words[drawn].tolist())


def asked(passages: list[str], count: int, rng: np.random.Generator) -> list[str]:
    queries = []
    for number in rng.choice(len(passages), count, replace=False).tolist():
        words = passages[number].split()
        queries.append(" ".join(rng.choice(words, int(rng.integers(2, 7)), replace=False).tolist()))
    return queries


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__)
    parser.add_argument("--passages", type=int, default=500_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.passages, options.queries, options.repetitions = 3_000, 40, 2
    import bm25s

    rng = np.random.default_rng(0)
    written = list(texts(options.passages, rng))
    queries = asked(written, options.queries, rng)
    tokenize = Analyzer().tokenizer("en")
    tokens = [tokenize(query) for query in queries]
    with tempfile.TemporaryDirectory() as folder:
        corpus = (Passage(str(number), "en", text) for number, text in enumerate(written))
        index = build_index(corpus, Path(folder) / "ours", kind="bm25", progress=False)
        theirs = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        theirs.index([tokenize(text) for text in written], show_progress=False)
        theirs.save(str(Path(folder) / "theirs"), show_progress=False)
        theirs = bm25s.BM25.load(str(Path(folder) / "theirs"), mmap=True, show_progress=False)

        def bare() -> tuple[np.ndarray, np.ndarray]:
            found = theirs.retrieve(tokens, k=options.k, show_progress=False, n_threads=0)
            return np.asarray(found.documents), np.asarray(found.scores)

        documents, scores = bare()
        hits = index.search(queries, options.k)
        same = differing = 0
        for ours, ids, values in zip(hits, documents.tolist(), scores.tolist(), strict=True):
            wanted = {str(number) for number, value in zip(ids, values, strict=True) if value > 0}
            got = {hit.id for hit in ours}
            same += len(got & wanted)
            # below the last score that both lists contain, only ties may differ
            last = min(values)
            differing += sum(hit.score > last * (1 + 1e-5) for hit in ours if hit.id not in wanted)
        runs: list[tuple[float, float]] = []
        for _ in range(options.repetitions):
            start = time.perf_counter()
            bare()
            middle = time.perf_counter()
            index.search(queries, options.k)
            runs.append((middle - start, time.perf_counter() - middle))
    bm25s_s, ours_s = (statistics.median(run[which] for run in runs) for which in (0, 1))
    overlap = same / sum(map(len, hits))
    work = f"BM25, {options.passages:,} passages, {options.queries:,} queries, k = {options.k}"
    print(
        f"{work}: bm25s {bm25s_s:.2f} s, Index.search {ours_s:.2f} s, ratio {ours_s / bm25s_s:.3f}; "
        f"{overlap:.2%} of the places the same, {differing} of the others with another score"
    )
    figures = {"bm25s_s": bm25s_s, "ours_s": ours_s, "overlap": overlap, "differing": differing}
    found = row(
        work,
        "bm25s itself",
        [ours / other for other, ours in runs],
        at_most=1.1,
        judged=not options.quick,
        holds=differing == 0,
        figures=figures,
    )
    write_rows(options.json, [found])


if __name__ == "__main__":
    main()
