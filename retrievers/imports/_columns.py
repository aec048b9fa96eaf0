"""Columns of Arrow batches as the fields of passages and as vectors."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import ConfigError, DataError, Passage, did_you_mean, normalize_language
from mrag_eval.retrievers.corpora._wikipedia import page_document_id
from mrag_eval.retrievers.imports._presets import FIELDS, VECTORS
from mrag_eval.retrievers.index._hashing import passage_id


@dataclass(frozen=True)
class Layout:
    """Where the fields of a passage are.

    ``keys`` are the user's or the preset's names of columns; an empty name means that there is none. ``vectors`` is the
    column of the vectors; ``page`` and ``ids_by_language`` are as in a preset, ``lang`` is the language of all rows.
    """

    vectors: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    ids_by_language: bool = False
    lang: str | None = None

    def __post_init__(self) -> None:
        for name in self.keys:
            if name not in FIELDS:
                raise ConfigError(f"--key: unknown field '{name}'{did_you_mean(name, FIELDS)}")

    def columns(self, there: Collection[str], where: str) -> dict[str, str]:
        """Return field → column, ``vectors`` among them; raise DataError for a column that is not ``there``."""
        found: dict[str, str] = {}
        for name, usual in FIELDS.items():
            key = self.keys.get(name)
            column = next((one for one in usual if one in there), "") if key is None else key
            if column and column not in there:
                raise _no_column(column, there, where, f"--key {name}=COLUMN")
            if column:
                found[name] = column
        if "text" not in found:
            raise _no_column("text", there, where, "--key text=COLUMN")
        column = self.vectors or next((one for one in VECTORS if one in there), VECTORS[0])
        if column not in there:
            raise _no_column(column, there, where, "--vectors COLUMN")
        return {**found, "vectors": column}

    def passages(self, values: Mapping[str, Sequence[Any]], lang: str | None, first: int) -> list[Passage]:
        """Return the passages of a batch, whose first row has the number ``first`` in its file or folder.

        ``values`` are the columns by field; ``lang`` is the language of the file, None if there is a column of it.
        """
        texts = ["" if text is None else text for text in values["text"]]
        count = len(texts)
        titles = _texts(values.get("title"), count)
        langs = [lang] * count if lang is not None else [normalize_language(str(one)) for one in values["lang"]]
        given, named = _texts(values.get("id"), count), _texts(values.get("doc_id"), count)
        documents = [self._document(*row) for row in zip(given, named, titles, langs, strict=True)]
        if "id" not in values:
            numbered = enumerate(zip(documents, langs, texts, strict=True), first)
            given = [passage_id(document, one, number, text) for number, (document, one, text) in numbered]
        elif self.ids_by_language:
            given = [page_document_id(one, identifier) for identifier, one in zip(given, langs, strict=True)]
        rows = zip(given, langs, texts, titles, documents, strict=True)
        return [Passage(*row) for row in rows]

    def _document(self, identifier: str, named: str, title: str, lang: str) -> str:
        """Return the id of the page that a passage was cut from: by its number if the id has it."""
        found = re.fullmatch(self.page, identifier) if self.page else None
        if found is not None:
            return page_document_id(lang, found[1])
        return named or (page_document_id(lang, title) if title else identifier)


def _texts(values: Sequence[Any] | None, count: int) -> list[str]:
    if values is None:
        return [""] * count
    return [one if isinstance(one, str) else "" if one is None else str(one) for one in values]


def _no_column(column: str, there: Collection[str], where: str, fix: str) -> DataError:
    named = ", ".join(sorted(there)[:12])
    return DataError(f"{where}: no column '{column}' (columns: {named})", f"name it: {fix}")


def vectors_of(column: Any, where: str) -> NDArray[Any]:
    """Return an Arrow array of lists of numbers as rows × dimensions, without a copy.

    Raises DataError for another type, for a missing vector, and for vectors of different lengths.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        size = -1
    else:
        raise DataError(f"{where}: the column holds {kind}, no vectors", "name the column of the vectors: --vectors")
    inner = kind.value_type
    if not (pa.types.is_floating(inner) or inner in (pa.int8(), pa.int16(), pa.int32(), pa.int64())):
        raise DataError(f"{where}: the column holds lists of {inner}, no vectors", "name another column: --vectors")
    if column.null_count:
        raise DataError(
            f"{where}: {column.null_count:,} of {len(column):,} rows have no vector", "leave those rows out"
        )
    values = column.flatten()
    if size < 0:
        lengths = np.diff(column.offsets.to_numpy())
        size = int(lengths[0]) if len(lengths) else 0
        if (lengths != size).any():
            raise DataError(f"{where}: vectors have different lengths, {size:,} and {lengths[lengths != size][0]:,}",
                            "the column holds no vectors of one embedder")  # fmt: skip
    if values.null_count:
        raise DataError(f"{where}: a vector holds a missing value", "the file may be damaged")
    rows: NDArray[Any] = values.to_numpy(zero_copy_only=True).reshape(len(column), size)
    return rows
