"""The papers' tables with our figures next to the published ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrag_eval.config import reranker_name
from mrag_eval.core import DataError
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._results import LeafResult, ResultFile, read_results
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.report.tables._by_mode import ModeRow, rows_by_mode
from mrag_eval.report.tables._layout_schema import (
    Column,
    Computed,
    Condition,
    Layout,
    LayoutTable,
    PublishedRow,
    load_layout,
)
from mrag_eval.scoring import LabelTable

_NOT_RUN = "not run"
_NO_TASK = "no figure in the paper, and no task of ours"
_NO_MEAN = "a mean needs all of its cells"
# A condition with only these reasons becomes a line below the table, not an empty row in it.
_NOT_MEASURED = (_NOT_RUN, _NO_TASK, _NO_MEAN)
# Scores are 0 to 1 in files, percent in the papers.
_PERCENT = 100.0


def layout_tables(name: str, results: Sequence[Path | str]) -> list[Table]:
    """Return the tables of a paper with our figures next to the published ones, in percent and with the paper's digits.

    ``results`` are result files or folders of them. A cell that no run fills is blank with the reason, never 0. A mean
    needs all its cells. If several runs of a model contain one task, the latest with the settings of the cell counts.
    """
    layout = load_layout(name)
    tasks = {task for table in layout.tables for task in _tasks(table)}
    files = read_results([Path(path) for path in results])
    models = _by_model(files, tasks, retrievers=layout.retrievers)
    side_by_side = {table.id: _by_mode(table, files) for table in layout.tables}
    if not models and not any(side_by_side.values()):
        raise DataError(
            f"--layout {name}: no task of this paper is among the results in {', '.join(map(str, results))}",
            f"it shows {', '.join(sorted(tasks)[:3])}, ...",
        )
    wanted = [table for table in layout.tables if not table.optional or _fills(table, models)]
    return [_table(table, models, layout, side_by_side[table.id]) for table in wanted]


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
        task.replace("{part}", condition.part)
        for condition in conditions
        for column in table.columns
        for task in ((column.task,) if column.task else column.tasks)
        if column.name not in condition.without
    ]


def _by_model(
    files: Sequence[ResultFile], tasks: Collection[str], *, retrievers: bool
) -> dict[str, dict[str, list[LeafResult]]]:
    """Return model -> task of the layout -> its results, latest first; ``files`` are in order of their date.

    With ``retrievers`` the retriever's name follows the model's; runs without a retriever belong to all of a model's.
    """
    found = [(file.model, leaf) for file in files for task, leaf in file.leaves.items() if task in tasks]
    names: dict[str, list[str]] = {}
    for model, leaf in found:
        retriever = retriever_name(leaf.config) if retrievers else ""
        known = names.setdefault(model, [])
        if retriever is not None and retriever not in known:
            known.append(retriever)
    out: dict[str, dict[str, list[LeafResult]]] = {}
    for model, leaf in found:
        own = retriever_name(leaf.config) if retrievers else ""
        for retriever in [own] if own is not None else names[model] or ["no retrieval"]:
            label = f"{model} · {retriever}" if retriever else model
            out.setdefault(label, {}).setdefault(leaf.task, []).insert(0, leaf)
    return out


def retriever_name(config: TaskConfig) -> str | None:
    """Return first stage and reranker of a run; None if nothing is searched.

    The first stage is its embedder or sparse encoder, ``bm25``, or, for another system's run, the run's tag (else the
    name of its file) with the beginning of its hash.
    """
    if not config.searches:
        return None
    first = _first_stage(config)
    return f"{first} + {reranker_name(config.rerank)}" if config.rerank else f"{first}, not reranked"


def _first_stage(config: TaskConfig) -> str:
    if config.kind == "precomputed":
        name, content = config.searched_run
        return " ".join(["run", *([name] if name else []), *([f"({content[:8]})"] if content else [])])
    if config.kind == "bm25":
        return "bm25"
    embedder = config.embedder_name or f"index '{config.corpus}'"
    return f"hybrid, bm25 and {embedder}" if config.kind == "hybrid" else embedder


def _table(
    table: LayoutTable, models: Mapping[str, Leaves], layout: Layout, side_by_side: Sequence[ModeRow] = ()
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
            if name is not None and all(_not_measured(cell) for cell, _ in own):
                not_run.setdefault(model, []).append(name)
                continue
            source = "this run, by proxy" if any(_by_proxy(cell, leaf) for cell, leaf in own) else "this run"
            rows.append(Row(_labels(name, model), source, tuple(cell for cell, _ in own)))
            notes += [f"{model}, {line}" for cell, leaf in own for line in _remarks(cell, leaf, layout)]
    notes += [f"{model}, not run: {'; '.join(names)}" for model, names in not_run.items()]
    notes += [f"{column.name}, no task of ours: {column.blank}" for column in table.columns if column.blank]
    rows += [_computed_row(table, row, models) for row in table.computed]
    rows += [found.row for found in side_by_side]
    notes += [line for found in side_by_side for line in found.notes]
    stub = ("condition", table.stub) if table.conditions else (table.stub,)
    columns = tuple(column.name for column in table.columns)
    title = f"{_place(table.id)}: {table.title}"
    told = tuple(dict.fromkeys(notes))
    shown = {"intervals": bool(side_by_side), "margins": table.margins}
    return Table(table.id, title, stub, columns, tuple(rows), table.digits, told, **shown)


def _not_measured(cell: Cell) -> bool:
    return cell.value is None and (cell.task is None or cell.reason in _NOT_MEASURED)


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


def _computed_row(table: LayoutTable, row: Computed, models: Mapping[str, Leaves]) -> Row:
    """Return figures that follow from the questions alone, from the result with the most questions."""
    leaves = [leaf for by_task in models.values() for task in _tasks(table) for leaf in by_task.get(task, ())]
    leaf = max((found for found in leaves if _unfit(found, table.expect) is None), key=_rows, default=None)
    cells = []
    for column in table.columns:
        head, _, last = (column.metrics or table.metrics or ("",))[0].rpartition(".")
        score = leaf.metrics.get(f"{head}.{row.part}.{last}") if leaf is not None else None
        value = score.value if score is not None else None
        cells.append(Cell(None if value is None else _scale(column) * value, "", digits=column.digits))
    labels = ("", row.model) if table.conditions else (row.model,)
    where = "no run" if leaf is None else f"computed, {_rows(leaf):,} questions"
    return Row(labels, where, tuple(cells))


def _rows(leaf: LeafResult) -> int:
    return leaf.scores.rows


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
    """Return our cells of a row, each with the result it shows."""
    part, at, expect = (condition.part, condition.at, condition.expect) if condition else ("", "", {})
    without = condition.without if condition else ()
    cells: dict[str, Own] = {}
    for column in table.columns:
        if column.name in without:
            cells[column.name] = (Cell(None, _NO_TASK), None)
        elif column.task:
            wanted = {"data.split": "test", **table.expect, **expect, **column.expect}
            task = column.task.replace("{part}", part)
            named = tuple(metric.replace("{at}", at) for metric in column.metrics or table.metrics)
            cells[column.name] = _cell(table, column, named, wanted, task, leaves.get(task, ()))
        elif column.tasks:
            wanted = {"data.split": "test", **table.expect, **expect, **column.expect}
            named = tuple(metric.replace("{at}", at) for metric in column.metrics or table.metrics)
            tasks = [task.replace("{part}", part) for task in column.tasks]
            parts = [_cell(table, column, named, wanted, task, leaves.get(task, ())) for task in tasks]
            cells[column.name] = _over_tasks([cell for cell, _ in parts], column), parts[0][1]
        elif column.blank:
            cells[column.name] = (Cell(None, ""), None)
    for column in table.columns:
        if column.name not in cells:
            cells[column.name] = (_mean([cells[name][0] for name in column.mean_of]), None)
    return tuple(cells[column.name] for column in table.columns)


def _cell(
    table: LayoutTable,
    column: Column,
    metrics: Sequence[str],
    expect: Mapping[str, Any],
    task: str,
    results: Sequence[LeafResult],
) -> Own:
    if not results:
        return Cell(None, _NOT_RUN, task=task), None
    faults = [_unfit(result, expect) for result in results]
    if None not in faults:
        return Cell(None, faults[0], task=task), None
    fitting = [result for result, fault in zip(results, faults, strict=True) if fault is None]
    scale = _scale(column)
    latest = replace(_shown(metrics, task, fitting[0], scale), digits=column.digits)
    # among several runs with one seed, the latest
    by_seed = {result.config.seed: result for result in reversed(fitting)}
    if table.seeds and len(by_seed) > 1:
        cells = [_shown(metrics, task, result, scale) for result in by_seed.values()]
        return _over_seeds(latest, [cell.value for cell in cells if cell.value is not None]), fitting[0]
    return latest, fitting[0]


def _over_tasks(cells: Sequence[Cell], column: Column) -> Cell:
    """Return the mean of several tasks' scores, or of all their questions, if every task has a score."""
    missing = [cell for cell in cells if cell.value is None]
    if missing:
        reasons = list(dict.fromkeys(str(cell.reason) for cell in missing))
        if reasons == [_NOT_RUN] and len(missing) == len(cells):
            return Cell(None, _NOT_RUN, digits=column.digits)
        what = f"{len(missing)} of its {len(cells)} tasks without a score ({'; '.join(reasons)})"
        return Cell(None, f"{_NO_MEAN}: {what}", digits=column.digits)
    values = [float(cell.value or 0) for cell in cells]
    counts = [cell.n or 0 for cell in cells]
    if column.weight == "tasks":
        mean = sum(values) / len(values)
    elif not all(counts):
        return Cell(None, f"{_NO_MEAN}: a task's number of questions is not known", digits=column.digits)
    else:
        mean = sum(value * n for value, n in zip(values, counts, strict=True)) / sum(counts)
    return Cell(mean, n=sum(counts) or None, metric=cells[0].metric, digits=column.digits)


def _over_seeds(latest: Cell, values: Sequence[float]) -> Cell:
    """Return the mean over runs with a 95% t interval, n - 1 degrees of freedom."""
    from mrag_eval.metrics import t_interval

    if len(values) < 2:
        return latest
    low, high = t_interval(values)
    return replace(latest, value=sum(values) / len(values), low=low, high=high)


def _unfit(leaf: LeafResult, expect: Mapping[str, Any]) -> str | None:
    """Return why a result does not belong in a cell; an expected value of null allows any setting."""
    for key, wanted in expect.items():
        found = leaf.config.setting(key)
        if wanted is not None and found is not None and found != wanted:
            return f"run with {key}={found}, the table shows {wanted}"
    return None


def _shown(metrics: Sequence[str], task: str, leaf: LeafResult, scale: float = _PERCENT) -> Cell:
    metric = next((name for name in metrics if leaf.score(name) is not None), None)
    if metric is None:
        return Cell(None, _why_unscored(metrics, leaf), task=task)
    score = leaf.score(metric) or Estimate(None)
    cell = percent_cell(score, task, metric, scale)
    if score.value is not None:
        return cell
    why = ", ".join(leaf.unscored.get(_metric(metric)) or ())
    return replace(cell, reason=(score.reason or "no value") + (f" ({why})" if why else ""))


def _metric(name: str) -> str:
    """Return the metric of ``metric[part]``."""
    return name.partition("[")[0]


def _why_unscored(metrics: Sequence[str], leaf: LeafResult) -> str:
    metrics = [_metric(name) for name in metrics]
    for metric in metrics:
        if metric in leaf.unscored:
            reasons = ", ".join(f"{reason}: {n}" for reason, n in leaf.unscored[metric].items())
            return f"no row has a {metric} ({reasons})"
    hint = ": no judge was configured" if metrics[0].startswith(("judge", "attribution")) else ""
    return f"scored without {' or '.join(metrics)}{hint}"


def _remarks(cell: Cell, leaf: LeafResult | None, layout: Layout) -> list[str]:
    """Return remarks on a figure: rows left out, judges, and retriever."""
    if cell.value is None or leaf is None or cell.metric is None:
        return []
    out = []
    agent = leaf.config.agent
    if agent:
        out.append(
            f"planner {agent.get('planner')}, critic {agent.get('critic')}, at most {agent.get('max_rounds')} rounds"
        )
    metric = _metric(cell.metric)
    reasons = (leaf.unscored.get(metric) or {}) if cell.task else {}
    if reasons:
        counts = ", ".join(f"{n} ({reason})" for reason, n in reasons.items())
        out.append(f"{cell.task}: {sum(reasons.values())} rows without {metric}: {counts}")
    scores, config = leaf.scores, leaf.config
    if scores.relevance is not None and _rests_on_relevance(metric):
        out.append(_labelled_by(scores.relevance, layout.judged_by))
    if layout.judged_by and cell.metric.startswith("judge") and scores.judge is not None:
        out.append(f"judged by {', '.join(scores.judge.models)} (the paper: {layout.judged_by})")
    if layout.retrieved_by and config.index:
        out.append(f"retrieved by {_searched_by(config)} (the paper: {layout.retrieved_by})")
    return out


def _searched_by(config: TaskConfig) -> str:
    first = _first_stage(config)
    return f"{first}, reranked by {reranker_name(config.rerank)}" if config.rerank else f"{first}, not reranked"


def _rests_on_relevance(metric: str) -> bool:
    return "@" in metric or metric.startswith(("selection.", "attribution."))


def _by_proxy(cell: Cell, leaf: LeafResult | None) -> bool:
    if cell.value is None or cell.metric is None or leaf is None:
        return False
    relevance = leaf.scores.relevance
    return relevance is not None and relevance.by == "proxy" and _rests_on_relevance(cell.metric)


def _labelled_by(labelled: LabelTable, judged_by: str | None) -> str:
    if labelled.by == "proxy":
        return "relevance guessed by character n-grams within one language (_proxy): not comparable with the paper"
    judges = ", ".join((labelled.judges or {}).values())
    return f"relevance labelled by {judges}" + (f" (the paper: {judged_by})" if judged_by else "")


def _mean(cells: Sequence[Cell]) -> Cell:
    blank = sum(cell.value is None for cell in cells)
    if blank or not cells:
        return Cell(None, _NO_MEAN)
    return Cell(sum(float(cell.value or 0) for cell in cells) / len(cells))
