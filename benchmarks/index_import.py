"""Compare ``mrag-eval index import`` with pyarrow reading and numpy writing the same rows, and kill it half way.

The rows are generated: ids, addresses, titles, texts of some 120 words, and float32 vectors, in Parquet files of 50,000
rows. The peer reads every column of the same files batch by batch, writes vectors and texts to one file each with
numpy, and flushes them to the disk: it checks nothing, keeps no ids and no second copy of the texts, and hashes
nothing. Import verifies 100 passages, with an embedder that costs nothing. Both run in their own processes, one right
after the other, first this one and then that one, after an unmeasured turn of each: the files are in the page cache
then, and each side writes into the memory of its own files of the turn before, deleted in front of it. (Memory that a
process is given for the first time may cost a virtual machine more than the work.)

- Speed: our time over the peer's, at most 1.3.
- Memory: the peak of resident memory, below 1 GB.
- Resuming: killed (SIGKILL) when half of the rows are written and resumed, the index must have the same fingerprint.

    python benchmarks/index_import.py            1,000,000 vectors of 1,024 dimensions: 20 GB of disk (--folder)
    python benchmarks/index_import.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _builds import in_a_process, killed_half_way, peak_bytes
from _rows import arguments, row, write_rows

_FILE, _GROUP, _BATCH = 50_000, 5_000, 4_096
_GB = 10**9
_BASE = 1_024


class WrittenVectors:
    """Unit vectors that follow from the number in front of a text."""

    name, revision = "written", "1"

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._base = np.random.default_rng(0).standard_normal((_BASE, dim)).astype(np.float32)

    def of(self, numbers: np.ndarray) -> np.ndarray:
        vectors = self._base[numbers % _BASE] + 0.5 * self._base[numbers // _BASE % _BASE]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        # a title in front is no number: such a text has a vector of its own
        return self.of(np.asarray([int(text.split()[0]) if text[0].isdigit() else len(text) for text in texts]))

    embed_queries = embed_passages


def write_source(folder: Path, count: int, dim: int) -> None:
    """Write the Parquet files, language en."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    model = WrittenVectors(dim)
    (folder / "en").mkdir(parents=True)
    for number, start in enumerate(range(0, count, _FILE)):
        rows = np.arange(start, min(start + _FILE, count))
        path = folder / "en" / f"{number:04}.parquet"
        with pq.ParquetWriter(path, _schema()) as writer:
            for first in range(0, len(rows), _GROUP):
                part = rows[first : first + _GROUP]
                texts = [f"{n} " + " ".join(f"word{(n * 31 + place) % 5_000}" for place in range(120)) for n in part]
                vectors = model.of(part).astype(np.float32)
                offsets = pa.array(np.arange(0, vectors.size + 1, dim, dtype=np.int32))
                columns = [
                    pa.array([f"{n:08x}" for n in part]),
                    pa.array([f"https://en.example.org/wiki?curid={n // 3}" for n in part]),
                    pa.array([f"Page {n // 3}" for n in part]),
                    pa.array(texts),
                    pa.ListArray.from_arrays(offsets, pa.array(vectors.ravel())),
                ]
                writer.write_table(pa.table(columns, schema=_schema()))


def _schema() -> Any:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("id", "url", "title", "text")]
    return pa.schema([*texts, ("embedding", pa.list_(pa.float32()))])


def copy(source: Path, target: Path) -> None:
    """Do the peer's work."""
    import pyarrow.parquet as pq

    target.mkdir()
    with (target / "vectors").open("wb") as vectors, (target / "texts").open("wb") as texts:
        for path in sorted(source.rglob("*.parquet")):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH):
                    batch.column("embedding").flatten().to_numpy().tofile(vectors)
                    for name in ("id", "url", "title", "text"):
                        np.frombuffer(batch.column(name).buffers()[2], dtype=np.uint8).tofile(texts)
        for file in (vectors, texts):
            file.flush()
            os.fsync(file.fileno())


def run(step: str, source: Path, target: Path, dim: int) -> None:
    """Do one side's work in this process; print its seconds, peak memory and fingerprint."""
    import pyarrow.parquet  # noqa: F401

    from mrag_eval.retrievers import import_vectors

    start, before = time.perf_counter(), os.times()
    fingerprint = ""
    if step == "copy":
        copy(source, target)
    else:
        resume = target.with_name(f"{target.name}.building").exists()
        index = import_vectors(str(source), target, embedder=WrittenVectors(dim), resume=resume, progress=False)
        fingerprint = index.manifest.fingerprint
    inside, after = time.perf_counter() - start, os.times()
    cpu = after.user + after.system - before.user - before.system
    print(json.dumps({"inside": inside, "cpu": cpu, "peak": peak_bytes(), "fingerprint": fingerprint}))


def measured(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    source, judged = folder / "source", not options.quick
    write_source(source, options.vectors, options.dim)
    size = f"import {options.vectors:,} x {options.dim}"

    def once(step: str, target: Path) -> dict[str, Any]:
        shutil.rmtree(target, ignore_errors=True)
        return in_a_process([__file__, "--step", step, str(source), str(target), "--dim", str(options.dim)])

    turns = []
    for turn in range(options.repeat + judged):
        order = ["copy", "import"] if turn % 2 else ["import", "copy"]
        found = {step: once(step, folder / step) for step in order}
        if turn or not judged:
            turns.append((found["import"], found["copy"]))
            print(f"{size}: {_told(*turns[-1])}", flush=True)
    ratios = [ours["inside"] / theirs["inside"] for ours, theirs in turns]
    ours, theirs = turns[-1]
    shutil.rmtree(folder / "copy")
    shutil.rmtree(folder / "import")
    command = [__file__, "--step", "import", str(source), str(folder / "killed"), "--dim", str(options.dim)]
    done, _ = killed_half_way(command, folder / "killed.building", options.vectors)
    again: dict[str, Any] = in_a_process(command)
    same = again["fingerprint"] == ours["fingerprint"]
    print(f"killed after {done:,} rows and resumed: fingerprint {'the same' if same else 'ANOTHER'}")
    print(f"peak memory {ours['peak'] / 1e6:,.0f} MB, resumed {again['peak'] / 1e6:,.0f} MB")
    figures = {"seconds": ours["inside"], "peer_seconds": theirs["inside"], "peak_mb": ours["peak"] / 1e6}
    return [
        row(size, "pyarrow reading, numpy writing", ratios, at_most=1.3, judged=judged, holds=same, figures=figures),
        row(f"{size}: peak memory", "1 GB", ours["peak"] / _GB, at_most=1.0, figures=figures),
    ]


def _told(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    ratio = ours["inside"] / theirs["inside"]
    return (
        f"{ours['inside']:.1f} s ({ours['cpu']:.1f} s of processors), pyarrow and numpy "
        f"{theirs['inside']:.1f} s ({theirs['cpu']:.1f}): {ratio:.2f} times"
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=1_024)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write; by default a temporary folder")
    parser.add_argument("--step", nargs=3, metavar=("STEP", "SOURCE", "TARGET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        step, source, target = options.step
        run(step, Path(source), Path(target), options.dim)
        return
    if options.quick:
        options.vectors, options.repeat = 30_000, 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measured(options, Path(folder))
    write_rows(options.json, rows)
    if not all(one["ok"] for one in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
