"""The tidy table of scores, and results with a different schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import DataError
from mrag_eval.report import compare, flips, load_results, read_case, read_results, score_table
from mrag_eval.report.files._scores import COLUMNS
from tests.report.runs import write_full_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_full_run(tmp_path / "runs", mode="all")
    return write_full_run(tmp_path / "runs", "other/model", mode="qlang", right=True)


def test_a_row_for_each_run_task_metric_and_cell(runs: Path) -> None:
    frame = load_results(runs)
    assert list(frame.columns) == list(COLUMNS)
    # two models, two tasks, two metrics; match also has three pairs
    assert len(frame[frame.dimension == ""]) == 2 * 2 * 2
    assert len(frame[frame.dimension == "pair"]) == 2 * 2 * 3
    assert set(frame.cell[frame.dimension == "pair"]) == {"ar->en", "zh->en", "en->en"}
    chosen = frame[(frame.model == "some-model") & (frame.name == "qa_one") & (frame.metric == "match")]
    whole = chosen[chosen.dimension == ""].iloc[0]
    assert (whole.value, whole.low, whole.high, whole.n) == (0.3, 0.2, 0.5, 23)
    assert (whole["mode"], whole.benchmark, whole.passages, whole.judges) == ("all", "x", "5", "m, n")
    assert (whole.unscored, whole.unscored_rows) == ("1 row unscored (the row has no reference answer)", 1)
    assert not whole.lower_is_better


def test_it_can_be_pivoted_and_written(runs: Path) -> None:
    frame = load_results([str(runs)])
    table = frame[frame.dimension == ""].pivot_table(index=["model", "name"], columns="metric", values="value")
    assert table.loc[("some-model", "qa_two"), "char3gram_recall"] == 0.45
    assert frame.to_csv(index=False).count("\n") == len(frame) + 1


@pytest.mark.parametrize("read", [lambda path: read_results([path]), load_results, lambda path: score_table([path])])
def test_results_of_another_schema_are_refused(runs: Path, read: Callable[[Path], Any]) -> None:
    for file in runs.rglob("results_*.json"):
        content = json.loads(file.read_text("utf-8"))
        content["configs"]["qa_two"]["scores"]["schema_version"] = 9
        file.write_text(json.dumps(content), "utf-8")
    with pytest.raises(DataError, match=r"results_.*: configs.qa_two.scores: schema_version is 9") as error:
        read(runs)
    assert "run again with this version" in str(error.value)


@pytest.mark.parametrize(
    "read", [lambda path: compare([path], [path]), lambda path: flips([path]), lambda path: read_case("Ceuta", [path])]
)
def test_samples_of_another_schema_are_refused(runs: Path, read: Callable[[Path], Any]) -> None:
    for file in runs.rglob("samples_*.jsonl"):
        lines = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
        lines[1]["rows"]["schema_version"] = "a"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(DataError, match=r"samples_.*jsonl, line 2: schema_version is 'a'"):
        read(runs)
