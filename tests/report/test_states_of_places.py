"""Places of a paper's table: filled as shipped, filled by a run with other settings, or not run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mrag_eval.report import LeafResult, ResultFile, Table, layout_names, load_layout
from mrag_eval.report._table import Cell, Row, markdown
from mrag_eval.report.tables._layout_cells import own_row
from mrag_eval.report.tables._layout_schema import Layout, LayoutTable
from mrag_eval.report.tables._layouts import _table
from mrag_eval.report.tables._row_runs import TaskRun, placed, slots, table_runs, task_runs
from tests.report.rows import filling, with_record


def otherwise(leaf: LeafResult) -> LeafResult:
    """Return the run with a setting that no row states."""
    record = replace(leaf.measurement, setting={**leaf.measurement.setting, "run": {"system_instruction": "Lie."}})
    return with_record(leaf, record)


def scripted(table: LayoutTable, layout: Layout, fates: Sequence[str]) -> list[TaskRun]:
    """Return runs of the tasks of a table's places, each with the next fate of a list that starts again."""
    stated = {slot.task: slot.stated for slot in reversed(list(slots(table, layout)))}
    leaves = {}
    for number, (task, settings) in enumerate(stated.items()):
        fate, leaf = fates[number % len(fates)], filling(task, settings)
        if fate != "not run":
            leaves[task] = leaf if fate == "as shipped" else otherwise(leaf)
    return task_runs([ResultFile(Path("results_1.json"), "m", 1.0, leaves)], layout)


def shown(table: LayoutTable, layout: Layout, fates: Sequence[str]) -> Table:
    runs = scripted(table, layout, fates)
    return _table(table, layout, table_runs(table, layout, runs, placed(layout, runs)), runs)


PLACES = [(name, table.id) for name in layout_names() for table in load_layout(name).tables
          if not table.optional and len({slot.task for slot in slots(table, load_layout(name))}) > 2]  # fmt: skip


@pytest.mark.parametrize(("name", "id_"), PLACES)
def test_what_ran_is_never_said_not_to_have_run(name: str, id_: str) -> None:
    layout = load_layout(name)
    (table,) = (table for table in layout.tables if table.id == id_)
    made = shown(table, layout, ("as shipped", "run otherwise", "not run"))
    ours = [row for row in made.rows if not row.source.startswith(("paper", "computed", "no run"))]
    ran = {run.leaf.task: run for run in scripted(table, layout, ("as shipped", "run otherwise", "not run"))}
    assert {bool(row.differs) for row in ours} == {False, True}
    once = [slot.task for slot in slots(table, layout)]
    states = set()
    for row in ours:
        for column, cell in zip(table.columns, row.cells, strict=True):
            states.add(cell.state)
            if column.task and cell.task in ran and once.count(cell.task) == 1:
                wanted = ("",) if cell.reason == "run, see another row of it" else ("as shipped", "run otherwise")
                assert cell.state in wanted, (row.labels, column.name, cell)
                assert cell.reason != "not run"
            elif column.task and cell.task and cell.task not in ran:
                assert (cell.state, cell.reason) == ("not run", "not run")
    if any(column.task for column in table.columns):
        assert {"as shipped", "run otherwise"} <= states
    assert states <= {"as shipped", "run otherwise", "not run", ""}
    # one line a difference beneath the table, and none in the labels
    text = markdown([made])
    (line,) = re.findall(r"^- \[1\] (.*)$", text, re.MULTILINE)
    assert line == "run.system_instruction=Lie., not set in the task"
    assert text.count("Lie.") == 1
    assert "| run otherwise [1] |" in re.sub(" +", " ", text)


@pytest.mark.parametrize(("name", "id_"), PLACES[:6])
def test_what_all_rows_share_is_said_once(name: str, id_: str) -> None:
    layout = load_layout(name)
    (table,) = (table for table in layout.tables if table.id == id_)
    made = shown(table, layout, ("run otherwise",))
    text = markdown([made])
    assert text.count("Lie.") == 1
    several = sum(not row.source.startswith(("paper", "computed", "no run")) for row in made.rows) > 1
    assert ("- all runs of ours differ: run.system_instruction=Lie." in text) == several


def test_marks_number_the_differences_of_all_rows() -> None:
    def row(name: str, *differs: str) -> Row:
        return own_row((name,), (Cell(1.0),), differs)

    def printed(*rows: Row) -> list[str]:
        text = markdown([Table("1", "T", ("model",), ("c",), (Row(("p",), "paper, Table 1", (Cell(2.0),)), *rows), 1)])
        found = [re.sub(" +", " ", line) for line in text.splitlines()]
        return [line for line in found if "run" in line or line.startswith("- ")]

    assert printed(row("a"), row("b", "k=1, not 5"), row("c", "seed=2, not 1", "k=1, not 5")) == [
        "| a | this run | 1.0 |",
        "| b | run otherwise [1] | 1.0 |",
        "| c | run otherwise [2] [1] | 1.0 |",
        "- [1] k=1, not 5",
        "- [2] seed=2, not 1",
    ]
    assert printed(row("b", "k=1, not 5"), row("c", "k=1, not 5", "seed=2, not 1")) == [
        "| b | run otherwise | 1.0 |",
        "| c | run otherwise [1] | 1.0 |",
        "- all runs of ours differ: k=1, not 5",
        "- [1] seed=2, not 1",
    ]
