"""Compare exact search with bare FAISS, and approximate search with exact.

One shard of vectors with the structure of embeddings is built with ``--factory auto`` and tuned on its own questions;
the same shard is also linked as an exact index. Both search one batch of other questions; the calls alternate, and
ratios are taken within a turn. This is done twice: with vectors like all-MiniLM-L6-v2's, to which the bounds apply, and
like multilingual-e5-small's, whose questions are so far from the passages that much more must be read (see
``_clustered.py``).

* exact: the time of ``Index.search`` over that of ``faiss.IndexFlatIP.search`` on the same file. The bare call returns
  row numbers and scores; ours also breaks ties, merges and reads the texts of every hit.
* approximate: the time of the bare exact call over that of ``Index.search`` on the approximate index, and the recall@20
  of its hits.

    python benchmarks/search.py            1,000,000 vectors of 384 dimensions, 1,000 queries, k = 20
    python benchmarks/search.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _clustered import LIKENESSES, ClusteredVectors
from _rows import arguments, row, write_rows

from mrag_eval.core import Passage
from mrag_eval.retrievers import build_index, load_index, merge_indexes

TUNING = 512
# the bounds apply to these vectors
BOUNDED = "minilm"


def passages(count: int) -> Iterator[Passage]:
    for number in range(count):
        text = f"Passage {number}. " + "Some hundred words of text stand in every passage of a corpus. " * 9
        yield Passage(id=f"{number:08x}", lang="en", text=text, title=f"Title {number}", doc_id=f"d{number // 5}")


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--factory", default="auto", help="as in `mrag-eval index build`")
    parser.add_argument("--folder", type=Path, help="where the index is made; default: a temporary folder")
    options = parser.parse_args()
    if options.quick:
        # auto would stay exact at this size
        options.vectors, options.queries, options.repetitions, options.factory = 12_000, 100, 3, "IVF64,PQ192x4fs"
    size = f"{options.vectors:,} x {options.dim}, {options.queries:,} queries, k = {options.k}"
    print(f"search {size}; medians of {options.repetitions} runs, ratios against bare FAISS flat in the same turn")
    print("| vectors like | search | s | ratio | asked |")
    print("|---|---|---:|---:|---:|")
    rows = [found for like in LIKENESSES for found in measure(like, options)]
    write_rows(options.json, rows)


def measure(like: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Build and search, print three lines of the table, and return the rows for the joint table of all benchmarks."""
    embedder = ClusteredVectors(options.dim, like=like)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "approximate"
        build_index(
            passages(options.vectors), path, embedder=embedder, batch_size=8192, progress=False,
            factory=options.factory, recall_queries=[f"tuning {number}" for number in range(TUNING)],
        )  # fmt: skip
        merge_indexes([path], Path(folder) / "exact", factory="flat")
        approximate, exact = load_index(path), load_index(Path(folder) / "exact")
        queries = [f"question {number}" for number in range(options.queries)]
        vectors = embedder.embed_queries(queries)
        flat = exact.shard("en").index
        calls: dict[str, Callable[[], Any]] = {
            "bare": lambda: flat.search(vectors, options.k),
            "exact": lambda: exact.search(queries, options.k, embeddings=vectors),
            "auto": lambda: approximate.search(queries, options.k, embeddings=vectors),
        }
        results = {name: call() for name, call in calls.items()}
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(options.repetitions):
            for name, call in calls.items():
                times[name].append(timed(call)[0])
        shared = [
            len({hit.id for hit in one} & {hit.id for hit in other}) / options.k
            for one, other in zip(results["exact"], results["auto"], strict=True)
        ]
    recall = float(np.mean(shared))
    record = approximate.manifest.languages["en"].approximate
    how = f"{record.factory}, {record.parameter} {record.value}, rescore {record.rescore}" if record else "exact"
    seconds = {f"{name} s": statistics.median(values) for name, values in times.items()}
    size = f"{options.vectors:,} x {options.dim} like {like}, {options.queries:,} queries"
    pairs = list(zip(times["bare"], times["exact"], times["auto"], strict=True))
    bounded = like == BOUNDED
    kept = row(
        f"search {size}, exact", "bare FAISS flat", [ours / bare for bare, ours, _ in pairs],
        at_most=1.05, judged=not options.quick, figures=seconds,
    )  # fmt: skip
    faster = row(
        f"search {size}, {options.factory}: recall@{options.k} {recall:.3f}", "bare FAISS flat",
        [bare / ours for bare, _, ours in pairs], at_least=10 if bounded else None, judged=not options.quick,
        holds=recall >= 0.95 or options.quick or not bounded,
        figures={**seconds, "index": how, "recall": recall, "recall in the manifest": record and record.recall},
    )  # fmt: skip
    print(f"| {like} | bare FAISS flat | {seconds['bare s']:.3f} | | |")
    print(f"| {like} | Index.search, exact | {seconds['exact s']:.3f} | {kept['ratio']:.3f} | {kept['asked']} |")
    asked = f"{faster['asked']}, recall .95" if bounded else faster["asked"]
    print(
        f"| {like} | Index.search, {how} | {seconds['auto s']:.3f} | "
        f"{faster['ratio']:.1f} times faster, recall {recall:.3f} | {asked} |", flush=True,
    )  # fmt: skip
    return [kept, faster] if bounded else [faster]


if __name__ == "__main__":
    main()
