"""Compare the writer of an index with pyarrow and numpy that copy the same rows.

The rows are passages with vectors in a Parquet file. The peer reads them batch by batch with pyarrow, and appends
vectors and texts to files with numpy. Ours reads them in the same way, checks every passage and id, and writes an
index: hashes, offsets, lookups, the Parquet copy, checksums. Nothing is embedded. Each run is a process of its own;
ratios are those of CPU seconds (user and system), which other work on the machine changes less than wall time.

    python benchmarks/writer.py            1,000,000 vectors of 64 dimensions
    python benchmarks/writer.py --dim 1024 --rows 100000
    python benchmarks/writer.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _builds import in_a_process, peak_bytes
from _rows import arguments, row, write_rows

from mrag_eval.core import Passage
from mrag_eval.retrievers.build._index_writer import IndexWriter
from mrag_eval.retrievers.build._intake import checked_batch
from mrag_eval.retrievers.build._settings import BuildSettings
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.index._hashing import SeenIds
from mrag_eval.retrievers.shards._codes import STORES
from mrag_eval.retrievers.shards._manifest import EmbedderRecord

_BATCH = 4_096
_WORDS = 100


def write_rows_file(path: Path, rows: int, dim: int) -> None:
    """Write the Parquet file: passages of a hundred words, three to a document, and vectors near the unit sphere."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(0)
    words = [f"word{number}" for number in range(5_000)]
    texts = [" ".join(words[place] for place in draw.integers(0, 5_000, _WORDS)) for _ in range(1_000)]
    names = ("id", "doc_id", "title", "text")
    schema = pa.schema([*((name, pa.string()) for name in names), ("vector", pa.list_(pa.float32(), dim))])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, _BATCH):
            numbers = range(first, min(first + _BATCH, rows))
            vectors = draw.standard_normal(len(numbers) * dim, dtype=np.float32) * np.float32(dim**-0.5)
            columns = (
                [f"{number:08x}" for number in numbers],
                [f"d{number // 3}" for number in numbers],
                [f"Title {number // 3}" for number in numbers],
                [f"{number} {texts[number % 1_000]}" for number in numbers],
                pa.FixedSizeListArray.from_arrays(vectors, dim),
            )
            writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema))


def batches(path: Path, dim: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the columns of the texts, and the vectors."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(_BATCH):
        vectors = batch.column("vector").values.to_numpy(zero_copy_only=True).reshape(-1, dim)
        yield batch, vectors


def copy(path: Path, dim: int, folder: Path) -> None:
    folder.mkdir()
    with (folder / "vectors").open("ab") as vectors_file, (folder / "texts").open("ab") as texts_file:
        for batch, vectors in batches(path, dim):
            vectors.tofile(vectors_file)
            for name in ("id", "doc_id", "title", "text"):
                np.frombuffer(batch.column(name).buffers()[2], np.uint8).tofile(texts_file)


def index(path: Path, dim: int, folder: Path, store: str) -> None:
    seen = SeenIds()

    def made() -> Iterator[Made]:
        for batch, vectors in batches(path, dim):
            columns = [batch.column(name).to_pylist() for name in ("id", "text", "title", "doc_id")]
            passages = [Passage(one, "en", text, title, doc) for one, text, title, doc in zip(*columns, strict=True)]
            yield Made(checked_batch(passages, seen), vectors)

    record = EmbedderRecord(name="rows", revision="1", dim=dim)
    IndexWriter(folder, BuildSettings(store=store), record).write(made())


def run(options: argparse.Namespace) -> None:
    """Do one of the two in this process; print its CPU seconds and its peak memory."""
    folder = Path(options.run[1])
    start = os.times()
    clock = time.perf_counter()
    if options.run[0] == "copy":
        copy(options.file, options.dim, folder)
    else:
        index(options.file, options.dim, folder, options.run[0])
    wall, end = time.perf_counter() - clock, os.times()
    cpu = end.user + end.system - start.user - start.system
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(json.dumps({"cpu": cpu, "wall": wall, "peak_mb": peak_bytes() / 1e6, "size_mb": size / 1e6}))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        run(options)
        return
    if options.quick:
        options.rows, options.repetitions = 20_000, 1
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ("copy", *STORES)}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.parquet"
        write_rows_file(file, options.rows, options.dim)
        for turn in range(options.repetitions):
            for name in found:
                folder = Path(scratch) / f"{name}-{turn}"
                command = [__file__, "--file", str(file), "--dim", str(options.dim), "--run", name, str(folder)]
                found[name].append(in_a_process(command))
    size = f"{options.rows:,} x {options.dim}"
    print(f"{size}, passages of {_WORDS} words; medians of {options.repetitions} runs")
    print("| written | CPU µs a row | wall µs a row | against pyarrow and numpy | peak MB | MB |")
    print("|---|---:|---:|---:|---:|---:|")
    rows = []
    for name, runs in found.items():
        ratios = [one["cpu"] / peer["cpu"] for one, peer in zip(runs, found["copy"], strict=True)]
        middle = {key: float(np.median([one[key] for one in runs])) for key in runs[0]}
        print(
            f"| {name} | {middle['cpu'] / options.rows * 1e6:.1f} | {middle['wall'] / options.rows * 1e6:.1f} "
            f"| {np.median(ratios):.2f} | {middle['peak_mb']:,.0f} | {middle['size_mb']:,.0f} |"
        )
        if name != "copy":
            work = f"write {size} as {name}"
            rows.append(row(work, "pyarrow and numpy copying the rows", ratios, judged=False, figures=middle))
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
