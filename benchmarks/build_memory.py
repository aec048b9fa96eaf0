"""Measure the peak memory of an index build, and compare a killed and resumed build with an uninterrupted one.

Every build runs in its own process, with vectors that cost almost nothing.

- Memory: the peak of resident memory is compared with 1 GB and with the size of the FAISS shard. The growth of the peak
  from a quarter of the vectors to all is compared with the growth of the shard (a build that held its vectors would
  show 1 or more).
- Resuming: a build is killed (SIGKILL) when half of its passages are written, and resumed; its fingerprint must be that
  of the uninterrupted build. The ratio is the time of both halves over the uninterrupted time.

    python benchmarks/build_memory.py            1,000,000 vectors of 384 dimensions
    python benchmarks/build_memory.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from _builds import NumberedVectors, in_a_process, killed_half_way, passages, peak_bytes
from _rows import arguments, row, write_rows

from mrag_eval.retrievers import build_index

_GB = 10**9


def build(path: Path, count: int, dim: int, kind: str) -> None:
    """Build in this process; print its peak resident memory, sizes on disk (bytes) and the fingerprint."""
    model = NumberedVectors(dim)
    index = build_index(passages(count), path, kind=kind, embedder=model, batch_size=512, resume=True, progress=False)
    shard = (path / "dense" / "en.faiss").stat().st_size
    total = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    fingerprint = index.manifest.fingerprint
    print(json.dumps({"peak": peak_bytes(), "shard": shard, "total": total, "fingerprint": fingerprint}))


def command(path: Path, count: int, options: argparse.Namespace, kind: str) -> list[str]:
    return [__file__, "--build", str(path), "--vectors", str(count), "--dim", str(options.dim), "--kind", kind]


def measured(options: argparse.Namespace, kind: str, folder: Path) -> list[dict[str, Any]]:
    count, judged = options.vectors, not options.quick
    size = f"{count:,} x {options.dim}, {kind}"
    quarter = in_a_process(command(folder / "quarter", count // 4, options, kind))
    whole = in_a_process(command(folder / "whole", count, options, kind))
    done, seconds = killed_half_way(command(folder / "killed", count, options, kind), folder / "killed.building", count)
    resumed = in_a_process(command(folder / "killed", count, options, kind))
    peak, shard = float(whole["peak"]), float(whole["shard"])
    grown = (peak - float(quarter["peak"])) / (shard - float(quarter["shard"]))
    figures = {"peak_mb": peak / 1e6, "shard_mb": shard / 1e6, "index_mb": float(whole["total"]) / 1e6}
    figures["seconds"] = float(whole["seconds"])
    again = {"done_when_killed": done, "seconds": seconds + float(resumed["seconds"])}
    both = again["seconds"] / figures["seconds"]
    same = resumed["fingerprint"] == whole["fingerprint"]
    print(
        f"build {size}: peak {figures['peak_mb']:,.0f} MB, shard {figures['shard_mb']:,.0f} MB, "
        f"index {figures['index_mb']:,.0f} MB, {figures['seconds']:.1f} s; the peak grew by {grown:.2f} of the shard"
    )
    print(
        f"killed after {done:,} passages and resumed: {again['seconds']:.1f} s, "
        f"fingerprint {'the same' if same else 'ANOTHER'}"
    )
    return [
        row(f"build {size}: peak memory", "1 GB + shard", peak / (_GB + shard), at_most=1.0, figures=figures),
        row(
            f"build {size}: growth of the peak, quarter to whole",
            "growth of the shard",
            grown,
            at_most=0.5,
            judged=judged,
            figures={"quarter_peak_mb": float(quarter["peak"]) / 1e6, **figures},
        ),
        row(f"build {size}: killed half way, resumed, same fingerprint", "in one go", both, holds=same, figures=again),
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--kind", choices=("dense", "hybrid"), default="dense")
    parser.add_argument("--build", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build is not None:
        build(options.build, options.vectors, options.dim, options.kind)
        return
    if options.quick:
        options.vectors = 40_000
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(options, options.kind, Path(folder))
    write_rows(options.json, rows)
    if not all(one["ok"] for one in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
