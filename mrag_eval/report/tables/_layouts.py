"""The papers' tables with our figures next to the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mrag_eval.platform import DataError, number_of
from mrag_eval.report._table import Cell, Row, Table
from mrag_eval.report.files._results import LeafResult, ResultFile, read_results
from mrag_eval.report.tables._bordirlines_rows import bordirlines_rows
from mrag_eval.report.tables._by_mode import ModeRow, rows_by_mode
from mrag_eval.report.tables._layout_cells import metric_name, own_cells, own_row, scale
from mrag_eval.report.tables._layout_schema import Computed, Layout, LayoutTable, PublishedRow, load_layout
from mrag_eval.report.tables._lengths import length_rows
from mrag_eval.report.tables._question_types import type_rows
from mrag_eval.report.tables._row_runs import (
    OwnRow,
    TableRuns,
    TaskRun,
    placed,
    slots,
    table_runs,
    task_runs,
)
from mrag_eval.report.tables._row_settings import OF_A_RUN, fit
from mrag_eval.report.tables._same_questions import on_same_questions
from mrag_eval.scoring import LabelTable

# Rows of ours that no metric of a task fills, by table.
_MEASURED = {"bordirlines": bordirlines_rows, "mrag": length_rows, "xrag": type_rows}
# Ways to guess relevance without a judge.
_GUESSED = {
    "proxy": "guessed by character n-grams within one language (_proxy)",
    "translated": "guessed by character n-grams of the translated answer (_proxy_translated)",
    "page": "taken to be all passages of the page asked about (_proxy_page)",
}


def layout_tables(name: str, results: Sequence[Path | str]) -> list[Table]:
    """Return the tables of a paper with our figures next to the published ones, in percent and with the paper's digits.

    ``results`` are result files or folders of them. A row of ours is "this run" if its settings are those that the
    table states; a run with other settings is beneath, with what differs. A cell that no run fills is blank with the
    reason, never 0. A mean needs all its cells. Of several runs with the same settings the latest is shown.
    """
    layout = load_layout(name)
    files = read_results([Path(path) for path in results])
    runs = task_runs(files, layout)
    side_by_side = {table.id: _by_mode(table, files) for table in layout.tables}
    if name in _MEASURED:
        side_by_side |= _MEASURED[name](files, [Path(path) for path in results])
    if not runs and not any(side_by_side.values()):
        tasks = sorted({slot.task for table in layout.tables for slot in slots(table, layout)})
        raise DataError(
            f"--layout {name}: no task of this paper is among the results in {', '.join(map(str, results))}",
            f"it shows {', '.join(tasks[:3])}, ...",
        )
    where = placed(layout, runs)
    found = [(table, _own_rows(table, layout, runs, where)) for table in layout.tables]
    return [
        _table(table, layout, own, runs, side_by_side[table.id])
        for table, own in found
        if own.rows or side_by_side[table.id] or not table.optional
    ]


def _own_rows(
    table: LayoutTable, layout: Layout, runs: Sequence[TaskRun], where: Mapping[int, Sequence[str]]
) -> TableRuns:
    if not table.same_questions:
        return table_runs(table, layout, runs, where)
    shown, lines = on_same_questions(table, layout, runs, where)
    own = table_runs(table, layout, shown, where)
    return TableRuns(own.rows, [*lines, *own.notes])


def _by_mode(table: LayoutTable, files: Sequence[ResultFile]) -> list[ModeRow]:
    columns = {column.name: column.modes for column in table.columns if column.modes}
    return rows_by_mode(columns, table.metrics[0], files) if columns else []


def _table(
    table: LayoutTable, layout: Layout, own: TableRuns, runs: Sequence[TaskRun], side_by_side: Sequence[ModeRow] = ()
) -> Table:
    notes = [*([table.remark] if table.remark else []), *(f"in the paper: {line}" for line in table.errata)]
    rows = []
    for name in [condition.name for condition in table.conditions] or [""]:
        for published in table.rows:
            if (published.condition or "") == name:
                cells = _published_cells(table, published)
                rows.append(Row(_labels(name, published.model), f"paper, {_place(published.table or table.id)}", cells))
        made = [_own_row(table, layout, row, own) for row in own.fitting if row.name == name]
        rows += [row for row, _ in made]
        notes += [line for _, lines in made for line in lines]
    beneath = [_own_row(table, layout, row, own) for row in own.others]
    notes += _not_run(table, layout, own, runs)
    notes += own.notes
    notes += [f"{column.name}, no task of ours: {column.blank}" for column in table.columns if column.blank]
    rows += [_computed_row(table, row, runs) for row in table.computed]
    rows += [found.row for found in side_by_side]
    rows += [row for row, _ in beneath]
    notes += [line for _, lines in beneath for line in lines]
    notes += [line for found in side_by_side for line in found.notes]
    stub = ("condition", table.stub) if table.conditions else (table.stub,)
    columns = tuple(column.name for column in table.columns)
    title = f"{_place(table.id)}: {table.title}"
    told = tuple(dict.fromkeys(notes))
    shown = {"intervals": bool(side_by_side), "margins": table.margins}
    return Table(table.id, title, stub, columns, tuple(rows), table.digits, told, **shown)


def _own_row(table: LayoutTable, layout: Layout, row: OwnRow, own: TableRuns) -> tuple[Row, list[str]]:
    """Return a row of ours, and remarks on its figures."""
    near = own.rows if row.differs else own.others
    others = {task for other in near if other is not row and other.label == row.label for _, task in other.picked}
    cells = own_cells(table, row, others.__contains__)
    shown = [(cell, leaf) for cell, leaves in cells for leaf in leaves]
    source = "this run, by proxy" if any(_by_proxy(cell, leaf) for cell, leaf in shown) else "this run"
    remarks = [f"{row.label}, {line}" for cell, leaf in shown for line in _remarks(cell, leaf, layout)]
    leaves, labels = [leaf for _, leaf in shown], _labels(row.name, row.label)
    return own_row(labels, (cell for cell, _ in cells), row.differs, leaves, source), remarks


def _not_run(table: LayoutTable, layout: Layout, own: TableRuns, runs: Sequence[TaskRun]) -> list[str]:
    """Return a line for each model (and retriever) with the rows that it did not run at all."""
    if not any(slots(table, layout)):
        return []
    whose = {label: label if layout.apart == "retriever" else run.file.model for run in runs for label in run.labels}
    found: dict[str, set[str]] = {}
    for row in own.rows:
        found.setdefault(whose[row.label], set()).add(row.name)
    out = []
    for name in dict.fromkeys(reversed(whose.values())):
        rows = [c.name for c in table.conditions if c.name not in found.get(name, ())]
        if rows:
            out.append(f"{name}, not run: {'; '.join(rows)}")
        elif not table.conditions and name not in found:
            out.append(f"{name}: not run")
    return out


def _published_cells(table: LayoutTable, row: PublishedRow) -> tuple[Cell, ...]:
    """Return the paper's figures in its columns, and blanks without a reason in ours."""
    figures = iter(zip(row.values, row.margins or [None] * len(row.values), strict=True))
    cells = []
    for column in table.columns:
        value, margin = (None, None) if column.ours else next(figures)
        reason = "" if column.ours else row.blank if value is None else None
        low, high = (None, None) if value is None or margin is None else (value - margin, value + margin)
        cells.append(Cell(value, reason, low, high, digits=column.digits))
    return tuple(cells)


def _computed_row(table: LayoutTable, row: Computed, runs: Sequence[TaskRun]) -> Row:
    """Return figures that follow from the questions alone, from the result with the most questions."""
    tasks = {column.task.replace("{part}", c.part) for c in table.conditions for column in table.columns if column.task}
    leaves = [run.leaf for run in runs if run.leaf.task in tasks and not fit(run.leaf, table.expect, OF_A_RUN)]
    leaf = max(leaves, key=lambda found: found.scores.rows, default=None)
    cells = []
    for column in table.columns:
        head, _, last = (column.metrics or table.metrics or ("",))[0].rpartition(".")
        score = leaf.score(f"{head}.{row.part}.{last}") if leaf is not None else None
        value = score.value if score is not None else None
        cells.append(Cell(None if value is None else scale(column) * value, "", digits=column.digits))
    where = "no run" if leaf is None else f"computed, {number_of(leaf.scores.rows, 'question')}"
    return Row(("", row.model) if table.conditions else (row.model,), where, tuple(cells))


def _place(table: str) -> str:
    if not table[0].isdigit():
        return table
    return f"Tables {table}" if "," in table else f"Table {table}"


def _labels(condition: str, model: str) -> tuple[str, ...]:
    return (condition, model) if condition else (model,)


def _remarks(cell: Cell, leaf: LeafResult, layout: Layout) -> list[str]:
    """Return remarks on one result of a figure: rounds of the loop, rows left out or failed, translator and judges."""
    if cell.value is None or cell.metric is None:
        return []
    out = []
    if rounds := leaf.config.agent.get("max_rounds"):
        out.append(f"at most {rounds} rounds")
    metric = metric_name(cell.metric)
    if reasons := leaf.unscored.get(metric):
        counts = ", ".join(f"{n} ({reason})" for reason, n in reasons.items())
        out.append(f"{leaf.task}: {sum(reasons.values())} rows without {metric}: {counts}")
    if (why := leaf.no_headline(metric)) is not None:
        out.append(f"{leaf.task}: no headline for {metric}: {why}")
    if translator := leaf.model_of("translator"):
        out.append(f"translated by {translator}")
    scores = leaf.scores
    if scores.relevance is not None and _rests_on_relevance(metric):
        out.append(_labelled_by(scores.relevance, layout.judged_by))
    if scores.judge is not None and cell.metric.startswith("judge"):
        if layout.judged_by:
            out.append(f"judged by {', '.join(scores.judge.models)} (the paper: {layout.judged_by})")
        if scores.judge.failed_votes:
            out.append(f"{leaf.task}: failed votes: {scores.judge.failed_votes}")
    return out


def _rests_on_relevance(metric: str) -> bool:
    return "@" in metric or metric.startswith(("selection.", "attribution."))


def _by_proxy(cell: Cell, leaf: LeafResult) -> bool:
    if cell.value is None or cell.metric is None:
        return False
    relevance = leaf.scores.relevance
    return relevance is not None and relevance.by != "judge" and _rests_on_relevance(cell.metric)


def _labelled_by(labelled: LabelTable, judged_by: str | None) -> str:
    if labelled.by != "judge":
        return f"relevance {_GUESSED[labelled.by]}: not comparable with the paper"
    judges = ", ".join((labelled.judges or {}).values())
    return f"relevance labelled by {judges}" + (f" (the paper: {judged_by})" if judged_by else "")
