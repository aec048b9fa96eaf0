"""Counts of a filled-in sheet of manual inspection, with intervals, by language and category."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.platform import DataError, SheetRow, read_sheet
from mrag_eval.report._table import Cell, Row, Table
from mrag_eval.report.labels._inspection import CATEGORIES, IDENTITY, NOTHING, TABLE_8, Scheme, draw_mark

_MARK = re.compile(r"(\d+) of (\d+) ([0-9a-f]{8})-([0-9a-f]{8})")


@dataclass(frozen=True)
class Inspection:
    """The findings of a manual inspection.

    The sheet was written with ``drawn`` rows; ``inspected`` are those that count, by language. ``counts``: category ->
    language -> rows. ``faults`` are rows that do not count, with the reason. ``left`` counts rows that are not filled
    in yet. Each row of the sheet is in exactly one of the three, or it is lost (a fault).
    """

    drawn: int
    inspected: Mapping[str, int]
    counts: Mapping[int, Mapping[str, int]]
    left: int
    faults: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Return whether every row drawn counts."""
        return not self.faults and not self.left


def read_inspection(path: Path, scheme: Scheme = TABLE_8) -> Inspection:
    """Read a sheet of :func:`~mrag_eval.report.write_inspection` that people filled in.

    A row counts once its cell ``categories`` holds numbers or names of categories, separated by ``;`` or ``,``. Raises
    DataError for a file that is not such a sheet.
    """
    rows = read_sheet(path, ("categories", *IDENTITY))
    marks = [_MARK.fullmatch(row.cells["draw"]) for row in rows]
    # the seal of most rows identifies the sheet; rows with another seal were pasted in
    sheets = Counter((int(mark[2]), mark[3]) for mark in marks if mark is not None)
    if not sheets:
        raise DataError(
            f"{path}: no row of a sheet for inspection", "write one: mrag-eval judge inspect SAMPLES -o FILE"
        )
    (total, seal), _ = max(sheets.items(), key=lambda item: (item[1], item[0]))
    inspected: Counter[str] = Counter()
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    faults: list[str] = []
    left = 0
    seen: dict[int, int] = {}
    for row, mark in zip(rows, marks, strict=True):
        number = _number(row, mark, total, seal, scheme)
        if number is None:
            who = row.cells["sample"] or "without an id"
            faults.append(f"row {row.line} ({who}): not a row of this sheet, or what identifies it was altered")
            continue
        if number in seen:
            faults.append(f"row {row.line} ({row.cells['sample']}): the same as row {seen[number]}")
            continue
        seen[number] = row.line
        inspected[row.cells["language"]] += 0
        if not row.cells["categories"]:
            left += 1
            continue
        found, unknown = _categories(row.cells["categories"], scheme)
        if unknown:
            faults.append(f"row {row.line} ({row.cells['sample']}): {unknown}")
            continue
        inspected[row.cells["language"]] += 1
        for category in found:
            counts[category][row.cells["language"]] += 1
    faults += _lost(total, seen)
    return Inspection(total, dict(inspected), {c: dict(by) for c, by in counts.items()}, left, tuple(faults))


def _number(row: SheetRow, mark: re.Match[str] | None, total: int, seal: str, scheme: Scheme) -> int | None:
    """Return the row's number in the sheet; None for a row of another sheet."""
    if mark is None:
        return None
    number = int(mark[1])
    key = tuple(row.cells[name] for name in IDENTITY[1:])
    return number if mark[0] == draw_mark(number, total, seal, key, scheme) else None


def _lost(total: int, seen: Mapping[int, int]) -> list[str]:
    missing = [number for number in range(1, total + 1) if number not in seen]
    if not missing:
        return []
    shown = ", ".join(map(str, missing[:20])) + (" …" if len(missing) > 20 else "")
    return [f"{len(missing)} of the {total} rows drawn are not in the sheet: number {shown}"]


def _categories(cell: str, scheme: Scheme) -> tuple[set[int], str | None]:
    """Return the numbers of the categories in a cell, and its faults."""
    names = {name: number for number, (_, name) in scheme.known.items()}
    names |= {name.partition(":")[0]: number for name, number in names.items()}
    allowed = f"{min(scheme.known)} to {max(scheme.known)}, or their names"
    found: set[int] = set()
    for part in re.split(r"[;,\n]", cell):
        text = re.sub(r"\s+", " ", part).strip().lower().rstrip(".")
        if not text:
            continue
        # a name, a number, or a line copied from the legend
        number = names.get(text, names.get(text.partition(": ")[2]))
        if number is None and text.isascii() and text.isdigit():
            number = int(text)
        if number not in scheme.known:
            return set(), f"no category '{part.strip()}' ({allowed})"
        found.add(number)
    if 0 in found and len(found) > 1:
        return set(), f"'{cell}' says that there is nothing to note, and something else"
    if scheme.single and len(found) > 1:
        return set(), f"'{cell}' names {len(found)} categories, and a row has one"
    return found, None if found else f"no category '{cell}' ({allowed})"


def inspection_table(found: Inspection) -> Table:
    """Return counts as in Table 8 of the mRAG paper, and shares of the rows inspected in percent (Wilson intervals)."""
    from mrag_eval.metrics import wilson

    languages = sorted(found.inspected)
    groups = [*languages, "all"] if len(languages) > 1 else languages
    inspected = dict(found.inspected) | {"all": sum(found.inspected.values())}

    def cells(by_language: Mapping[str, int]) -> tuple[Cell, ...]:
        sums = dict(by_language) | {"all": sum(by_language.values())}
        out = []
        for language in groups:
            k, n = sums.get(language, 0), inspected[language]
            share = wilson(k, n)
            low, high = (None if x is None else 100 * x for x in (share.low, share.high))
            none = None if n else ""  # the notes give the number of rows inspected
            out += [Cell(float(k) if n else None, none, digits=0), Cell(100 * k / n if n else None, none, low, high, n)]
        return tuple(out)

    rows = [
        Row((group, name), "people", cells(found.counts.get(number, {})))
        for number, (group, name) in CATEGORIES.items()
    ]
    rows.append(Row(("", NOTHING), "people", cells(found.counts.get(0, {}))))
    notes = [f"{sum(found.inspected.values())} of {found.drawn} rows drawn are inspected; a row may have several"]
    if len(languages) > 1:
        notes.append("'all' weighs languages as they were drawn, not as they occur")
    if found.left:
        notes.append(f"{found.left} not filled in yet")
    notes += [f"not counted: {fault}" for fault in found.faults]
    columns = tuple(column for language in groups for column in (language, f"{language} %"))
    title = "Manual inspection: rows by category (count), and their share (%)"
    return Table("inspection", title, ("", "category"), columns, tuple(rows), 1, tuple(notes), intervals=True)
