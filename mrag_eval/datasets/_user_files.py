"""Readers of files written by a user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.datasets._files import iter_csv, iter_jsonl
from mrag_eval.platform import suggesting

_CORRECT = "correct the file, and run the same command again"


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of a JSON Lines file; raise DataError for a line that is not an object."""
    with suggesting(_CORRECT):
        yield from iter_jsonl(path)


def read_table(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (row number from 1, record) of a CSV file, or of a TSV file by its name.

    Raises DataError for a missing column.
    """
    with suggesting(_CORRECT):
        yield from iter_csv(path, columns, delimiter="\t" if path.suffix == ".tsv" else ",")
