"""Paragraphs of KILT's pages, read once from its knowledge source and kept in the cache folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.datasets._files import iter_jsonl, require_columns, require_path
from mrag_eval.platform import DataError, cache_dir, content_key, write_whole

FILE = "kilt_knowledgesource.json"
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
    file = file / FILE if file.is_dir() else file
    if not file.is_file():
        raise DataError(f"mkqa: {file} does not exist", f"data.paragraphs is KILT's {FILE}, or its folder")
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
                raise DataError(f"{where}: 'text' must be a list of paragraphs", f"copy KILT's {FILE} again")
            yield page, str(row["wikipedia_title"]), paragraphs
