"""Lengths of an index's passages as a file beside results, from which a paper's table is filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrag_eval.platform import OPTIONAL
from mrag_eval.report.files._records import records_in, write_record

_FIX = "write it again: mrag-eval index info INDEX --lengths -o FOLDER"


@dataclass(frozen=True, slots=True)
class PassageLengths:
    """The median length of an index's passages in characters, by language, and what the index was made of.

    Attributes:
        index: the name of its folder.
        content_hash: of its passages.
        passages: their number by language.
        characters: their median length by language.
        sources: the source of each language's documents, if known.
        chunker: how documents were cut; None for passages that were given.
        parts: languages of which the index holds a part of the source.
    """

    index: str
    content_hash: str
    passages: Mapping[str, int]
    characters: Mapping[str, float]
    sources: Mapping[str, str] = field(default_factory=dict)
    chunker: Mapping[str, Any] | None = field(default=None, metadata=OPTIONAL)
    parts: tuple[str, ...] = ()


def measure_lengths(index: Path) -> PassageLengths:
    """Return the lengths of an index's passages, all of which are read; errors as of a search in it."""
    from mrag_eval.retrievers import index_info, median_lengths

    info = index_info(index)
    records = info["languages"]
    return PassageLengths(
        Path(info["path"]).name,
        info["content_hash"],
        {lang: record["passages"] for lang, record in records.items()},
        median_lengths(index),
        info["sources"],
        info["chunker"],
        tuple(lang for lang, record in records.items() if record["selection"] is not None),
    )


def write_lengths(folder: Path, found: PassageLengths) -> Path:
    """Write the lengths into a folder of results; return the file."""
    path = folder / f"lengths_{found.index}.json"
    write_record(path, found)
    return path


def read_lengths(paths: Sequence[Path]) -> list[PassageLengths]:
    """Return the lengths in the folders among ``paths``; raise DataError for a file that holds none."""
    return records_in(paths, "lengths_*.json", PassageLengths, _FIX)
