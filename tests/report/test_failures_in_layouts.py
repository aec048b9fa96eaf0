"""Every figure of ours in the papers' tables names the task of which many rows failed, whichever it pools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mrag_eval.config import Measurement
from mrag_eval.report import LayoutTable, LeafResult, TaskConfig, load_layout
from mrag_eval.report.tables._layout_cells import metric_name
from mrag_eval.report.tables._layout_schema import Layout
from mrag_eval.report.tables._layouts import _own_row
from mrag_eval.report.tables._row_runs import OwnRow, Slot, TableRuns
from mrag_eval.scoring import TaskScores
from tests.report.rows import every_slot

# Links of the chain from retrieval to the answer: shares of rows, which are no metrics.
NO_METRIC = ("selection.", "attribution.", "concurrence.random.")


def finished(task: str, metric: str, failed: int) -> LeafResult:
    """Return a result with a score over 190 rows, and as many more of which a step failed."""
    part = {"value": 0.5, "n": 190}
    cell = metric.partition("[")[2].rstrip("]")
    score = {**part, "failed": failed, **({"by": {"pair": {cell: part}}} if cell else {})}
    unscored = {metric_name(metric): {"answer failed (timeout)": failed}} if failed else {}
    scores = {"rows": 190 + failed, "metrics": {metric_name(metric): score}, "unscored": unscored}
    return LeafResult(task, TaskScores.from_dict(scores), TaskConfig(), Measurement(task))


def figures() -> Iterator[tuple[Layout, LayoutTable, Slot, str]]:
    """Yield each place of a task in the tables of all papers, with its metric."""
    for paper, name, slot in every_slot():
        layout = load_layout(paper)
        (table,) = [one for one in layout.tables if one.id == name]
        at = slot.condition.at if slot.condition else ""
        named = [metric.replace("{at}", at) for metric in slot.column.metrics or table.metrics]
        if named and not named[0].startswith(NO_METRIC):
            yield layout, table, slot, named[0]


def remarks(layout: Layout, table: LayoutTable, slot: Slot, metric: str, failed: int) -> list[str]:
    """Return the remarks on a row in which this slot's task failed, and the others of its column did not."""
    part = slot.condition.part if slot.condition else ""
    tasks = [task.replace("{part}", part) for task in ((slot.column.task,) if slot.column.task else slot.column.tasks)]
    assert slot.task in tasks
    picked = {(slot.column.name, task): [finished(task, metric, failed * (task == slot.task))] for task in tasks}
    row = OwnRow(slot.condition, "org/model", (), picked)
    return _own_row(table, layout, row, TableRuns([row], []))[1]


@pytest.mark.parametrize(("failed", "said"), [(0, False), (10, False), (11, True)])
def test_a_failing_task_is_named_in_every_figure(failed: int, said: bool) -> None:
    papers = set()
    for layout, table, slot, metric in figures():
        lines = remarks(layout, table, slot, metric, failed)
        name = metric_name(metric)
        why = f"org/model, {slot.task}: no headline for {name}: {failed} of {190 + failed} rows failed, more than 5%"
        assert (why in lines) == said, (table.id, slot, lines)
        rows = f"org/model, {slot.task}: {failed} rows without {name}: {failed} (answer failed (timeout))"
        assert (rows in lines) == bool(failed), (table.id, slot, lines)
        papers.add(layout.name)
    assert len(papers) == 5


def test_a_failing_run_among_seeds_is_named() -> None:
    found = 0
    for layout, table, slot, metric in figures():
        if table.seeds:
            runs = [finished(slot.task, metric, failed) for failed in (0, 40)]
            row = OwnRow(slot.condition, "org/model", (), {(slot.column.name, slot.task): runs})
            lines = _own_row(table, layout, row, TableRuns([row], []))[1]
            assert any("40 of 230 rows failed" in line for line in lines)
            found += 1
    assert found
