"""The cells of a paper's table that show runs: scores, means over tasks and seeds, and the reasons for blanks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, Row, percent_cell
from mrag_eval.report.files._results import LeafResult, outcomes_text
from mrag_eval.report.tables._layout_schema import Column, LayoutTable
from mrag_eval.report.tables._row_runs import OwnRow
from mrag_eval.report.tables._row_settings import listed_once

NOT_RUN = "not run"
# The beginning of a reason that names what was not run.
NO_RUN = "no run in mode "
OTHER_SETTINGS = "run with other settings, see below"
IN_ANOTHER_ROW = "run, see another row of it"
_NO_TASK = "no figure in the paper, and no task of ours"
_NO_MEAN = "a mean needs all of its cells"
# Scores are 0 to 1 in files, percent in the papers.
_PERCENT = 100.0

# A cell, and the results that its figure is from: of several tasks, or of several seeds.
Own = tuple[Cell, tuple[LeafResult, ...]]


def own_cells(table: LayoutTable, row: OwnRow, elsewhere: Callable[[str], bool]) -> tuple[Own, ...]:
    """Return our cells of a row; ``elsewhere`` tells whether a task has a row with other settings."""
    part, at = (row.condition.part, row.condition.at) if row.condition else ("", "")
    without = row.condition.without if row.condition else ()
    cells: dict[str, Own] = {}
    for column in table.columns:
        tasks = [task.replace("{part}", part) for task in ((column.task,) if column.task else column.tasks)]
        if column.name in without:
            cells[column.name] = (Cell(None, _NO_TASK), ())
        elif tasks:
            named = tuple(metric.replace("{at}", at) for metric in column.metrics or table.metrics)
            parts = []
            for task in tasks:
                results = row.picked.get((column.name, task), ())
                otherwise = IN_ANOTHER_ROW if row.differs else OTHER_SETTINGS
                parts.append(_cell(table, column, named, task, results, otherwise if elsewhere(task) else NOT_RUN))
            shown = tuple(leaf for _, leaves in parts for leaf in leaves)
            cells[column.name] = parts[0] if column.task else (_over_tasks([c for c, _ in parts], column), shown)
        elif column.blank:
            cells[column.name] = (Cell(None, ""), ())
    for column in table.columns:
        if column.name not in cells:
            cells[column.name] = (_mean([cells[name][0] for name in column.mean_of]), ())
    return tuple(cells[column.name] for column in table.columns)


def own_row(
    labels: tuple[str, ...],
    cells: Iterable[Cell],
    differs: Iterable[str] = (),
    leaves: Iterable[LeafResult] = (),
    source: str = "this run",
) -> Row:
    """Return a row of ours, with the state of each place, and the settings in which its runs differ from the table's.

    What came of the runs of ``leaves`` replaces "this run".
    """
    told, came = listed_once(differs), outcomes_text(leaves)
    this = " ".join(["run", *(["otherwise"] if told else []), *([f"with {came}"] if came else [])])
    source = source.replace("this run", this, 1) if told or came else source
    return Row(labels, source, tuple(replace(cell, state=_state(cell, bool(told))) for cell in cells), told)


def _state(cell: Cell, otherwise: bool) -> str:
    """Return the state of a place of ours; empty where no task or another row has it. ``otherwise``: of the row."""
    said = str(cell.reason)
    missing = said.startswith(NO_RUN) or NOT_RUN in said
    if cell.value is None and (missing or said in ("", _NO_TASK, _NO_MEAN, IN_ANOTHER_ROW)):
        return NOT_RUN if missing else ""
    return "run otherwise" if otherwise or OTHER_SETTINGS in said else "as shipped"


def scale(column: Column) -> float:
    """Return the factor from a score in a file to the figures of a column."""
    return _PERCENT if column.unit == "percent" else 1.0


def metric_name(name: str) -> str:
    """Return the metric of ``metric[part]``."""
    return name.partition("[")[0]


def _cell(
    table: LayoutTable, column: Column, metrics: Sequence[str], task: str, results: Sequence[LeafResult], missing: str
) -> Own:
    """Return the score of the latest result, or, where the paper has seeds, the mean over them."""
    if not results:
        return Cell(None, missing, task=task), ()
    latest = replace(_shown(metrics, task, results[0], scale(column)), digits=column.digits)
    if table.seeds and len(results) > 1:
        cells = [_shown(metrics, task, result, scale(column)) for result in results]
        return _over_seeds(latest, [cell.value for cell in cells if cell.value is not None]), tuple(results)
    return latest, (results[0],)


def _over_tasks(cells: Sequence[Cell], column: Column) -> Cell:
    """Return the mean of several tasks' scores, or of all their questions, if every task has a score."""
    missing = [cell for cell in cells if cell.value is None]
    if missing:
        reasons = list(dict.fromkeys(str(cell.reason) for cell in missing))
        if len(missing) == len(cells) and reasons in ([NOT_RUN], [OTHER_SETTINGS], [IN_ANOTHER_ROW]):
            return Cell(None, reasons[0], digits=column.digits)
        what = f"{len(missing)} of its {len(cells)} tasks without a score ({'; '.join(reasons)})"
        return Cell(None, f"{_NO_MEAN}: {what}", digits=column.digits)
    values = [cell.value for cell in cells if cell.value is not None]
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


def _mean(cells: Sequence[Cell]) -> Cell:
    values = [cell.value for cell in cells if cell.value is not None]
    return Cell(sum(values) / len(values)) if values and len(values) == len(cells) else Cell(None, _NO_MEAN)


def _shown(metrics: Sequence[str], task: str, leaf: LeafResult, times: float) -> Cell:
    metric = next((name for name in metrics if leaf.score(name) is not None), None)
    if metric is None:
        return Cell(None, _why_unscored(metrics, leaf), task=task)
    score = leaf.score(metric) or Estimate(None)
    cell = percent_cell(score, task, metric, times)
    if score.value is not None:
        return cell
    why = ", ".join(leaf.unscored.get(metric_name(metric)) or ())
    return replace(cell, reason=(score.reason or "no value") + (f" ({why})" if why else ""))


def _why_unscored(metrics: Sequence[str], leaf: LeafResult) -> str:
    metrics = [metric_name(metric) for metric in metrics]
    for metric in metrics:
        if metric in leaf.unscored:
            reasons = ", ".join(f"{reason}: {n}" for reason, n in leaf.unscored[metric].items())
            return f"no row has a {metric} ({reasons})"
    judged = metrics[0].startswith(("judge", "attribution"))
    hint = ": no judge was configured" if judged and not leaf.seats else ""
    return f"scored without {' or '.join(metrics)}{hint}"
