"""Columns of Arrow batches as the fields of passages and as vectors."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import normalize_language
from mrag_eval.platform import ConfigError, DataError, did_you_mean
from mrag_eval.retrievers.corpora._wikipedia import page_document_id
from mrag_eval.retrievers.imports._presets import FIELDS, VECTORS
from mrag_eval.retrievers.index._hashing import passage_id
from mrag_eval.retrievers.index._passage_columns import PassageColumns


@dataclass(frozen=True)
class ColumnLayout:
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

    def passages(
        self, values: Mapping[str, Any], lang: str | None, numbers: Sequence[int], file: str, unit: str = "row"
    ) -> PassageColumns:
        """Return the passages of a batch, whose rows have the given numbers in their file or folder.

        ``values`` are the columns by field, as Arrow arrays or lists; ``lang`` is the language of the file, None if
        there is a column of it. Raises DataError, naming ``file``, for a column of texts that holds no strings, and for
        an unknown language with the number of its row (``unit``: what the file calls a row).
        """
        texts = _strings(values["text"], len(numbers), f"{file}: the texts")
        titles, given, named = (_strings(values.get(name), len(numbers)) for name in ("title", "id", "doc_id"))
        langs = [lang] * len(numbers) if lang is not None else _languages(values["lang"], numbers, f"{file}, {unit}")
        documents = _first_named(self._pages(given, langs), named, _of_editions(titles, langs), given)
        if "id" not in values:
            rows = zip(documents.to_pylist(), langs, numbers, texts.to_pylist(), strict=True)
            given = _strings([passage_id(*row) for row in rows], len(numbers))
        elif self.ids_by_language:
            given = _of_editions(given, langs)
        return PassageColumns(langs, given, documents, titles, texts)

    def _pages(self, identifiers: Any, langs: Sequence[str]) -> Any:
        """Return the ids of the pages whose numbers are in the ids of their passages, else empty ones."""
        if not self.page:
            return _strings(None, len(identifiers))
        found = [re.fullmatch(self.page, one) for one in identifiers.to_pylist()]
        return _of_editions(_strings([one and one[1] for one in found], len(found)), langs)


def _strings(values: Any, count: int, what: str = "") -> Any:
    """Return a column, of nothing if it is None, as strings without nulls.

    Raises DataError if it is named ``what`` and holds anything else, ArrowInvalid for bytes that are not UTF-8.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if values is None:
        return pa.repeat(pa.scalar("", pa.large_string()), count)
    column = values if isinstance(values, pa.Array) else pa.array(map(_string, values), pa.large_string())
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        if what and not pa.types.is_null(column.type):
            raise DataError(f"{what} are {column.type}", "name the column of the texts: --key text=COLUMN")
        column = pa.array(map(_string, column.to_pylist()), pa.large_string())
    column.validate(full=True)
    return pc.fill_null(column.cast(pa.large_string()), "")


def _string(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _languages(values: Any, numbers: Sequence[int], where: str) -> list[str]:
    """Return a column of codes, normalised."""
    import pyarrow as pa

    codes = values.to_pylist() if isinstance(values, pa.Array) else values
    known: dict[Any, str] = {}
    for code in dict.fromkeys(codes):
        try:
            known[code] = normalize_language(str(code))
        except ConfigError as error:
            number = numbers[codes.index(code)]
            raise DataError(f"{where} {number:,}: {error.message}", error.next_step) from None
    return [known[code] for code in codes]


def _of_editions(pages: Any, langs: Sequence[str]) -> Any:
    """Return the document ids of pages by name or number; an empty one stays empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    prefixes = {lang: page_document_id(lang, "") for lang in set(langs)}
    if not any(prefixes.values()):
        return pages
    kind = pa.large_string()
    front = pa.array([prefixes[lang] for lang in langs], kind)
    if len(prefixes) == 1:
        front = front[0]
    return pc.if_else(pc.equal(pages, ""), pages, pc.binary_join_element_wise(front, pages, pa.scalar("", kind)))


def _first_named(*columns: Any) -> Any:
    """Return for every row the first value that is not empty."""
    import pyarrow.compute as pc

    found = columns[-1]
    for column in reversed(columns[:-1]):
        found = pc.if_else(pc.equal(column, ""), found, column)
    return found


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
