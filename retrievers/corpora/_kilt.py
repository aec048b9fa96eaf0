"""KILT's knowledge source: the English Wikipedia of August 2019 in paragraphs (JSON Lines)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mrag_eval.platform import DataError, json_line
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._editions import Edition
from mrag_eval.retrievers.corpora._reading import Reading, Stream

FILE = "kilt_knowledgesource.json"
_LIST_ITEM, _SECTION = "BULLET::::", "Section::::"


def kilt_edition(path: Path) -> Edition:
    """Return KILT's knowledge source as an edition; raise DataError if there is no such file."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise DataError(f"{file} does not exist", f"name KILT's {FILE}, or its folder, with --from")
    return Edition(
        "en", f"KILT, Wikipedia of 2019-08-01, {file.name}", lambda: Stream(lambda reading: read_kilt(file, reading))
    )


def read_kilt(path: Path, reading: Reading | None = None) -> Iterator[Document]:
    """Yield the pages of ``kilt_knowledgesource.json`` (``.gz`` too), one per line, with the page's id.

    List items are left out, section marks become ``Section:``, and the paragraph that repeats the title stays, as in
    the passages of Retrieval-augmented generation in multilingual settings. Raises DataError naming file and line for
    an invalid record.
    """
    reading, pages = reading or Reading(), 0
    reading.expect([path])
    for number, raw in reading.lines(path):
        pages += 1
        where = f"{path}, line {number}"
        yield _document(json_line(raw, where), where)
    if not pages:
        raise DataError(f"{path}: holds no page", f"name KILT's {FILE}, complete, with --from")


def _document(record: Mapping[str, Any], where: str) -> Document:
    page, title, found = record.get("wikipedia_id"), record.get("wikipedia_title"), record.get("text")
    # a list, or, in the hub's copy, an object that holds one
    paragraphs = found.get("paragraph") if isinstance(found, Mapping) else found
    is_named = isinstance(page, str | int) and isinstance(title, str)
    if not is_named or not isinstance(paragraphs, list) or not all(isinstance(part, str) for part in paragraphs):
        raise DataError(f"{where}: no wikipedia_id, wikipedia_title or text", f"a line of {FILE} has all three")
    kept = [text.strip().replace(_SECTION, "Section:") for text in paragraphs if _LIST_ITEM not in text]
    return Document(str(page), "en", " ".join(kept), str(title))
