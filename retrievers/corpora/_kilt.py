"""KILT's knowledge source: the English Wikipedia of August 2019 in paragraphs (JSON Lines)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from mrag_eval.platform import DataError, JsonFault, json_value, lines_of
from mrag_eval.retrievers.corpora._corpus import Document
from mrag_eval.retrievers.corpora._editions import Edition
from mrag_eval.retrievers.corpora._reading import Reading, Stream, gunzipped

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
    number = pages = 0
    try:
        with (reading or Reading()).binary(path, gunzipped if path.suffix == ".gz" else None) as lines:
            if reading is not None:
                reading.expect([path])
            for number, raw in enumerate(lines_of(lines, path), 1):
                if (line := raw.decode("utf-8")).strip():
                    pages += 1
                    yield _document(line, f"{path}, line {number}")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read after line {number}: {error}", "fetch the file again") from None
    if not pages:
        raise DataError(f"{path}: holds no page", f"name KILT's {FILE}, complete, with --from")


def _document(line: str, where: str) -> Document:
    try:
        record = json_value(line)
    except JsonFault:
        raise DataError(f"{where}: not JSON", "the file may be cut off: download it again") from None
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: not a JSON object", "the file may be cut off: download it again")
    page, title, found = record.get("wikipedia_id"), record.get("wikipedia_title"), record.get("text")
    # a list, or, in the hub's copy, an object that holds one
    paragraphs = found.get("paragraph") if isinstance(found, Mapping) else found
    is_named = isinstance(page, str | int) and isinstance(title, str)
    if not is_named or not isinstance(paragraphs, list) or not all(isinstance(part, str) for part in paragraphs):
        raise DataError(f"{where}: no wikipedia_id, wikipedia_title or text", f"a line of {FILE} has all three")
    kept = [text.strip().replace(_SECTION, "Section:") for text in paragraphs if _LIST_ITEM not in text]
    return Document(str(page), "en", " ".join(kept), str(title))
