"""Files of logs: rows of what a system answered, in the formats that programs save them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mrag_eval.datasets._files import AS_JSON, decode, iter_csv, iter_jsonl, parquet, read_bytes
from mrag_eval.platform import DataError, json_from
from mrag_eval.systems import plain, recognised

# Rows of a Parquet file that are in memory together.
_BATCH = 256


def log_rows(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a log, each with its place (``name, line 3``): JSON Lines, JSON, CSV, TSV or Parquet.

    Raises DataError, naming the line, for what cannot be read.
    """
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if ending in ("csv", "tsv"):
        for number, row in iter_csv(path, (), delimiter="\t" if ending == "tsv" else ","):
            yield f"{name}, row {number}", {key: value for key, value in row.items() if value != ""}
    elif ending in ("parquet", "pq"):
        yield from _of_parquet(path, name)
    elif ending == "json" and (rows := _of_json(path, name)) is not None:
        yield from rows
    else:
        yield from ((f"{name}, line {number}", row) for number, row in iter_jsonl(path))


def _of_json(path: Path, name: str) -> Iterator[tuple[str, Any]] | None:
    """Return the rows of a JSON file: an array, an object that holds one, or columns; None for JSON Lines."""
    text = decode(read_bytes(path), name)
    try:
        value = json_from(text, name, AS_JSON)
    except DataError:
        first, _, rest = text.strip().partition("\n")
        if first.startswith("{") and first.endswith("}") and rest:
            return None
        raise
    if isinstance(value, Mapping) and recognised(value) is None:
        lists = {key: found for key, found in value.items() if isinstance(found, list)}
        if lists and all(isinstance(row, Mapping) for found in lists.values() for row in found):
            value = max(lists.values(), key=len)
        elif lists and len(lists) == len(value) and len({len(found) for found in lists.values()}) == 1:
            value = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    rows = value if isinstance(value, list) else [value]
    return ((f"{name}, entry {number}", row) for number, row in enumerate(rows, 1))


def _of_parquet(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    number = 0
    with parquet(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield f"{name}, row {number}", {key: value for key, value in plain(row).items() if value is not None}
