"""Natural Questions in KILT's form: the example ids it holds, and where on Wikipedia each is answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.datasets._declaration import HubDataset
from mrag_eval.datasets._files import (
    file_in,
    hub_dataset,
    hub_place,
    iter_jsonl,
    require_columns,
    require_path,
    sha256_file,
)
from mrag_eval.datasets._kilt_paragraphs import Place
from mrag_eval.platform import DataError

KILT = HubDataset(id="facebook/kilt_tasks", licence="MIT", setting="data.kilt")
FILE = "nq-train-kilt.jsonl"
_COLUMNS = ("id", "output")


@dataclass(frozen=True)
class KiltNq:
    """KILT's Natural Questions. ``places`` maps an example id to pages and paragraphs that answer it, in file order.

    A place whose paragraph is not named has None for it.
    """

    places: Mapping[str, tuple[tuple[str, int | None], ...]]
    where: str
    place: Mapping[str, Any]

    def pages(self, example: str) -> tuple[str, ...]:
        """Return the page ids that answer a question."""
        return tuple(dict.fromkeys(page for page, _ in self.places[example]))

    def paragraphs(self, example: str) -> tuple[Place, ...]:
        """Return the paragraphs that answer a question."""
        return tuple((page, number) for page, number in self.places[example] if number is not None)


def read_kilt_nq(path: Path | None) -> KiltNq:
    """Read KILT's training questions of Natural Questions, from the hub or from a local file of the same records.

    Raises DataError naming file and line for a record without id or output, or whose provenance is not a list.
    """
    if path is None:
        return _from_hub()
    where, next_step = f"mkqa: data.kilt={path}", f"copy it there, from the dataset {KILT.id}"
    file = file_in(require_path(path, "mkqa"), (FILE, f"{FILE}.gz"), where, next_step)
    return _from_file(file, file.stat().st_mtime_ns)


# The leaves of a group read the same file in succession.
@lru_cache(maxsize=2)
def _from_file(file: Path, _mtime_ns: int) -> KiltNq:
    records = ((f"{file}, line {number}", row) for number, row in iter_jsonl(file))
    places = _places(records)
    if not places:
        raise DataError(f"{file}: holds no record")
    return KiltNq(places, str(file), {"path": str(file), "sha256": sha256_file(file)})


@lru_cache(maxsize=1)
def _from_hub() -> KiltNq:
    rows = hub_dataset("mkqa", KILT.id, "nq", "train", KILT.revision, _COLUMNS, KILT.setting)
    records = ((f"{KILT.id}, config nq, row {index}", row) for index, row in enumerate(rows))
    place = hub_place(KILT.id, KILT.revision, rows, config="nq", split="train")
    return KiltNq(_places(records), f"{KILT.id}, config nq", place)


def _places(records: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, tuple[tuple[str, int | None], ...]]:
    places: dict[str, tuple[tuple[str, int | None], ...]] = {}
    for where, row in records:
        require_columns(row, _COLUMNS, where)
        name = str(row["id"])
        places[name] = tuple(dict.fromkeys((*places.get(name, ()), *_cited(row["output"], where))))
    return places


def _cited(outputs: Any, where: str) -> Iterator[tuple[str, int | None]]:
    """Yield the sources of answers; one without an answer does not count, as in the mRAG authors' list of pages."""
    for output in _records(outputs, where, "output"):
        sources = _records(output.get("provenance"), where, "provenance")
        for source in sources if output.get("answer") else ():
            page = source.get("wikipedia_id")
            if page in (None, ""):
                continue
            first, last = source.get("start_paragraph_id"), source.get("end_paragraph_id")
            if not isinstance(first, int):
                yield str(page), None
                continue
            for number in range(first, max(first, last if isinstance(last, int) else first) + 1):
                yield str(page), number


def _records(value: Any, where: str, key: str) -> list[Mapping[str, Any]]:
    """Return a list of objects; the hub's columns may have one object of lists instead."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [dict(zip(value, items, strict=True)) for items in zip(*value.values(), strict=True)]
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise DataError(f"{where}: '{key}' must be a list of objects")
    return value
