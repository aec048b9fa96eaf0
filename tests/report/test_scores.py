"""The tidy table of scores, and results with a different schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import CORRECT, GROUNDED
from mrag_eval.platform import DataError, to_json
from mrag_eval.report import compare, flips, load_results, page_data, read_case, read_results, score_table
from mrag_eval.report.files._scores import COLUMNS
from mrag_eval.report.page.sections._runs import _run_points
from mrag_eval.scoring import METRICS, RowRecord, summarize
from tests.report.runs import row, write_full_run, write_run


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
    assert (whole["mode"], whole.benchmark, whole.passages) == ("all", "x", "5")
    assert (whole.unscored, whole.unscored_rows) == ("1 row unscored (the row has no reference answer)", 1)
    assert not whole.lower_is_better


PANELS = {"judge": ("a", "b"), "sufficiency": ("s",), "claims": ("b", "c")}
DECIDING: Mapping[str, tuple[str, ...]] = {
    "judged_accuracy": ("judge",),
    "judge_correct": ("judge",),
    "judge_grade": ("judge",),
    "judge_label.good": ("judge",),
    "context_sufficiency": ("sufficiency",),
    "grounded": ("claims",),
    **dict.fromkeys(GROUNDED[1:], ("claims", "judge")),
}


@pytest.mark.parametrize("right", ["match", "judge_correct"])
@pytest.mark.parametrize("panels", [*chain.from_iterable(combinations(PANELS, n) for n in range(len(PANELS) + 1))])
def test_the_judges_beside_a_metric_are_those_that_decide_it_each_once(
    panels: Sequence[str], right: str, tmp_path: Path
) -> None:
    """Of every metric there is, whichever panels a run had; seats of one model are one judge."""
    other = [*METRICS.keys() - {*DECIDING, *CORRECT, "judge_label"}]
    names = [*(name for name in DECIDING if name not in CORRECT), right, *other]
    cell = {"value": 0.5, "low": 0.2, "high": 0.8, "n": 9}
    tables = {
        kind: {"judges": {f"{m}#{n}": {"model": m, "correct": cell} for m in PANELS[kind] for n in (1, 2)}}
        for kind in panels
    }
    scores = {"rows": 9, "metrics": dict.fromkeys(names, cell), **tables}
    run = write_run(tmp_path / "out", {"qa": [row(i) for i in range(9)]}, config={"scores": scores})
    beside = {metric: own.judges for metric, own in load_results(run).set_index("metric").iterrows()}
    assert beside.keys() == {*names}
    for name, said in beside.items():
        of = [kind for kind in DECIDING.get(name, ()) if kind in panels]
        if name in GROUNDED and right == "match":
            of = [kind for kind in of if kind == "claims"]
        assert said == (", ".join(dict.fromkeys(m for kind in of for m in PANELS[kind])) or None), name
    (listed,) = _run_points(page_data([run]))
    assert {*listed["judges"].split(", ")} == ({m for kind in panels for m in PANELS[kind]} or {"none"})


def test_unscored_rows_and_groups_are_shown_with_what_they_mean(tmp_path: Path) -> None:
    """Four groups of five equal rows, and five rows without a score."""
    rows = [row(i, group=f"g{i // 5}", acc=float(i < 10)) for i in range(20)]
    records = [RowRecord(r["row"], r["cell"], r["values"], group=r["group"]) for r in rows]
    lost = [RowRecord(f"u{i}", {"query_lang": "en"}, {}, unscored={"acc": "no verdict"}) for i in range(5)]
    folder = write_run(tmp_path / "out", {"qa": rows}, config={"scores": to_json(summarize([*records, *lost]))})
    frame = load_results(folder)
    whole = frame[(frame.metric == "acc") & (frame.dimension == "")].iloc[0]
    assert (whole.value, whole.n, whole.groups) == (0.5, 20, 4)
    # variances by hand: 4 groups of +-1/2 around the mean: 4/16 * (1/4) / 3; 20 rows: 1/4 / 19
    assert whole.design_effect == pytest.approx((1 / 4 / 3) / (1 / 4 / 19))
    # 10 right of 25 rows, or 15
    assert (whole.worst_case, whole.best_case) == (pytest.approx(10 / 25), pytest.approx(15 / 25))
    notes = score_table([folder]).notes
    assert notes == (
        "acc: 5 rows unscored (no verdict); with all of them wrong 40.0, with all of them right 60.0 (qa)",
        "rows of 4 groups were resampled together; design effect 6.3 (qa)",
    )


def test_the_groups_of_many_tasks_are_one_remark(tmp_path: Path) -> None:
    config = {}
    for size in (2, 3, 4, 5, 6):
        rows = [row(i, group=f"g{i // size}", acc=float(i < 10)) for i in range(20)]
        records = [RowRecord(r["row"], r["cell"], r["values"], group=r["group"]) for r in rows]
        config[f"qa{size}"] = (rows, {"scores": to_json(summarize(records))})
    folders = [write_run(tmp_path / name, {name: rows}, config=of) for name, (rows, of) in config.items()]
    (note,) = (note for note in score_table(folders).notes if "resampled" in note)
    assert re.fullmatch(
        r"rows of 10 groups were resampled together; design effect \d\.\d \(qa2; with other figures in 4 more\)", note
    )


def test_rows_that_count_for_another_rate_are_in_no_bound(tmp_path: Path) -> None:
    """One error in four rows, one row without a verdict, and six rows with no answer: bounds are 1/5 and 2/5."""
    rows = [row(i, abstention_error=float(i < 1)) for i in range(4)]
    records = [RowRecord(r["row"], r["cell"], r["values"]) for r in rows]
    reasons = ["no majority", *["no passage shown answers the question"] * 6]
    lost = [
        RowRecord(f"u{i}", {"query_lang": "en"}, {}, unscored={"abstention_error": why})
        for i, why in enumerate(reasons)
    ]
    folder = write_run(tmp_path / "out", {"qa": rows}, config={"scores": to_json(summarize([*records, *lost]))})
    frame = load_results(folder)
    whole = frame[(frame.metric == "abstention_error") & (frame.dimension == "")].iloc[0]
    assert (whole.value, whole.unscored_rows) == (0.25, 7)
    assert (whole.worst_case, whole.best_case) == (pytest.approx(1 / 5), pytest.approx(2 / 5))


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
    "read",
    [
        lambda path: compare([path / "some-model"], [path / "some-model"]),
        lambda path: flips([path]),
        lambda path: read_case("Ceuta", [path]),
    ],
)
def test_samples_of_another_schema_are_refused(runs: Path, read: Callable[[Path], Any]) -> None:
    for file in runs.rglob("samples_*.jsonl"):
        lines = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
        lines[1]["rows"]["schema_version"] = "a"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(DataError, match=r"samples_.*jsonl, line 2: schema_version is 'a'"):
        read(runs)
