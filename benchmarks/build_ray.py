"""Compare building on Ray Data, on this machine with two actors, with the built-in engine: time, memory, same index.

The embedder keeps one core busy, so that there is work to distribute. The time of Ray includes its start, which takes
some seconds whatever the corpus; it is reported separately.

    python benchmarks/build_ray.py            20,000 passages
    python benchmarks/build_ray.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from _builds import LabouredVectors, in_a_process, passages, peak_bytes
from _rows import arguments, row, write_rows

from mrag_eval.retrievers import RayEngine, build_index
from mrag_eval.retrievers.build._build_ray import ray_cluster


def build(path: Path, count: int, dim: int, rounds: int, actors: int) -> None:
    """Build in this process, on Ray if ``actors`` is given, and print the time and memory."""
    engine = RayEngine(actors=actors, block_bytes=1 << 18) if actors else None
    started = 0.0
    if engine is not None:
        start = time.perf_counter()
        with ray_cluster(engine):
            started = time.perf_counter() - start
    start = time.perf_counter()
    model = LabouredVectors(dim, rounds)
    index = build_index(passages(count), path, embedder=model, engine=engine, progress=False)
    took = time.perf_counter() - start
    found = {"build_s": took, "ray_start_s": started, "peak_mb": peak_bytes() / 1e6}
    print(json.dumps({**found, "fingerprint": index.manifest.fingerprint}))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=5_000, help="SHA-256 values of every text")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--build", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--on", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build is not None:
        build(options.build, options.passages, options.dim, options.rounds, options.on)
        return
    if options.quick:
        options.passages, options.rounds = 1_500, 200
    with tempfile.TemporaryDirectory() as folder:
        sizes = ["--passages", str(options.passages), "--dim", str(options.dim), "--rounds", str(options.rounds)]
        builtin = in_a_process([__file__, *sizes, "--build", f"{folder}/builtin"])
        by_ray = in_a_process([__file__, *sizes, "--build", f"{folder}/ray", "--on", str(options.actors)])
    same = builtin["fingerprint"] == by_ray["fingerprint"]
    ratio = float(by_ray["build_s"]) / float(builtin["build_s"])
    print(
        f"build {options.passages:,} passages: built-in {builtin['build_s']:.1f} s, Ray Data with {options.actors} "
        f"actors {by_ray['build_s']:.1f} s (of which about {by_ray['ray_start_s']:.1f} s start Ray), "
        f"fingerprint {'the same' if same else 'ANOTHER'}"
    )
    figures = {
        f"{name}_{key}": one[key]
        for name, one in (("builtin", builtin), ("ray", by_ray))
        for key in ("build_s", "peak_mb")
    }
    figures["ray_start_s"] = by_ray["ray_start_s"]
    work = f"build {options.passages:,} passages on Ray Data, {options.actors} actors, same fingerprint"
    write_rows(options.json, [row(work, "the built-in engine", ratio, holds=same, figures=figures)])
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
