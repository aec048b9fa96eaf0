"""Peak memory of a build against the size of its FAISS shard.

Builds an index of N and of 4 N synthetic vectors, each in a process of its own, and compares what the peak grew by with
what the shard grew by. A build that streams stays far below 1; one that held its vectors would show 1 or more.

    python benchmarks/build_memory.py            50,000 and 200,000 vectors of 384 dimensions
    python benchmarks/build_memory.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mrag_eval.retrievers import build_index
from mrag_eval.schema import Passage


class NumberedVectors:
    """An embedder whose vectors cost next to nothing."""

    name, revision = "numbered", "1"

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), self.dim), 0.5, dtype=np.float32)
        vectors[:, 0] = [len(text) for text in texts]
        return vectors

    embed_queries = embed_passages


def passages(count: int) -> Iterator[Passage]:
    for number in range(count):
        # a vocabulary that does not grow with the corpus, as that of a language hardly does
        words = " ".join(f"word{(number * 31 + place * place) % 5_000}" for place in range(40))
        yield Passage(id=f"{number:08x}", lang="en", text=words, doc_id=f"d{number // 3}")


def measure(count: int, dim: int, kind: str) -> None:
    """Build in this process and print the peak of its resident memory and the sizes on disk, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        build_index(passages(count), path, kind=kind, embedder=NumberedVectors(dim), batch_size=2_048, progress=False)
        shard = (path / "dense" / "en.faiss").stat().st_size
        total = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peak": peak, "shard": shard, "total": total}))


def run(count: int, dim: int, kind: str) -> dict[str, int]:
    command = [sys.executable, __file__, "--measure", str(count), "--dim", str(dim), "--kind", kind]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sizes: dict[str, int] = json.loads(output.splitlines()[-1])
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it runs")
    parser.add_argument("--vectors", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--kind", choices=("dense", "hybrid"), default=None, help="default: both")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, options.dim, options.kind)
        return
    count = 4_000 if options.quick else options.vectors
    for kind in ("dense", "hybrid") if options.kind is None else (options.kind,):
        small, large = run(count, options.dim, kind), run(4 * count, options.dim, kind)
        grown = (large["peak"] - small["peak"]) / (large["shard"] - small["shard"])
        for number, sizes in ((count, small), (4 * count, large)):
            print(
                f"build {kind} {number:,} x {options.dim}: peak {sizes['peak'] / 1e6:.0f} MB, "
                f"FAISS shard {sizes['shard'] / 1e6:.0f} MB, index {sizes['total'] / 1e6:.0f} MB"
            )
        print(f"build {kind}: peak grew by {grown:.2f} of what the shard grew by")


if __name__ == "__main__":
    main()
