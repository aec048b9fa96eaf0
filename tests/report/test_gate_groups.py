"""A gate holds the score of a group as the run reports it, with the weights of its tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import Check, GateRules, gate, write_baseline
from tests.report.runs import row, write_run

# Rows of each of two tasks, with how many of them are right, and how many have no score.
SIZES = [((40, 30, 0), (10, 2, 0)), ((20, 15, 0), (20, 4, 0)), ((10, 0, 0), (90, 90, 0))]
UNSCORED = ((30, 10, 6), (12, 12, 0))


def task_rows(name: str, rows: int, right: int, unscored: int) -> list[dict[str, Any]]:
    scored = [row(i, lang=name, acc=float(i < right)) for i in range(rows - unscored)]
    return [*scored, *(row(i, lang=name) for i in range(rows - unscored, rows))]


def write_group(folder: Path, sizes: Any, by_size: bool) -> float:
    """Write a run of a group over two tasks, as the harness does; return the group's score."""
    tasks = {f"qa_{name}": task_rows(name, *size) for name, size in zip(("de", "ko"), sizes, strict=True)}
    write_run(folder, tasks, groups={"qa": list(tasks)})
    means = {task: _mean([r["values"].get("acc") for r in rows]) for task, rows in tasks.items()}
    weights = {task: len(rows) if by_size else 1 for task, rows in tasks.items()}
    group = sum(weights[task] * mean for task, mean in means.items()) / sum(weights.values())
    results = {task: {"acc,none": means[task], "sample_len": len(rows)} for task, rows in tasks.items()}
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text("utf-8")) | {"results": {**results, "qa": {"acc,none": group}}}
    path.write_text(json.dumps(content), "utf-8")
    return group


def _mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


def checks(before: Path, after: Path, **rule: Any) -> list[Check]:
    given = {"metric": "acc", "task": "qa", "min_score": 0.0001, "max_drop": 0.05, "max_unpaired": 0.5, **rule}
    return list(gate([before], [after], GateRules.model_validate({"min_n": 2, "rules": [given]})).checks)


@pytest.mark.parametrize(
    ("sizes", "by_size"), [*((one, False) for one in [*SIZES, UNSCORED]), *((one, True) for one in SIZES)]
)
def test_a_group_has_its_own_score_in_floors_and_comparisons(sizes: Any, by_size: bool, tmp_path: Path) -> None:
    score = write_group(tmp_path / "a", sizes, by_size)
    lower = [(rows, max(right - 2, 0), unscored) for rows, right, unscored in sizes]
    dropped = write_group(tmp_path / "b", lower, by_size)
    write_baseline([tmp_path / "a"], tmp_path / "base.json")
    for before in (tmp_path / "a", tmp_path / "base.json"):
        floor, drop = checks(before, tmp_path / "b")
        assert floor.candidate == drop.candidate == pytest.approx(dropped)
        assert drop.baseline == pytest.approx(score)
        assert drop.difference == pytest.approx(dropped - score)
        assert floor.low is not None
        assert floor.high is not None
        assert floor.low <= dropped <= floor.high
        assert drop.low is not None
        assert drop.high is not None
        assert drop.low <= dropped - score <= drop.high
    relative = checks(tmp_path / "a", tmp_path / "b", max_drop=None, max_drop_relative=0.5)[1]
    assert relative.limit == pytest.approx(score / 2)
    # what is no score of the group has that of its rows: a glob, a language
    assert gate_of_rows(tmp_path).candidate == pytest.approx(
        sum(right for _, right, _ in lower) / sum(rows - unscored for rows, _, unscored in lower)
    )


def gate_of_rows(folder: Path) -> Check:
    return checks(folder / "a", folder / "b", task="qa_*")[0]


@pytest.mark.parametrize(("floor", "verdict"), [(0.3, "fail"), (0.2, "holds")])
def test_a_large_task_does_not_lift_a_group_over_its_floor(floor: float, verdict: str, tmp_path: Path) -> None:
    # 0.425 and 0: the plain mean is 0.2125, that of all rows 0.34
    assert write_group(tmp_path / "a", ((40, 17, 0), (10, 0, 0)), by_size=False) == pytest.approx(0.2125)
    found = checks(tmp_path / "a", tmp_path / "a", min_score=floor)[0]
    assert (found.verdict, found.candidate) == (verdict, pytest.approx(0.2125))


def test_a_drop_of_the_small_task_counts_as_the_group_counts_it(tmp_path: Path) -> None:
    """All of 60 rows of a task are lost, of 600 of the other none: half of a plain mean, a tenth of all rows."""
    write_group(tmp_path / "a", ((600, 300, 0), (60, 60, 0)), by_size=False)
    write_group(tmp_path / "b", ((600, 300, 0), (60, 0, 0)), by_size=False)
    (drop,) = checks(tmp_path / "a", tmp_path / "b", min_score=None, max_drop=0.2)
    assert (drop.verdict, drop.difference) == ("fail", pytest.approx(-0.5))
    write_group(tmp_path / "c", ((600, 300, 0), (60, 60, 0)), by_size=True)
    write_group(tmp_path / "d", ((600, 300, 0), (60, 0, 0)), by_size=True)
    (drop,) = checks(tmp_path / "c", tmp_path / "d", min_score=None, max_drop=0.2)
    assert (drop.verdict, drop.difference) == ("no worse", pytest.approx(-60 / 660))
