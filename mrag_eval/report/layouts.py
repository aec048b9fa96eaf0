"""The papers' tables as data: published figures, and which task of ours stands for which cell.

A layout is a file under ``published/``. Its tables have columns, rows of published figures, and, where the rows of the
paper are conditions of one model, ``conditions``. A column names the task whose score it shows (``{part}`` in it is the
condition's) or the columns it averages; ``expect`` names settings that a run must have to belong into a cell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from mrag_eval.errors import ConfigError, DataError, did_you_mean
from mrag_eval.report.by_mode import ModeRow, rows_by_mode
from mrag_eval.report.results import LeafResult, ResultFile, read_results
from mrag_eval.report.tables import Cell, Row, Table
from mrag_eval.validation import Block, validated

_FOLDER = Path(__file__).parent / "published"
_NOT_RUN = "not run"
_NO_TASK = "no figure in the paper, and no task of ours"
_NO_MEAN = "a mean needs all of its cells"
# A condition with nothing but these is a line below the table, not an empty row in it.
_NOT_MEASURED = (_NOT_RUN, _NO_TASK, _NO_MEAN)
# Scores are 0 to 1 in files, percent in the papers.
_PERCENT = 100.0


class Column(Block):
    """A column: a task, a mean of other columns, or (published figures alone) neither.

    ``metrics`` where the column shows another metric than its table, ``digits`` where it has others, ``unit`` where it
    counts. ``ours``: the paper has no such column. ``modes``: it shows whatever task was run in one of these retrieval
    modes, and its table has a row of ours for each language of questions.
    """

    name: str
    task: str | None = None
    mean_of: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    digits: int | None = None
    unit: Literal["percent", "count"] = "percent"
    ours: bool = False
    modes: tuple[str, ...] = ()
    expect: dict[str, Any] = Field(default_factory=dict)


class Computed(Block):
    """A row that needs no model: in the names of the metrics ``part`` stands before the last dot."""

    model: str
    part: str


class Condition(Block):
    """A row of the paper that is a way to run the task; ``part`` stands for it in the names of tasks.

    ``without`` names the columns that make no sense in it, and so have no task.
    """

    name: str
    part: str
    without: tuple[str, ...] = ()
    expect: dict[str, Any] = Field(default_factory=dict)


class PublishedRow(Block):
    """A row of published figures; null is a cell without one, ``blank`` says why. ``table``: where, if not as above."""

    model: str
    values: tuple[float | None, ...]
    condition: str | None = None
    table: str | None = None
    blank: str | None = None


class LayoutTable(Block):
    """One table of a paper. ``metrics`` are the metrics it shows, the first one a run has; ``stub`` heads the rows.

    ``optional``: left out where no run fills it. ``seeds``: runs that differ in their seed become one figure, the mean
    over runs with its t interval.
    """

    id: str
    title: str
    digits: int
    columns: tuple[Column, ...]
    metrics: tuple[str, ...] = ()
    rows: tuple[PublishedRow, ...] = ()
    conditions: tuple[Condition, ...] = ()
    expect: dict[str, Any] = Field(default_factory=dict)
    stub: str = "model"
    errata: tuple[str, ...] = ()
    remark: str | None = None
    computed: tuple[Computed, ...] = ()
    optional: bool = False
    seeds: bool = False

    @model_validator(mode="after")
    def _fits(self) -> LayoutTable:
        names = [column.name for column in self.columns]
        conditions: list[str | None] = [condition.name for condition in self.conditions] or [None]
        for row in self.rows:
            published = sum(not column.ours for column in self.columns)
            if len(row.values) != published:
                raise ValueError(f"table {self.id}, {row.model}: {len(row.values)} values for {published} columns")
            if row.condition not in conditions:
                raise ValueError(f"table {self.id}, {row.model}: unknown condition '{row.condition}'")
            if None in row.values and not row.blank:
                raise ValueError(f"table {self.id}, {row.model}: a blank cell, and 'blank' does not say why")
        if any(column.modes for column in self.columns) and (len(self.metrics) != 1 or self.conditions):
            raise ValueError(f"table {self.id}: modes side by side show one metric, without conditions")
        for column in self.columns:
            for name in column.mean_of:
                if name not in names:
                    raise ValueError(f"table {self.id}, {column.name}: no column '{name}' to average")
        for condition in self.conditions:
            for name in condition.without:
                if name not in names:
                    raise ValueError(f"table {self.id}, {condition.name}: no column '{name}' to be without")
        return self


class Layout(Block):
    """A paper's result tables; ``judged_by`` names its panel, to be held against that of a run."""

    name: str
    paper: str
    url: str
    judged_by: str | None = None
    tables: tuple[LayoutTable, ...]


def layout_names() -> list[str]:
    """The layouts that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@lru_cache(maxsize=16)
def load_layout(name: str) -> Layout:
    """The layout of that name; ConfigError for one that does not exist."""
    if name not in layout_names():
        raise ConfigError(f"--layout: no layout '{name}'{did_you_mean(name, layout_names())}")
    import yaml

    path = _FOLDER / f"{name}.yaml"
    return validated(Layout, yaml.safe_load(path.read_text(encoding="utf-8")), path.name)


def layout_tables(name: str, results: Sequence[Path | str]) -> list[Table]:
    """The tables of a paper, our figures beside the published ones, in percent and with the paper's digits.

    ``results`` are result files or folders of them. A cell that no run fills is blank with the reason, never 0; a mean
    is taken where all its cells are there. Where several runs of a model hold one task, the latest with the settings
    that the cell asks for counts.
    """
    layout = load_layout(name)
    tasks = {task for table in layout.tables for task in _tasks(table)}
    files = read_results([Path(path) for path in results])
    models = _by_model(files, tasks)
    side_by_side = {table.id: _by_mode(table, files) for table in layout.tables}
    if not models and not any(side_by_side.values()):
        raise DataError(
            f"--layout {name}: no task of this paper is among the results in {', '.join(map(str, results))}",
            f"it shows {', '.join(sorted(tasks)[:3])}, ...",
        )
    wanted = [table for table in layout.tables if not table.optional or _fills(table, models)]
    return [_table(table, models, layout.judged_by, side_by_side[table.id]) for table in wanted]


def _fills(table: LayoutTable, models: Mapping[str, Leaves]) -> bool:
    conditions = table.conditions or (None,)
    own = (_own_cells(table, condition, leaves) for leaves in models.values() for condition in conditions)
    return any(cell.value is not None for row in own for cell, _ in row)


def _by_mode(table: LayoutTable, files: Sequence[ResultFile]) -> list[ModeRow]:
    columns = {column.name: column.modes for column in table.columns if column.modes}
    return rows_by_mode(columns, table.metrics[0], files) if columns else []


# Task -> its results, the latest first.
Leaves = Mapping[str, Sequence[LeafResult]]


def _tasks(table: LayoutTable) -> list[str]:
    conditions = table.conditions or (Condition(name="", part=""),)
    return [
        column.task.replace("{part}", condition.part)
        for condition in conditions
        for column in table.columns
        if column.task and column.name not in condition.without
    ]


def _by_model(files: Sequence[ResultFile], tasks: Collection[str]) -> dict[str, dict[str, list[LeafResult]]]:
    """Model -> task of the layout -> its results, latest first; ``files`` are in order of their date."""
    out: dict[str, dict[str, list[LeafResult]]] = {}
    for file in files:
        for task, leaf in file.leaves.items():
            if task in tasks:
                out.setdefault(file.model, {}).setdefault(task, []).insert(0, leaf)
    return out


def _table(
    table: LayoutTable, models: Mapping[str, Leaves], judged_by: str | None, side_by_side: Sequence[ModeRow] = ()
) -> Table:
    rows = []
    notes = [*([table.remark] if table.remark else []), *(f"in the paper: {line}" for line in table.errata)]
    measured = bool(_tasks(table))
    not_run: dict[str, list[str]] = {}
    for condition in table.conditions or (None,):
        name = condition.name if condition else None
        for published in table.rows:
            if published.condition == name:
                cells = _published_cells(table, published)
                rows.append(Row(_labels(name, published.model), f"paper, {_place(published.table or table.id)}", cells))
        for model, leaves in models.items() if measured else ():
            own = _own_cells(table, condition, leaves)
            if table.optional and all(cell.value is None for cell, _ in own):
                continue
            if name is not None and all(cell.reason in _NOT_MEASURED for cell, _ in own):
                not_run.setdefault(model, []).append(name)
                continue
            rows.append(Row(_labels(name, model), "this run", tuple(cell for cell, _ in own)))
            notes += [f"{model}, {line}" for cell, leaf in own for line in _remarks(cell, leaf, judged_by)]
    notes += [f"{model}, not run: {'; '.join(names)}" for model, names in not_run.items()]
    rows += [_computed_row(table, row, models) for row in table.computed]
    rows += [found.row for found in side_by_side]
    notes += [line for found in side_by_side for line in found.notes]
    stub = ("condition", table.stub) if table.conditions else (table.stub,)
    columns = tuple(column.name for column in table.columns)
    title = f"{_place(table.id)}: {table.title}"
    told = tuple(dict.fromkeys(notes))
    return Table(table.id, title, stub, columns, tuple(rows), table.digits, told, intervals=bool(side_by_side))


def _published_cells(table: LayoutTable, row: PublishedRow) -> tuple[Cell, ...]:
    """The paper's figures in the columns that it has, blanks without a word in those that are ours."""
    values = iter(row.values)
    cells = []
    for column in table.columns:
        value = None if column.ours else next(values)
        reason = "" if column.ours else row.blank if value is None else None
        cells.append(Cell(value, reason, digits=column.digits))
    return tuple(cells)


def _computed_row(table: LayoutTable, row: Computed, models: Mapping[str, Leaves]) -> Row:
    """Figures that follow from the questions alone, from the result with the most of them."""
    leaves = [leaf for by_task in models.values() for task in _tasks(table) for leaf in by_task.get(task, ())]
    leaf = max(leaves, key=_rows, default=None)
    cells = []
    for column in table.columns:
        head, _, last = (column.metrics or table.metrics or ("",))[0].rpartition(".")
        score = leaf.metrics.get(f"{head}.{row.part}.{last}") if leaf is not None else None
        value = score.get("value") if score is not None else None
        cells.append(Cell(None if value is None else _scale(column) * value, "", digits=column.digits))
    labels = ("", row.model) if table.conditions else (row.model,)
    where = "no run" if leaf is None else f"computed, {_rows(leaf):,} questions"
    return Row(labels, where, tuple(cells))


def _rows(leaf: LeafResult) -> int:
    rows = _setting(leaf.config, "scores.rows")
    return rows if isinstance(rows, int) else 0


def _scale(column: Column) -> float:
    return _PERCENT if column.unit == "percent" else 1.0


def _place(table: str) -> str:
    if not table[0].isdigit():
        return table
    return f"Tables {table}" if "," in table else f"Table {table}"


def _labels(condition: str | None, model: str) -> tuple[str, ...]:
    return (model,) if condition is None else (condition, model)


Own = tuple[Cell, LeafResult | None]


def _own_cells(table: LayoutTable, condition: Condition | None, leaves: Leaves) -> tuple[Own, ...]:
    """Our cells of a row, each with the result it shows."""
    part, expect = (condition.part, condition.expect) if condition else ("", {})
    without = condition.without if condition else ()
    cells: dict[str, Own] = {}
    for column in table.columns:
        if column.name in without:
            cells[column.name] = (Cell(None, _NO_TASK), None)
        elif column.task:
            wanted = {"data.split": "test", **table.expect, **expect, **column.expect}
            task = column.task.replace("{part}", part)
            cells[column.name] = _cell(table, column, wanted, task, leaves.get(task, ()))
    for column in table.columns:
        if column.name not in cells:
            cells[column.name] = (_mean([cells[name][0] for name in column.mean_of]), None)
    return tuple(cells[column.name] for column in table.columns)


def _cell(
    table: LayoutTable, column: Column, expect: Mapping[str, Any], task: str, results: Sequence[LeafResult]
) -> Own:
    if not results:
        return Cell(None, _NOT_RUN, task=task), None
    faults = [_unfit(result, expect) for result in results]
    if None not in faults:
        return Cell(None, faults[0], task=task), None
    fitting = [result for result, fault in zip(results, faults, strict=True) if fault is None]
    metrics, scale = column.metrics or table.metrics, _scale(column)
    latest = replace(_shown(metrics, task, fitting[0], scale), digits=column.digits)
    # of several runs with one seed the latest
    by_seed = {result.config.get("seed"): result for result in reversed(fitting)}
    if table.seeds and len(by_seed) > 1:
        cells = [_shown(metrics, task, result, scale) for result in by_seed.values()]
        return _over_seeds(latest, [cell.value for cell in cells if cell.value is not None]), fitting[0]
    return latest, fitting[0]


def _over_seeds(latest: Cell, values: Sequence[float]) -> Cell:
    """Mean over runs with a 95% t interval, n - 1 degrees of freedom."""
    from mrag_eval.metrics.intervals import t_interval

    if len(values) < 2:
        return latest
    low, high = t_interval(values)
    return replace(latest, value=sum(values) / len(values), low=low, high=high)


def _unfit(leaf: LeafResult, expect: Mapping[str, Any]) -> str | None:
    """Why a result does not belong into a cell; a setting of which nothing is expected (null) may be anything."""
    for key, wanted in expect.items():
        found = _setting(leaf.config, key)
        if wanted is not None and found is not None and found != wanted:
            return f"run with {key}={found}, the table shows {wanted}"
    return None


def _shown(metrics: Sequence[str], task: str, leaf: LeafResult, scale: float = _PERCENT) -> Cell:
    metric = next((name for name in metrics if name in leaf.metrics), None)
    if metric is None:
        return Cell(None, _why_unscored(metrics, leaf), task=task)
    score = leaf.metrics[metric]
    value, low, high = (None if score.get(key) is None else scale * score[key] for key in ("value", "low", "high"))
    reason = None if value is not None else str(score.get("reason") or "no value")
    return Cell(value, reason, low, high, score.get("n"), task, metric)


def _setting(config: Mapping[str, Any], key: str) -> Any:
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _why_unscored(metrics: Sequence[str], leaf: LeafResult) -> str:
    for metric in metrics:
        if metric in leaf.unscored:
            reasons = ", ".join(f"{reason}: {n}" for reason, n in leaf.unscored[metric].items())
            return f"no row has a {metric} ({reasons})"
    hint = ": no judge was configured" if metrics[0].startswith("judge") else ""
    return f"scored without {' or '.join(metrics)}{hint}"


def _remarks(cell: Cell, leaf: LeafResult | None, judged_by: str | None) -> list[str]:
    """What a reader of the figure must know: rows left out, and who judged."""
    if cell.value is None or leaf is None or cell.metric is None:
        return []
    out = []
    reasons = leaf.unscored.get(cell.metric) or {}
    if reasons:
        counts = ", ".join(f"{n} ({reason})" for reason, n in reasons.items())
        out.append(f"{cell.task}: {sum(reasons.values())} rows without {cell.metric}: {counts}")
    judges = _setting(leaf.config, "scores.judge.judges")
    if judged_by and cell.metric.startswith("judge") and isinstance(judges, Mapping):
        panel = ", ".join(str(judge.get("model", seat)) for seat, judge in judges.items())
        out.append(f"judged by {panel} (the paper: {judged_by})")
    return out


def _mean(cells: Sequence[Cell]) -> Cell:
    blank = sum(cell.value is None for cell in cells)
    if blank or not cells:
        return Cell(None, _NO_MEAN)
    return Cell(sum(float(cell.value or 0) for cell in cells) / len(cells))
