"""Parquet files with a column of vectors, on this machine or on the hub."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from mrag_eval.core import is_language, normalize_language
from mrag_eval.platform import CUT_OFF, DataError, did_you_mean
from mrag_eval.retrievers.corpora._hub_stream import said
from mrag_eval.retrievers.corpora._reading import Reading
from mrag_eval.retrievers.imports._blocks import BLOCK, PassageBlock, read_ahead
from mrag_eval.retrievers.imports._columns import ColumnLayout, vectors_of
from mrag_eval.retrievers.imports._hub_files import HubSnapshot

_DUMP = re.compile(r"\d{8}\.")
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z-]+)?")


@dataclass(frozen=True)
class ParquetTable:
    """One Parquet file; ``lang`` is its language if its folder names one."""

    name: str
    lang: str | None
    open: Callable[[], Any]


class ParquetSource:
    """Tables read one after the other, a part of a row group at a time.

    ``limit`` is the number of passages of each language to take, ``langs`` the languages to keep.
    """

    def __init__(
        self,
        tables: Sequence[ParquetTable],
        layout: ColumnLayout,
        *,
        name: str,
        revision: str | None = None,
        langs: Collection[str] = (),
        limit: int | None = None,
    ) -> None:
        self.name, self.revision = name, revision
        self._tables, self._layout, self._langs, self._limit = tables, layout, frozenset(langs), limit

    def blocks(self, done: int, reading: Reading) -> Iterator[PassageBlock]:
        """Yield the blocks of all tables; see :class:`VectorSource`."""
        reading.whole = float(len(self._tables))
        taken: dict[str, int] = {}
        read = 0
        for table in self._tables:
            if self._has_enough(table, taken):
                continue
            for block in self._of(table, done - read, reading):
                kept = self._kept(block, taken)
                if len(kept):
                    read += len(kept)
                    yield kept
                if self._has_enough(table, taken):
                    break

    def _has_enough(self, table: ParquetTable, taken: dict[str, int]) -> bool:
        """Return whether the row limit of a table is reached."""
        langs = self._langs if table.lang is None else {table.lang}
        return self._limit is not None and bool(langs) and all(taken.get(lang, 0) >= self._limit for lang in langs)

    def _kept(self, block: PassageBlock, taken: dict[str, int]) -> PassageBlock:
        """Return the rows of wanted languages within the limit."""
        if self._limit is None and not self._langs:
            return block
        rows = []
        for row, lang in enumerate(block.passages.langs):
            if self._langs and lang not in self._langs:
                continue
            if self._limit is None or taken.get(lang, 0) < self._limit:
                taken[lang] = taken.get(lang, 0) + 1
                rows.append(row)
        return block.of(rows)

    def _of(self, table: ParquetTable, written: int, reading: Reading) -> Iterator[PassageBlock]:
        """Yield the blocks of one table; row groups within the first ``written`` rows are read without vectors."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        row = 0
        try:
            with table.open() as raw, pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20) as file:
                columns = self._layout.columns(file.schema_arrow.names, table.name)
                if table.lang is None and self._layout.lang is None and "lang" not in columns:
                    raise DataError(
                        f"{table.name}: its language is unknown",
                        "put it into a folder named by its code, or name the language: --lang CODE",
                    )
                count = file.metadata.num_rows
                with reading.part(1.0, lambda: row / max(count, 1)):
                    # Arrow decodes outside the interpreter lock, while passages are made of the last batch
                    for wanted, batch in read_ahead(_batches(file, columns, written)):
                        block = self._block(table, wanted, batch, row)
                        row += len(batch)
                        yield block
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            again = f"{CUT_OFF}; then give the same command with --resume"
            raise DataError(f"{table.name}: cannot be read after row {row:,}: {said(error)}", again) from None

    def _block(self, table: ParquetTable, columns: dict[str, str], batch: Any, row: int) -> PassageBlock:
        # a column of languages is surer than the name of a folder
        lang = self._layout.lang or (None if "lang" in columns else table.lang)
        read = {
            field: column
            for field, column in columns.items()
            if field not in ("vectors", "" if lang is None else "lang")
        }
        values = {field: batch.column(column) for field, column in read.items()}
        numbers = range(row + 1, row + 1 + len(batch))
        passages = self._layout.passages(values, lang, numbers, table.name)
        where = f"{table.name}, from row {row + 1:,}"
        vectors = vectors_of(batch.column(columns["vectors"]), where) if "vectors" in columns else None
        return PassageBlock(passages, vectors, table.name, numbers)


def _batches(file: Any, columns: dict[str, str], written: int) -> Iterator[tuple[dict[str, str], Any]]:
    """Yield the batches of an open file, each with its columns by field."""
    ends = np.cumsum([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
    known = int(np.searchsorted(ends, written, side="right"))
    texts = {field: column for field, column in columns.items() if field != "vectors"}
    for groups, wanted in ((range(known), texts), (range(known, len(ends)), columns)):
        if groups:
            for batch in file.iter_batches(BLOCK, row_groups=list(groups), columns=list(wanted.values())):
                yield wanted, batch


def local_tables(root: Path, langs: Collection[str], lang: str | None = None) -> list[ParquetTable]:
    """Return the Parquet files of a folder, or one file, that may hold the languages ``langs`` (all if it is empty)."""
    paths = [root] if root.is_file() else sorted(root.rglob("*.parquet"))
    folder = root if root.is_dir() else root.parent
    # of the folders above the files, only the innermost may name a language
    names = {path: f"{folder.resolve().name}/{path.relative_to(folder).as_posix()}" for path in paths}
    held = {path: lang or language_of(name) for path, name in names.items()}
    tables = [ParquetTable(str(path), held[path], lambda path=path: _native(path)) for path in paths]  # type: ignore[misc]
    return _wanted(tables, langs, str(root))


def _native(path: Path) -> Any:
    """Open a file that Arrow reads without the interpreter, which other threads may hold."""
    import pyarrow as pa

    return pa.OSFile(str(path))


def hub_tables(dataset: HubSnapshot, langs: Collection[str], lang: str | None = None) -> list[ParquetTable]:
    """Return the Parquet files of a dataset on the hub, as :func:`local_tables`."""
    names = [name for name in dataset.files if name.endswith(".parquet")]
    tables = [
        ParquetTable(f"{dataset.name}/{name}", lang or language_of(name), lambda name=name: dataset.open(name))  # type: ignore[misc]
        for name in names
    ]
    return _wanted(tables, langs, f"hub:{dataset.name}")


def language_of(name: str) -> str | None:
    """Return the language that a folder of a file's path names (``data/ko/``, ``20231101.ko/``); None if none does."""
    for part in reversed(PurePosixPath(name).parts[:-1]):
        code = _DUMP.sub("", part)
        if _CODE.fullmatch(code) and is_language(code):
            return normalize_language(code)
    return None


def _wanted(tables: list[ParquetTable], langs: Collection[str], where: str) -> list[ParquetTable]:
    if not tables:
        raise DataError(
            f"{where} holds no Parquet files", "name a dataset, a folder or a file with a column of vectors"
        )
    there = {table.lang for table in tables if table.lang is not None}
    missing = [] if None in {table.lang for table in tables} else [lang for lang in langs if lang not in there]
    if missing:
        raise DataError(f"{where} holds no '{missing[0]}'{did_you_mean(missing[0], there)}", "choose others: --langs")
    return [table for table in tables if not langs or table.lang is None or table.lang in langs]
