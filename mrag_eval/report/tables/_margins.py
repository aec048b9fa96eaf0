"""CORAL's margin over the strongest baseline, from the samples of runs that differ from its Table 1 in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.core import p_text
from mrag_eval.report._table import Cell, Table
from mrag_eval.report.comparison._compare import Contrast, differences_of
from mrag_eval.report.comparison._paired_rows import PairedRows
from mrag_eval.report.files._results import ResultFile, read_results
from mrag_eval.report.files._runs import SampleSet, read_runs
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.report.tables._layout_cells import own_row
from mrag_eval.report.tables._layout_schema import Column, load_layout
from mrag_eval.report.tables._row_runs import OwnRow, placed, table_runs, task_runs
from mrag_eval.report.tables._row_settings import alike

_METRIC = "acc"
_CORAL = "CORAL"
# What only a loop has, and what only a search has.
_OF_AGENTS = ("agent", "planner", "critic")
_OF_SEARCH = ("index", "retrieval", "reranker", "retriever", "chunker", "corpus", "kind", "languages")
_PERCENT = 100.0


@dataclass(frozen=True)
class _Sides:
    """The rows of CORAL and of a baseline in one column, pair by pair, each with its task."""

    name: str
    tasks: tuple[str, ...]
    ours: tuple[ScoredRow, ...]
    theirs: tuple[ScoredRow, ...]


def margin_table(results: Sequence[Path]) -> Table | None:
    """Return CORAL minus the strongest baseline of each column of Table 1, in points, paired by row.

    Both are runs with the settings of Table 1, or differ from it in the same way, as the row's source says. Over
    several languages the difference is that of the plain means over languages, resampled within each language
    (questions asked in several languages together). The strongest baseline is found in the same figures. None without
    samples.
    """
    layout = load_layout("coral")
    one = next(table for table in layout.tables if table.id == "1")
    runs = task_runs(read_results(list(results)), layout)
    own = table_runs(one, layout, runs, placed(layout, runs)).rows
    files = {id(run.leaf): run.file for run in runs}
    models = {label: run.file.model for run in runs for label in run.labels}
    rows, notes = [], []
    for coral in [row for row in own if row.name == _CORAL]:
        ours = _samples(coral, files)
        baselines = [
            row for row in own if row.name != _CORAL and row.label == models[coral.label] and _alike(coral, row)
        ]
        rivals = {row.name: (str(row.condition and row.condition.part), _samples(row, files)) for row in baselines}
        cells = []
        for column in one.columns:
            tasks = [str(task) for task in ((column.task,) if column.task else column.tasks)]
            found = [_sides(name, part, tasks, ours, theirs) for name, (part, theirs) in rivals.items()]
            sides = [side for side in found if side is not None]
            if not sides:
                cells.append(Cell(None, "CORAL or every baseline lacks a task or its samples"))
                continue
            best = max(sides, key=lambda side: _score(column, side.tasks, side.theirs))
            cell, note = _margin(column, best)
            cells.append(cell)
            notes.append(f"{coral.label}, {column.name}: against {best.name}, {note}")
        if any(cell.value is not None for cell in cells):
            leaves = [leaf for picked in coral.picked.values() for leaf in picked]
            rows.append(own_row((coral.label,), cells, coral.differs, leaves))
    if not rows:
        return None
    notes.append("the strongest baseline is found in the same rows, which makes its score a little too high")
    notes.append("runs are compared that have the settings of Table 1, or differ from it (above) in the same way")
    names = tuple(column.name for column in one.columns)
    title = "CORAL less the strongest baseline, in points, with 95% intervals"
    return Table("margins", title, ("model",), names, tuple(rows), 2, tuple(notes), intervals=True)


def _alike(coral: OwnRow, row: OwnRow) -> bool:
    """Return whether a baseline differs from Table 1 as CORAL does, but for what the baseline does not have."""
    ours, theirs = ({*map(alike, one.differs)} for one in (coral, row))
    lacks = _OF_AGENTS if row.condition is None or row.condition.part != "norag" else (*_OF_AGENTS, *_OF_SEARCH)
    return theirs <= ours and all(text.startswith(lacks) for text in ours - theirs)


def _samples(row: OwnRow, files: Mapping[int, ResultFile]) -> dict[str, SampleSet]:
    """Return the samples of the results that a row shows, by task."""
    shown = {task: leaves[0] for (_, task), leaves in row.picked.items()}
    paths = [path for task, leaf in shown.items() if (path := files[id(leaf)].samples(task)) is not None]
    return read_runs(paths)


def _sides(
    name: str, part: str, tasks: Sequence[str], ours: Mapping[str, SampleSet], theirs: Mapping[str, SampleSet]
) -> _Sides | None:
    """Return the pairs of one baseline; None if a task was not run, or not on the rows that CORAL ran on."""
    kept: list[str] = []
    pairs: list[tuple[ScoredRow, ScoredRow]] = []
    for task in tasks:
        mine, other = ours.get(task.replace("{part}", "coral")), theirs.get(task.replace("{part}", part))
        if mine is None or other is None or mine.rows.keys() != other.rows.keys():
            return None
        for key in sorted(mine.rows):
            kept.append(task)
            pairs.append((mine.rows[key], other.rows[key]))
    return _Sides(name, tuple(kept), tuple(a for a, _ in pairs), tuple(b for _, b in pairs))


def _score(column: Column, tasks: Sequence[str], rows: Sequence[ScoredRow]) -> float:
    values: dict[str, list[float]] = {}
    for task, row in zip(tasks, rows, strict=True):
        if _METRIC in row.values:
            values.setdefault(task if column.weight == "tasks" else "", []).append(row.values[_METRIC])
    return sum(sum(found) / len(found) for found in values.values()) / len(values) if values else -1.0


def _margin(column: Column, sides: _Sides) -> tuple[Cell, str]:
    n = len(sides.ours)
    if len(column.tasks) > 1 and column.weight == "tasks":
        from mrag_eval.metrics import stratified_bootstrap

        pairs = zip(sides.ours, sides.theirs, strict=True)
        values = [(a.values.get(_METRIC), b.values.get(_METRIC)) for a, b in pairs]
        changes = [None if a is None or b is None else a - b for a, b in values]
        groups = [row.group for row in sides.ours]
        grouped = groups if len(set(groups)) < n else None
        found = stratified_bootstrap(changes, sides.tasks, groups=grouped, bounds=(-1.0, 1.0))
        cell = Cell(_points(found.value), found.reason, _points(found.low), _points(found.high), n)
        return cell, f"{n} pairs, {found.method}"
    pair = PairedRows(column.name, sides.theirs, sides.ours, (0, 0))
    one = differences_of([Contrast(pair, _METRIC)])[0][0]
    cell = Cell(_points(one.difference), one.reason, _points(one.low), _points(one.high), n)
    p_value = "no test possible" if one.p_value is None else f"p {p_text(one.p_value)}"
    return cell, f"{n} pairs, {p_value} ({one.method})"


def _points(value: float | None) -> float | None:
    return None if value is None else _PERCENT * value
