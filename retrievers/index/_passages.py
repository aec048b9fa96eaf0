"""Passages on disk, addressable by row without reading the rest.

``<lang>.text`` holds id, document id, title and text of every passage in sequence, as UTF-8, and ``<lang>.offsets`` the
end of each of the four (little-endian int64). Both are append-only during a build and memory-mapped afterwards, so
opening them is free and reading a passage takes four slices. ``<lang>.parquet`` holds the same passages for other
tools; search does not read it, because Parquet decodes a whole row group to return one row.

A *row* is the number of a passage in its index: languages in order of code, passages in corpus order.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, read_array
from mrag_eval.retrievers.index._hashing import hash64

Rows = NDArray[np.int64]
Record = tuple[str, str, str, str]
"""Id, document id, title, text."""

FIELDS = 4
# offsets compared at a time
_CHECKED = 1 << 20
# hashes of all passage and document ids, ascending, and the row of each
LOOKUP_HASHES = "lookup.hash.npy"
LOOKUP_ROWS = "lookup.row.npy"


def text_path(folder: Path, lang: str) -> Path:
    return folder / "passages" / f"{lang}.text"


def offsets_path(folder: Path, lang: str) -> Path:
    return folder / "passages" / f"{lang}.offsets"


def check_offsets(folder: Path, counts: dict[str, int]) -> None:
    """Raise CorpusError if the offsets of a language do not fit its text file.

    There must be four ascending offsets per passage, up to the end of the file. Reads 32 bytes per passage.
    """
    for lang, count in counts.items():
        ends = np.memmap(offsets_path(folder, lang), dtype="<i8", mode="r")
        size = text_path(folder, lang).stat().st_size
        sound = len(ends) == FIELDS * count and ends[0] >= 0 and ends[-1] == size
        parts = (ends[at : at + _CHECKED + 1] for at in range(0, len(ends), _CHECKED))
        if not sound or not all((part[1:] >= part[:-1]).all() for part in parts):
            name = offsets_path(folder, lang).relative_to(folder).as_posix()
            raise CorpusError(
                f"index {folder}: file {name} is damaged (it does not match the passages)",
                "rebuild it: mrag-eval index build --overwrite ...",
            )


class _LanguageFile:
    """The passages of one language, opened on first use."""

    def __init__(self, folder: Path, lang: str, count: int) -> None:
        self.lang, self.count = lang, count
        with text_path(folder, lang).open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._ends = np.memmap(offsets_path(folder, lang), dtype="<i8", mode="r")

    def _bounds(self, rows: Rows, first: int, last: int) -> list[list[int]]:
        """Return, per row, the offsets from the start of field ``first`` to the end of field ``last``."""
        columns = rows[:, None] * FIELDS + np.arange(first - 1, last + 1)
        bounds = self._ends[np.maximum(columns, 0)]
        bounds[columns < 0] = 0
        result: list[list[int]] = bounds.tolist()
        return result

    def records(self, rows: Rows) -> list[Record]:
        text = self._text
        return [
            (str(text[a:b], "utf-8"), str(text[b:c], "utf-8"), str(text[c:d], "utf-8"), str(text[d:e], "utf-8"))
            for a, b, c, d, e in self._bounds(rows, 0, 3)
        ]

    def ids(self, rows: Rows) -> list[str]:
        text = self._text
        return [str(text[a:b], "utf-8") for a, b in self._bounds(rows, 0, 0)]

    def names(self, rows: Rows) -> list[tuple[str, str]]:
        """Return passage id and document id per row."""
        text = self._text
        return [(str(text[a:b], "utf-8"), str(text[b:c], "utf-8")) for a, b, c in self._bounds(rows, 0, 1)]


class PassageRows(ABC):
    """Passages numbered by row, languages in order of code; ``counts`` holds passages per language."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.languages = tuple(sorted(counts))
        self.counts = counts
        ends = np.cumsum([counts[lang] for lang in self.languages], dtype=np.int64)
        self._starts: Rows = np.concatenate([np.zeros(1, dtype=np.int64), ends])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def span(self, lang: str) -> tuple[int, int]:
        """Return the first row of a language and the row after its last."""
        at = self.languages.index(lang)
        return int(self._starts[at]), int(self._starts[at + 1])

    def language_numbers(self, rows: Rows) -> Rows:
        """Return the position of every row's language in ``languages``, -1 for row -1."""
        numbers: Rows = np.searchsorted(self._starts, rows, side="right") - 1
        return numbers

    def by_language(self, rows: Rows) -> Iterator[tuple[str, Rows, Rows]]:
        """Yield (language, positions within ``rows``, rows within the language) for every language in ``rows``."""
        if len(self.languages) == 1:
            yield self.languages[0], np.arange(len(rows)), rows
            return
        which = np.searchsorted(self._starts, rows, side="right") - 1
        for at in np.unique(which).tolist():
            positions = np.nonzero(which == at)[0]
            yield self.languages[at], positions, rows[positions] - self._starts[at]

    def counts_of(self, rows: Rows) -> dict[str, int]:
        """Count the rows per language."""
        return {lang: len(positions) for lang, positions, _ in self.by_language(rows) if len(positions)}

    @abstractmethod
    def records(self, rows: Rows) -> Iterator[tuple[str, Rows, list[Record]]]:
        """Yield (language, positions within ``rows``, their records) for every language in ``rows``."""

    @abstractmethod
    def ids(self, rows: Rows) -> list[str]: ...

    @abstractmethod
    def rows_named(self, names: Collection[str]) -> dict[str, Rows]: ...

    @abstractmethod
    def rows_of_passages(self, ids: Sequence[str]) -> Rows: ...

    @property
    @abstractmethod
    def folder(self) -> Path | str: ...

    def passages(self, rows: Rows) -> list[Passage]:
        out: dict[int, Passage] = {}
        for lang, positions, records in self.records(rows):
            for position, (identifier, doc_id, title, text) in zip(positions.tolist(), records, strict=True):
                out[position] = Passage(id=identifier, lang=lang, text=text, title=title, doc_id=doc_id)
        return [out[position] for position in range(len(rows))]


class PassageStore(PassageRows):
    """Access to the passages of an index folder by row; ``counts`` holds passages per language."""

    def __init__(self, folder: Path, counts: dict[str, int]) -> None:
        self._folder = folder
        super().__init__(counts)
        self._files: dict[str, _LanguageFile] = {}
        self._lookup: tuple[NDArray[np.uint64], Rows] | None = None

    @property
    def folder(self) -> Path:
        return self._folder

    def _file(self, lang: str) -> _LanguageFile:
        if lang not in self._files:
            self._files[lang] = _LanguageFile(self.folder, lang, self.counts[lang])
        return self._files[lang]

    def ids(self, rows: Rows) -> list[str]:
        out = [""] * len(rows)
        for lang, positions, local in self.by_language(rows):
            for position, identifier in zip(positions.tolist(), self._file(lang).ids(local), strict=True):
                out[position] = identifier
        return out

    def records(self, rows: Rows) -> Iterator[tuple[str, Rows, list[Record]]]:
        for lang, positions, local in self.by_language(rows):
            yield lang, positions, self._file(lang).records(local)

    def longest(self, lang: str) -> tuple[int, int]:
        """Return the bytes of a language's longest field (id, document id, title or text), and its row."""
        ends = np.memmap(offsets_path(self.folder, lang), dtype="<i8", mode="r")
        most, row, before = 0, 0, 0
        for start in range(0, len(ends), _CHECKED):
            block = np.asarray(ends[start : start + _CHECKED])
            lengths = np.diff(block, prepend=before)
            at = int(lengths.argmax())
            if lengths[at] > most:
                most, row = int(lengths[at]), (start + at) // FIELDS
            before = int(block[-1])
        return most, self.span(lang)[0] + row

    # --- from ids to rows -------------------------------------------------------------------------------------------

    def _load_lookup(self) -> tuple[NDArray[np.uint64], Rows]:
        if self._lookup is None:
            folder = self.folder / "passages"
            self._lookup = (
                read_array(folder / LOOKUP_HASHES),
                read_array(folder / LOOKUP_ROWS),
            )
        return self._lookup

    def rows_named(self, names: Collection[str]) -> dict[str, Rows]:
        """Return, for every name, the rows with that passage id or document id."""
        hashes, rows = self._load_lookup()
        unique = list(dict.fromkeys(names))
        wanted = np.fromiter(map(hash64, unique), dtype=np.uint64, count=len(unique))
        low, high = np.searchsorted(hashes, wanted, side="left"), np.searchsorted(hashes, wanted, side="right")
        found: dict[str, Rows] = {}
        for name, a, b in zip(unique, low.tolist(), high.tolist(), strict=True):
            candidates = np.asarray(rows[a:b])
            keep = np.zeros(len(candidates), dtype=bool)
            # different ids may share a hash, so compare the ids
            for lang, positions, local in self.by_language(candidates):
                keep[positions] = [name in names for names in self._file(lang).names(local)]
            found[name] = candidates[keep]
        return found

    def ids_of_hashes(self, hashes: NDArray[np.uint64]) -> list[str]:
        """Return the ids of passages whose id or document id has one of these hashes."""
        known, rows = self._load_lookup()
        low, high = np.searchsorted(known, hashes, side="left"), np.searchsorted(known, hashes, side="right")
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        found = [np.asarray(rows[a:b]) for a, b in pairs if b > a]
        return self.ids(np.unique(np.concatenate(found))) if found else []

    def rows_of_passages(self, ids: Sequence[str]) -> Rows:
        """Return the row of every passage id; raise CorpusError for an unknown one."""
        found = self.rows_named(ids)
        out = np.empty(len(ids), dtype=np.int64)
        for position, identifier in enumerate(ids):
            rows = found[identifier]
            exact = rows[[name == identifier for name in self.ids(rows)]] if len(rows) else rows
            if not len(exact):
                raise CorpusError(
                    f"index {self.folder} holds no passage '{identifier}'",
                    "use ids of this index: mrag-eval index info FOLDER",
                )
            out[position] = exact[0]
        return out
