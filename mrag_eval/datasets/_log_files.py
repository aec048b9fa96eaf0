"""Files of logs: rows of what a system answered, in the formats that programs save them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.datasets._files import iter_csv, iter_jsonl, parquet, read_bytes
from mrag_eval.platform import AS_JSON, DataError, Twice, check_keys, decode, json_from, plain, suggesting, told_apart
from mrag_eval.systems import is_row, lists_in, rows_in, value_at

# Rows of a Parquet file that are in memory together.
_BATCH = 256


def log_rows(
    path: Path, name: str, *, at: str = "", tolerant: bool = False, documents: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a log, each with its place (``name, line 3``): JSON Lines, JSON, CSV, TSV or Parquet.

    ``at`` is the path of the rows in a JSON file, or in each line or row of another. A missing value is None, however
    the format writes it. Raises DataError, naming the line, for what cannot be read; with ``tolerant`` the error of a
    line is yielded in its place. Of a file in the shape of SQuAD, rows are its questions or, if asked for, its
    ``documents``.
    """
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    rows: Iterator[tuple[str, Any]]
    if ending in ("csv", "tsv"):
        table = iter_csv(path, (), "\t" if ending == "tsv" else None, tolerant=tolerant)
        rows = ((f"{name}, row {number}", _filled(row, _NO_VALUE)) for number, row in table)
    elif ending in ("parquet", "pq"):
        rows = _of_parquet(path, name)
    elif ending == "json" and (found := _of_json(path, name, at, documents)) is not None:
        rows, at = found, ""
    else:
        rows = ((f"{name}, line {number}", row) for number, row in iter_jsonl(path, (), nan=True, tolerant=tolerant))
    for where, row in rows:
        listed = [row] if not at or isinstance(row, DataError) else _at(row, at)
        yield from ((f"{where}, entry {number}" if at else where, one) for number, one in enumerate(listed, 1))


# What programs write into a cell of a table without a value.
_NO_VALUE = ("", None, "NaN", "nan", "null", "None", "<NA>")


def _filled(row: Any, missing: Sequence[Any] = ("", None)) -> Any:
    if not isinstance(row, Mapping):
        return row
    return {key: value for key, value in row.items() if not isinstance(value, str | type(None)) or value not in missing}


def _at(value: Any, path: str) -> list[Any]:
    """Return the rows at a path; those of lists in a list, if it names several."""
    found = value_at(value, path)
    if isinstance(found, list):
        return [row for part in found for row in (part if isinstance(part, list) else [part])]
    return [] if found is None else [found]


def _of_json(path: Path, name: str, at: str, documents: bool) -> Iterator[tuple[str, Any]] | None:
    """Return the rows of a JSON file: an array, an object that holds one, or columns; None for JSON Lines."""
    text = decode(read_bytes(path), name)
    try:
        value = json_from(text, name, AS_JSON, lax="NaN", told=True)
    except DataError:
        first, _, rest = text.strip().partition("\n")
        if first.startswith("{") and first.endswith("}") and rest:
            return None
        raise
    if at:
        if not (rows := _at(value, at)):
            places = ", ".join(lists_in(value)) or "none"
            raise DataError(
                f"{name}: there is nothing at '{at}'; its lists of rows: {places}", f"--rows {places.partition(',')[0]}"
            )
    else:
        rows = _rows_in(value, name, documents)
    if isinstance(value, Twice) and rows != [value] and not any(isinstance(row, Twice) for row in rows):
        # in what rows are made of
        check_keys(value, value.twice, name)
    return ((f"{name}, entry {number}", row) for number, row in enumerate(rows, 1))


def _rows_in(value: Any, name: str, documents: bool) -> list[Any]:
    """Return the rows that a value holds: its items, its longest list, its only one further down, or its columns."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, list) else [value]
    names, cells = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(cells, list) and all(isinstance(one, list) for one in cells):
        # a table as pandas splits it
        return [dict(zip(map(str, names), row, strict=False)) for row in cells]
    if value and all(isinstance(found, Mapping) and found and all(map(str.isdigit, found)) for found in value.values()):
        # columns, each with its rows by number
        value = {name: [*found.values()] for name, found in value.items()}
    columns = [found for found in value.values() if isinstance(found, list)]
    apart = len(columns) == len(value) > 1 and len({len(found) for found in columns}) == 1
    if apart and not any(isinstance(item, Mapping) for found in columns for item in found):
        return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    if is_row(value):
        return [value]
    articles = value.get("data")
    if isinstance(articles, list) and all(isinstance(one, Mapping) and "paragraphs" in one for one in articles):
        from mrag_eval.retrievers import squad_paragraphs

        parts = [(record, asked) for _, record, asked in squad_paragraphs(value, name)]
        if documents:
            return [record for record, _ in parts]
        return [
            {**one, "title": record["title"], "contexts": [record["text"]]} for record, asked in parts for one in asked
        ]
    if nested := rows_in(value):
        if len(nested) > 1:
            what = f"{name}: it has several lists of rows: {', '.join(nested)}"
            raise DataError(what, "say which: " + "   or   ".join(f"--rows {path}" for path in nested))
        return next(iter(nested.values()))
    lists = {key: found for key, found in value.items() if isinstance(found, list)}
    is_list = lists and all(isinstance(row, Mapping) for found in lists.values() for row in found)
    return max(lists.values(), key=len) if is_list else [value]


def _of_parquet(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    number = 0
    with parquet(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            names = told_apart(batch.schema.names)
            for values in zip(*map(_values, batch.columns), strict=True):
                number += 1
                yield f"{name}, row {number}", _filled(plain(dict(zip(names, values, strict=True))))


def _values(column: Any) -> list[Any]:
    """Return the values of a column; an error, which is no text, in place of one that Python has none for."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError) as error:
        places = range(len(column))
        return [error] if len(column) == 1 else [value for at in places for value in _values(column.slice(at, 1))]


_CORRECT = "correct the file, and run the same command again"


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of a JSON Lines file; raise DataError for a line that is not an object."""
    with suggesting(_CORRECT):
        yield from iter_jsonl(path)


def read_table(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (row number from 1, record) of a CSV file, or of a TSV file by its name.

    Raises DataError for a missing column.
    """
    with suggesting(_CORRECT):
        yield from iter_csv(path, columns, delimiter="\t" if path.suffix == ".tsv" else ",")
