"""A number is rounded once, in one place, and is the same in every output; the page leaves no score out silently."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import load_results, page_data, render, score_table, write_report
from tests.report.runs import row, write_full_run, write_run

# rounded to two decimals first, it would become 11.8
_SCORE: dict[str, Any] = {"value": 0.117465, "low": 0.117451, "high": 0.5, "n": 60, "method": "Wilson"}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    whole = {**_SCORE, "by": {"pair": {"ar->en": _SCORE, "en->en": _SCORE}}}
    unscored = {"f1": {"no reply": 60}, "correct_language": {"too short to tell the language": 22}}
    scores = {"rows": 60, "metrics": {"char3gram_recall": whole}, "unscored": unscored}
    rows = [row(0, char3gram_recall=0.117465), row(0, "ar", char3gram_recall=0.117465)]
    folder = write_run(tmp_path / "out", {"qa": rows}, config={"scores": scores})
    file = next(folder.rglob("results_*.json"))
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**content, "n-samples": {"qa": {"original": 125, "effective": 60}}}), "utf-8")
    return folder


def _page(runs: Path, tmp_path: Path) -> str:
    write_report([runs], tmp_path / "r.html")
    return (tmp_path / "r.html").read_text("utf-8").partition("<script")[0]


def test_11_7465_is_11_7_in_every_output(runs: Path, tmp_path: Path) -> None:
    assert "| 11.7 [11.7, 50.0] (n=60) |" in re.sub(" +", " ", render([score_table([runs])]))
    page = _page(runs, tmp_path)
    assert ">11.7<small>[11.7, 50.0] n=60</small>" in page
    assert "11.8" not in page
    data = page_data([runs])
    for name in ("pairs", "languages", "scores"):
        assert {point["value"] for point in data.points[name]} == {11.7}, name
    assert {value for sample in data.samples for value in sample["values"].values()} == {11.7}
    # what is computed from is not rounded
    assert set(load_results(runs)["value"].dropna()) == {0.117465}


def test_the_page_keeps_the_column_of_a_metric_without_any_score(runs: Path, tmp_path: Path) -> None:
    page = _page(runs, tmp_path)
    assert '<th scope="col">f1</th>' in page
    assert "60 rows unscored (no reply)</td>" in page


def test_the_page_says_that_a_part_of_the_rows_was_run(runs: Path, tmp_path: Path) -> None:
    page = _page(runs, tmp_path)
    assert '<span class="tag">60 of 125 rows</span>' in page
    assert '<th scope="row">qa [60 of 125 rows]</th>' in page


def test_replies_too_short_for_a_language_are_no_missing_scores(runs: Path, tmp_path: Path) -> None:
    page = _page(runs, tmp_path)
    assert "<td>too short to tell the language</td>" in page
    assert "scores are missing:" not in page


def test_a_leaderboard_remarks_that_a_part_of_the_rows_was_run(tmp_path: Path) -> None:
    for model in ("one", "two"):
        write_full_run(tmp_path / model, model, tasks=1)
    file = next((tmp_path / "two").rglob("results_*.json"))
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**content, "n-samples": {"qa_00": {"original": 125, "effective": 24}}}), "utf-8")
    board = next(board for board in page_data([tmp_path]).boards if board.metric == "match")
    assert {entry.run: entry.remark for entry in board.entries} == {"one": "", "two": "24 of 125 rows"}
