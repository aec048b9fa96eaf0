"""The passages behind BERGEN's runs: its processed documents, in the folders that ``datasets`` saved them to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.core import Passage, normalize_language
from mrag_eval.platform import CorpusError

# "wiki-100w-fr", and KILT's English Wikipedia.
_WIKIPEDIA = re.compile(r"wiki-100w-(?P<lang>[a-z]{2,3})")
_COLUMNS = ("id", "content")


class BergenTexts:
    """Look up passages by BERGEN's ids, read from disk as they are asked for.

    In a folder of documents, an id is the passage's place (``17``); in the folder above several, with the name of the
    documents before it (``wiki-100w-fr_17``), as in runs over several languages. ``counts`` are passages by language.
    """

    def __init__(self, folder: Path, language: str | None) -> None:
        """Raise CorpusError for documents in a language that neither their name nor ``language`` says."""
        self._folder = folder
        single = (folder / "state.json").is_file()
        parts = [folder] if single else sorted(path.parent for path in folder.glob("*/state.json"))
        self._parts: dict[str, tuple[Any, str]] = {}
        self.counts: dict[str, int] = {}
        for path in parts:
            # the folder's name ends in the split
            name = path.name.rpartition("_")[0] or path.name
            lang = _language_of(name) or language
            if single or lang is not None:
                lang = _known(lang, path)
                documents = _load(path)
                self._parts["" if single else name] = documents, lang
                self.counts[lang] = self.counts.get(lang, 0) + len(documents)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids, in this order. Raise CorpusError naming one that does not exist."""
        places: dict[str, list[int]] = {}
        for pid in ids:
            part, place = self._place(pid)
            places.setdefault(part, []).append(place)
        found: dict[str, Passage] = {}
        for part, wanted in places.items():
            documents, lang = self._parts[part]
            for row in documents.select(wanted):
                pid = f"{part}_{row['id']}" if part else str(row["id"])
                page = row.get("wikipedia_id")
                found[pid] = Passage(pid, lang, row["content"], "", pid if page is None else _document(lang, str(page)))
        unknown = next((pid for pid in ids if pid not in found), None)
        if unknown is not None:
            raise self._no_passage(unknown, "its place holds another one")
        return [found[pid] for pid in ids]

    def _place(self, pid: str) -> tuple[str, int]:
        part, _, place = pid.rpartition("_")
        if part not in self._parts:
            raise self._no_passage(pid, f"there are {', '.join(filter(None, self._parts)) or 'places alone'}")
        if not place.isdecimal() or int(place) >= len(self._parts[part][0]):
            raise self._no_passage(pid, f"there are {len(self._parts[part][0]):,}")
        return part, int(place)

    def _no_passage(self, pid: str, why: str) -> CorpusError:
        return CorpusError(
            f"BERGEN's documents in {self._folder} hold no passage '{pid}' ({why})",
            "name the folder of the documents that the run was made on, or of all of them: retrieval.corpus",
        )


def holds_bergen_texts(folder: Path) -> bool:
    """Return whether ``datasets`` saved documents in this folder, or in folders in it."""
    return (folder / "state.json").is_file() or next(folder.glob("*/state.json"), None) is not None


@lru_cache(maxsize=2)
def bergen_texts(folder: Path, language: str | None) -> BergenTexts:
    """Return the passages of a folder, opened once per process."""
    return BergenTexts(folder, language)


def _load(path: Path) -> Any:
    try:
        from datasets import load_from_disk

        documents = load_from_disk(str(path))
    except Exception as error:
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise CorpusError(f"{path} cannot be read ({line:.200})", "copy BERGEN's folder again") from None
    columns = getattr(documents, "column_names", None)
    if not isinstance(columns, list) or not {*_COLUMNS} <= {*columns}:
        raise CorpusError(
            f"{path}: these are no documents of BERGEN, which have the columns id and content",
            "name a folder of documents in BERGEN's folder datasets: retrieval.corpus",
        )
    return documents


def _language_of(name: str) -> str | None:
    if name.startswith("kilt-100w"):
        return "en"
    found = _WIKIPEDIA.fullmatch(name)
    return None if found is None else found["lang"]


def _known(lang: str | None, path: Path) -> str:
    if lang is None:
        raise CorpusError(
            f"{path}: its name does not say the language of its documents",
            "name it: --metadata retrieval.run_language=en",
        )
    return normalize_language(lang)


def _document(lang: str, page: str) -> str:
    from mrag_eval.retrievers import page_document_id

    return page_document_id(lang, page)
