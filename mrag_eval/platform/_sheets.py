"""Tables that people fill in with a spreadsheet program: CSV written so that text remains text, and read back as saved.

The encoding is UTF-8 with a byte order mark, because without one Excel assumes the machine's own code page. A cell that
a spreadsheet would calculate (``=1+1``, ``@SUM``, ``-2``) gets an apostrophe in front, which reading removes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.platform._errors import DataError
from mrag_eval.platform._files import regular, replaced

# Excel spreads the rest of a longer cell over the following rows.
MAX_CELL = 32_767
# Start of a formula, in full-width form too, since East Asian editions calculate those as well. Leading apostrophes of
# the text itself are included, so that removing one is exact.
_CALCULATED = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")
_QUOTED = re.compile(r"'" + _CALCULATED.pattern)
# Columns that people may add, and that are read.
_OF_PEOPLE = ("annotator", "debatable")
# Behind the name of a column that another has, too.
_AGAIN = " (again)"
_SIGNS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@dataclass(frozen=True)
class SheetRow:
    """A row as it was filled in; ``line`` is its number in the spreadsheet, where line 1 is the header."""

    line: int
    cells: Mapping[str, str]


def write_sheet(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write ``rows`` under the header ``columns``; a column missing from a row (or None) is left empty.

    Cells longer than a spreadsheet allows are cut and end in "…". The file is replaced as a whole.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_MINIMAL)
    writer.writerow([escaped(column) for column in columns])
    for row in rows:
        writer.writerow([escaped(_text(row.get(column))) for column in columns])
    with replaced(path) as part:
        part.write_bytes(out.getvalue().encode("utf-8-sig", errors="backslashreplace"))


def read_sheet(path: Path, required: Sequence[str]) -> list[SheetRow]:
    """Read the rows of a sheet, without empty ones; cells are stripped.

    Any format that a spreadsheet program saves is accepted: comma, semicolon or tab, UTF-8 or UTF-16. Columns may be in
    any order. One that comes twice is left out.

    Raises:
        DataError: the file cannot be read, is not text in one of those encodings, lacks a column of ``required`` or has
            it twice, or a row has more cells than the header.
    """
    text = _decoded(path)
    head, _, _ = text.partition("\n")
    delimiter = max(",;\t", key=head.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        heads = [unescaped(cell).strip() for cell in next(lines, [])]
        missing = [column for column in required if column not in heads]
        if missing:
            raise DataError(
                f"{path}: no column '{missing[0]}' (it has: {', '.join(filter(None, heads)) or 'none'})",
                "keep the column names of the sheet unchanged",
            )
        check_unique(heads, (*required, *_OF_PEOPLE), path)
        return list(_rows(path, [head if heads.count(head) == 1 else "" for head in heads], lines))
    except csv.Error as err:
        raise DataError(f"{path}: not a table ({err})", "save it from the spreadsheet as CSV UTF-8") from None


def told_apart(columns: Iterable[str]) -> list[str]:
    """Return the names of columns, with a mark behind one that came before, by which :func:`check_unique` knows it."""
    names: list[str] = []
    for name in columns:
        while name in names:
            name += _AGAIN
        names.append(name)
    return names


def check_unique(columns: Iterable[str], read: Iterable[str], where: Path | str) -> None:
    """Raise DataError if one of the columns that are read comes twice: which of the two is meant, no file says."""
    names = told_apart(columns)
    twice = next((name for name in read if name + _AGAIN in names), None)
    if twice is not None:
        raise DataError(f"{where}: two columns are called '{twice}'", "rename or remove one of them")


def _rows(path: Path, heads: Sequence[str], lines: Iterator[list[str]]) -> Iterator[SheetRow]:
    for number, cells in enumerate(lines, 2):
        if not any(cell.strip() for cell in cells):
            continue
        if any(cell.strip() for cell in cells[len(heads) :]):
            raise DataError(f"{path}, row {number}: more cells than the sheet has columns", "quote cells with commas")
        filled = [*cells, *[""] * (len(heads) - len(cells))]
        yield SheetRow(
            number, {head: unescaped(cell).strip() for head, cell in zip(heads, filled, strict=False) if head}
        )


def escaped(cell: str) -> str:
    """Return the cell, with an apostrophe in front if a spreadsheet would calculate it."""
    return f"'{cell}" if _CALCULATED.match(cell) else cell


def csv_cell(text: str) -> str:
    """Return a text as the cell of any CSV file: :func:`escaped`, and with line ends that ``csv`` quotes."""
    return escaped(text.replace("\r\n", "\n").replace("\r", "\n"))


def unescaped(cell: str) -> str:
    """Return the cell that :func:`escaped` was given."""
    return cell[1:] if _QUOTED.match(cell) else cell


def _text(value: object) -> str:
    text = "" if value is None else str(value).replace("\0", "")
    # one character for the apostrophe, one for the ellipsis
    return text if len(text) < MAX_CELL else f"{text[: MAX_CELL - 2]}…"


def _decoded(path: Path) -> str:
    try:
        content = regular(path).read_bytes()
    except OSError as err:
        raise DataError(f"{path}: cannot be read ({err.strerror or err})", "save it as CSV in UTF-8") from None
    encoding = next((name for sign, name in _SIGNS.items() if content.startswith(sign)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: not UTF-8; it has lost letters of other scripts",
            "save it from the spreadsheet as 'CSV UTF-8'",
        ) from None
