"""Measure how time and memory of building and searching grow, with exact and auto indexes, and fit exponents.

Every size is built and searched in its own processes, whose peak memory (resident, including pages of mapped files)
comes from the operating system. Vectors are generated during the build (``_clustered.py``) and never held; the auto
index may keep ``--memory`` bytes in memory. Search: 200 questions, after one that opens the files.

    python benchmarks/index_growth.py            10,000, 100,000 and 1,000,000 vectors of 384 dimensions
    python benchmarks/index_growth.py --full     10,000,000 as well: 17 GB of disk (--folder) and up to an hour
    python benchmarks/index_growth.py --quick    a smoke test with small numbers

Exact search is left out above 2,000,000 vectors. Required: the exponent of searching with auto is below 1, and that of
building it near 1 (1.15, because assigning a vector to its list costs the root of the number of vectors).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _clustered import ClusteredVectors
from _rows import arguments, growth, write_rows

from mrag_eval.core import Passage
from mrag_eval.retrievers import build_index, load_index, merge_indexes

QUERIES = 200
MOST_EXACT = 2_000_000
TUNING = 512


def passages(count: int) -> Iterator[Passage]:
    for number in range(count):
        yield Passage(id=f"{number:08x}", lang="en", text=f"Passage {number}.", doc_id=f"d{number // 5}")


def peak_mb() -> float:
    kilo = 1024 if sys.platform != "darwin" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilo / 1e6


def one(step: str, count: int, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run one step for one size, in this process."""
    embedder = ClusteredVectors(options.dim)
    path = folder / f"{count}"
    if step == "build":
        start = time.perf_counter()
        index = build_index(
            passages(count), path, embedder=embedder, batch_size=4096, progress=False, factory=options.factory,
            memory_budget=options.memory if options.factory == "auto" else None,
            recall_queries=[f"tuning {number}" for number in range(TUNING)],
        )  # fmt: skip
        seconds = time.perf_counter() - start
        record = index.manifest.languages["en"].approximate
        tuned = f", {record.parameter} {record.value}, recall {record.recall:.3f}" if record else ""
        return {"seconds": seconds, "peak_mb": peak_mb(), "index": f"{record.factory}{tuned}" if record else "exact"}
    if step == "link":
        merge_indexes([path], folder / f"{count}-exact", factory="flat")
        return {}
    index = load_index(path if step == "auto" else folder / f"{count}-exact")
    queries = [f"question {number}" for number in range(QUERIES)]
    vectors = embedder.embed_queries(queries)
    index.search(queries[:1], 20, embeddings=vectors[:1])
    start = time.perf_counter()
    index.search(queries, 20, embeddings=vectors)
    return {"seconds": time.perf_counter() - start, "peak_mb": peak_mb()}


def in_a_process(step: str, count: int, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    words = ["--step", step, "--sizes", str(count), "--folder", str(folder), "--dim", str(options.dim)]
    words += ["--memory", options.memory, "--factory", options.factory]
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{step} of {count:,} vectors failed\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="10,000,000 vectors as well")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="vectors, separated by commas")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--memory", default="1GB", help="as in `mrag-eval index build`")
    parser.add_argument("--factory", default="auto", help="as in `mrag-eval index build`")
    parser.add_argument(
        "--folder", type=Path, help="where indexes are made, one at a time; default: a temporary folder"
    )
    parser.add_argument("--step", choices=("build", "link", "auto", "exact"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.step:
        print(json.dumps(one(options.step, sizes[0], options.folder, options)))
        return
    if options.full:
        sizes.append(10_000_000)
    if options.quick:
        # auto would stay exact at this size
        sizes, options.dim, options.factory = [3_000, 12_000], 64, "IVF32,PQ32x4fs"
    points: dict[str, list[dict[str, Any]]] = {"build": [], "exact": [], "auto": []}
    print(f"{options.dim} dimensions, {QUERIES} questions, k = 20, auto within {options.memory}")
    print("| vectors | build s | MB | search, exact s | MB | search, auto s | MB | auto is |")
    print("|---:|---:|---:|---:|---:|---:|---:|---|")
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            found = {"build": in_a_process("build", size, folder, options)}
            if size <= MOST_EXACT:
                in_a_process("link", size, folder, options)
                found["exact"] = in_a_process("exact", size, folder, options)
            found["auto"] = in_a_process("auto", size, folder, options)
        for step, measured in found.items():
            points[step].append({"n": size, **measured})
        cells = [f"{found[s]['seconds']:.2f} | {found[s]['peak_mb']:,.0f}" if s in found else " | " for s in points]
        print(f"| {size:,} | {' | '.join(cells)} | {found['build']['index']} |", flush=True)
    judged = not options.quick
    rows = [
        growth(f"search of {QUERIES} questions, auto index", points["auto"], below=1.0, judged=judged),
        growth("build, auto index", points["build"], below=1.15, judged=judged),
    ]
    if len(points["exact"]) > 1:
        rows.append(growth(f"search of {QUERIES} questions, exact", points["exact"]))
    for found_row in rows:
        print(
            f"{found_row['work']}: time grows with the power {found_row['exponent']:.2f} (asked {found_row['asked']})"
        )
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
