"""Published vectors of queries, found by the row's id or by the query's text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import is_language, same_language
from mrag_eval.platform import ConfigError, DataError, JsonFault, filled_lines, json_value
from mrag_eval.retrievers.corpora._hub_stream import said
from mrag_eval.retrievers.imports._blocks import BLOCK
from mrag_eval.retrievers.imports._columns import vectors_of
from mrag_eval.retrievers.imports._hub_files import HubSnapshot
from mrag_eval.retrievers.imports._presets import VECTORS
from mrag_eval.retrievers.imports._tables import ParquetTable, hub_tables, local_tables

_USUAL = {
    "vectors": VECTORS,
    "id": ("id", "_id", "query_id", "qid", "example_id"),
    "text": ("query", "question", "text"),
    "lang": ("lang", "language"),
}


@dataclass(frozen=True)
class AskedQuery:
    """A query whose vector is looked for: its row's id and language, and its text."""

    id: str
    lang: str
    text: str


@dataclass(frozen=True)
class QueryVectors:
    """Vectors of queries in a Parquet or JSON Lines file, a folder of Parquet files, or a dataset of the hub.

    ``columns`` are the user's names of the columns ``vectors``, ``id`` and ``text``, as (field, name).
    """

    source: str
    columns: tuple[tuple[str, str], ...] = field(default=())

    def identity(self) -> dict[str, Any]:
        """Return what decides the vectors: the dataset and its commit, or the file's name and SHA-256; and columns."""
        if self.source.startswith("hub:"):
            dataset = _dataset(self.source)
            found = {"source": f"hub:{dataset.name}", "revision": dataset.commit}
        else:
            path = self._path()
            files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
            digest = _digest(tuple((str(file), file.stat().st_mtime_ns) for file in files))
            found = {"source": path.name, "sha256": digest}
        return {**found, **dict(self.columns)}

    def of(self, asked: Sequence[AskedQuery], dimension: int) -> NDArray[np.float32]:
        """Return the vectors of queries, aligned with them.

        A row of the file belongs to a query if its id and language are those of the query's row, or, where the ids are
        others, if its text is the query's. If the file has texts, they must be equal. Raises DataError, naming the row,
        for a query without a vector, with two, or with one of another dimension.
        """
        out = np.empty((len(asked), dimension), dtype=np.float32)
        found: dict[int, str] = {}
        other: dict[int, str] = {}
        by_id: dict[str, list[int]] = {}
        by_text: dict[str, list[int]] = {}
        for position, query in enumerate(asked):
            by_id.setdefault(query.id, []).append(position)
            by_text.setdefault(query.text.strip(), []).append(position)
        for where, fields, vector in self._rows(asked):
            text = fields.get("text")
            named = [n for n in by_id.get(str(fields.get("id")), ()) if _fits(fields.get("lang"), asked[n])]
            same = by_text.get(text.strip(), []) if isinstance(text, str) else []
            if isinstance(text, str):
                other |= {position: text for position in named if position not in same}
            for position in same if isinstance(text, str) else named:
                if position in found and not np.array_equal(out[position], vector):
                    raise DataError(
                        f"{where}: row '{asked[position].id}' has another vector in {found[position]}",
                        "ids must be unique within a language: name the columns of query_vectors, or another file",
                    )
                if vector.shape != (dimension,):
                    raise DataError(
                        f"{where}: the vector has {vector.size:,} dimensions, the index {dimension:,}",
                        "name the vectors of the index's own embedder",
                    )
                out[position], found[position] = vector, where
        self._check(asked, found, other)
        if not np.isfinite(out).all():
            row = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
            raise DataError(f"{found[row]}: the vector holds a value that is not finite", "the file may be damaged")
        return out

    def _check(self, asked: Sequence[AskedQuery], found: dict[int, str], other: dict[int, str]) -> None:
        missing = [position for position in range(len(asked)) if position not in found]
        if not missing:
            return
        first = asked[missing[0]]
        question = f": its question there is {other[missing[0]][:60]!r}" if missing[0] in other else ""
        more = f" ({len(missing):,} of {len(asked):,} rows have none)" if len(missing) > 1 else ""
        raise DataError(
            f"{self.source} has no vector for row '{first.id}' ({first.lang}){question}{more}",
            "name the file for these rows: retrieval.query_vectors (its columns: query_vectors.id, .text, .vectors)",
        )

    def _path(self) -> Path:
        path = Path(self.source).expanduser()
        if not path.exists():
            raise DataError(f"retrieval.query_vectors: {path} does not exist", "name a file, or hub:ORG/NAME")
        return path

    def _rows(self, asked: Sequence[AskedQuery]) -> Iterator[tuple[str, dict[str, Any], NDArray[Any]]]:
        """Yield the place, fields and vector of every row that may be one of the ``asked``."""
        if self.source.startswith("hub:"):
            tables = hub_tables(_dataset(self.source), ())
        else:
            path = self._path()
            if path.is_file() and path.suffix != ".parquet":
                yield from self._lines(path)
                return
            tables = local_tables(path, ())
        for table in tables:
            if table.lang is None or any(same_language(table.lang, query.lang) for query in asked):
                yield from self._table(table)

    def _lines(self, path: Path) -> Iterator[tuple[str, dict[str, Any], NDArray[Any]]]:
        for number, raw in filled_lines(path.open("rb"), path):
            where = f"{path}, line {number:,}"
            try:
                record = json_value(raw.decode("utf-8-sig"))
                columns = self._columns([*record], where)
                vector = np.asarray(record[columns["vectors"]], dtype=np.float32)
            except (JsonFault, UnicodeDecodeError, TypeError, ValueError) as error:
                raise DataError(f"{where}: no object with a vector: {said(error)}", "correct that line") from None
            yield where, {name: record[column] for name, column in columns.items() if name != "vectors"}, vector

    def _table(self, table: ParquetTable) -> Iterator[tuple[str, dict[str, Any], NDArray[Any]]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        number = 0
        try:
            with table.open() as raw, pq.ParquetFile(raw) as file:
                columns = self._columns(file.schema_arrow.names, table.name)
                for batch in file.iter_batches(BLOCK, columns=list(columns.values())):
                    vectors = vectors_of(batch.column(columns["vectors"]), table.name)
                    names = [name for name in columns if name != "vectors"]
                    fields = batch.select([columns[name] for name in names]).to_pylist()
                    for row, vector in zip(fields, vectors, strict=True):
                        number += 1
                        named = {name: row[columns[name]] for name in names}
                        yield f"{table.name}, row {number:,}", {"lang": table.lang, **named}, vector
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{table.name}: cannot be read after row {number:,}: {said(error)}", "download it again"
            ) from None

    def _columns(self, there: Sequence[str], where: str) -> dict[str, str]:
        chosen = dict(self.columns)
        found = {}
        for name, usual in _USUAL.items():
            column = chosen.get(name) or next((one for one in usual if one in there), None)
            if column is not None and column not in there:
                raise DataError(f"{where}: no column '{column}'", f"name another: query_vectors.{name}")
            if column is not None:
                found[name] = column
        if "vectors" not in found or not found.keys() & {"id", "text"}:
            missing = "vectors" if "vectors" not in found else "id"
            raise DataError(
                f"{where}: no column of {'vectors' if missing == 'vectors' else 'ids'} "
                f"(columns: {', '.join(sorted(there)[:12])})",
                f"name it: query_vectors.{missing}",
            )
        return found


def _fits(lang: Any, query: AskedQuery) -> bool:
    """Return whether the language of a row is that of a query; a row without one fits every query."""
    return lang is None or (is_language(str(lang)) and same_language(str(lang), query.lang))


# a run asks for it for every task, and the hub would answer each time
@lru_cache(maxsize=4)
def _dataset(source: str) -> HubSnapshot:
    return HubSnapshot.named(source)


@lru_cache(maxsize=4)
def _digest(files: tuple[tuple[str, int], ...]) -> str:
    if not files:
        raise ConfigError("retrieval.query_vectors: the folder holds no Parquet files", "name a file, or hub:ORG/NAME")
    digest = hashlib.sha256()
    for name, _ in files:
        with Path(name).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
