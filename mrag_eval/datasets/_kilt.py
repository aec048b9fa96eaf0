"""Natural Questions in KILT's form: its example ids, the paragraphs that answer them, and the aliases of answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.core import NO_SPACES, base_language
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
from mrag_eval.platform import DataError, cache_dir, content_key, write_whole

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


PARAGRAPHS_FILE = "kilt_knowledgesource.json"
# Page id and number of the paragraph on it, from 0; paragraph 0 is the title.
Place = tuple[str, int]

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


@lru_cache(maxsize=2)
def kilt_paragraphs(source: Path, wanted: frozenset[Place]) -> Mapping[Place, tuple[str, str]]:
    """Return title and text of the ``wanted`` paragraphs; those that the pages do not have are absent.

    ``source`` is KILT's ``kilt_knowledgesource.json`` (``.gz`` too) or its folder. It is read as a whole once, which
    takes minutes; its size and date stand for its content. Raises DataError naming file and line for a damaged record.
    """
    file = require_path(source, "mkqa")
    file = file / PARAGRAPHS_FILE if file.is_dir() else file
    if not file.is_file():
        raise DataError(f"mkqa: {file} does not exist", f"data.paragraphs is KILT's {PARAGRAPHS_FILE}, or its folder")
    state = file.stat()
    key = content_key("KILT paragraphs", str(file), state.st_size, state.st_mtime_ns, sorted(wanted))
    kept = cache_dir() / "kilt" / f"{key[:32]}.json"
    if not kept.is_file():
        pages = {page for page, _ in wanted}
        log.info("reading %d paragraphs of %d pages from %s, once", len(wanted), len(pages), file)
        found = [
            [page, number, title, text.strip().replace("Section::::", "Section:")]
            for page, title, paragraphs in _pages(file, pages)
            for number, text in enumerate(paragraphs)
            if (page, number) in wanted
        ]
        write_whole(kept, json.dumps(found, ensure_ascii=False))
    rows = json.loads(kept.read_text(encoding="utf-8"))
    return {(page, number): (title, text) for page, number, title, text in rows}


def _pages(file: Path, wanted: Collection[str]) -> Any:
    """Yield page id, title and paragraphs of the wanted pages."""
    for number, row in iter_jsonl(file):
        page = str(row.get("wikipedia_id", ""))
        if page in wanted:
            where = f"{file}, line {number}"
            require_columns(row, ("wikipedia_title", "text"), where)
            text = row["text"]
            # the hub's copy has an object {"paragraph": [...]}
            paragraphs = text.get("paragraph") if isinstance(text, Mapping) else text
            if not isinstance(paragraphs, list):
                raise DataError(f"{where}: 'text' must be a list of paragraphs", f"copy KILT's {PARAGRAPHS_FILE} again")
            yield page, str(row["wikipedia_title"]), paragraphs


def usable_aliases(aliases: Iterable[str], answers: Sequence[str], language: str) -> tuple[str, ...]:
    """Return the further spellings of an answer: stripped, distinct, and different from the answers.

    In some rows an alias is exploded into its characters (``["j", "u", "l", "y", " ", "2", ...]``). Every character
    occurs once, in no order, so the alias cannot be restored: the characters are left out, since they would match in
    almost any reply. A single character can be a valid alias (``6``), and so can a few in a script with words that
    short; a space or a mark among them shows that they are pieces.
    """
    stripped = [alias for alias in aliases if alias]
    pieces = [alias for alias in stripped if len(alias) == 1]
    short_words = base_language(language) in NO_SPACES or base_language(language) == "ko"
    if len(pieces) > (3 if short_words else 1) or not all(map(str.isalnum, pieces)):
        stripped = [alias for alias in stripped if len(alias) > 1]
    kept = dict.fromkeys(text for alias in stripped if (text := alias.strip()))
    return tuple(text for text in kept if text not in answers)
