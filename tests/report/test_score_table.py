"""The text table of scores: nothing is left out of it without a word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from mrag_eval import load_results
from mrag_eval.cli import Session, app
from mrag_eval.report import Cell, Row, Table, page_data, render, write_tables
from mrag_eval.report.page._section import Listing
from mrag_eval.report.page.sections._unscored import SECTION
from tests.report.runs import row, write_full_run, write_run
from tests.report.test_policies import leaf as policy_leaf
from tests.report.test_policies import measure as policy_measure
from tests.report.test_policies import write as write_policy
from tests.tables import single_spaced
from tests.worlds.measured import with_all_records

_SCORE = {"value": 0.25, "low": 0.1, "high": 0.5, "n": 20, "method": "Wilson"}


def _report(folder: Path, *flags: str) -> str:
    """Return every metric as the command prints it, each note in one line; other ``flags`` replace that choice."""
    asked = flags or ("--metrics", "all")
    done = CliRunner().invoke(app, ["report", str(folder), *asked], obj=Session(), env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if not line.startswith("next") and "latex" not in flags]
    assert all(cell_len(line) <= 100 for line in lines)
    return single_spaced(done.stdout.replace("\n  ", " "))


def _run(folder: Path, scores: Mapping[str, Any], **config: Any) -> Path:
    return write_run(folder, {"qa": [row(0)]}, config={"scores": {"rows": 20, **scores}, **config})


def _printed(*args: str) -> str:
    """Return what a command prints where no terminal is known."""
    done = CliRunner().invoke(app, [*args], obj=Session())
    assert done.exit_code == 0, done.output
    # commands to copy stay whole
    lines = [line for line in done.stdout.splitlines() if not line.startswith(("next", "  "))]
    assert not [line for line in lines if cell_len(line) > 100], args
    return done.stdout


def test_no_line_of_the_policies_exceeds_what_is_taken_for_the_width(tmp_path: Path) -> None:
    codes = ("ar", "de", "en", "hi", "th", "zh")
    pairs = {f"{asked}->{other}": 0.5 for asked in codes for other in codes}
    leaves = {
        f"policy_{i}": policy_leaf(0.5, 0.25, mode=mode) for i, mode in enumerate(("all", "balanced", "gold_lang"))
    }
    for one in leaves.values():
        one["scores"]["metrics"]["hit@20"] = policy_measure(pairs, 0.5, 0.25)
    run = write_policy(tmp_path / "results_1.json", leaves)
    assert _printed("report", str(run), "--layout", "policies").count("|") > 100


def test_no_line_of_a_report_or_comparison_exceeds_what_is_taken_for_the_width(tmp_path: Path) -> None:
    runs = [
        str(write_full_run(tmp_path / name, f"a-maker/a-name-of-a-model-{name}", right=right))
        for name, right in (("one", False), ("two", True))
    ]
    for flags in ((), ("--metrics", "all"), ("--metrics", "char3gram_recall")):
        for places in (runs, runs[:1]):
            _printed("report", *places, *flags)
    for flags in (("--rows",), ("--equivalent", "0.05")):
        _printed("compare", *runs, *flags)
    assert "second minus first" in _printed("compare", *runs)


def test_a_metric_without_any_scored_row_keeps_its_column_and_says_why(tmp_path: Path) -> None:
    scores = {"metrics": {"match": _SCORE}, "unscored": {"correct_language": {"the detector does not know Hausa": 20}}}
    text = _report(_run(tmp_path, scores))
    assert "| task | from | match | correct_language |" in text
    assert "qa, blank: qa: 20 rows unscored (the detector does not know Hausa)" in text


def test_failures_missing_answers_and_bounds_are_shown(tmp_path: Path) -> None:
    failed = {"value": 0.2, "low": 0.1, "high": 0.4, "n": 20, "method": "Wilson"}
    scores = {
        "metrics": {"match": {**_SCORE, "n": 16, "failed": 4, "bounds": [0.2, 0.4]}},
        "unscored": {"match": {"plan failed (server)": 4}},
        "failures": {"plan": {"server": 3, "timeout": 1}},
        "outcomes": {"refusal": 2},
        "by_language": {"en": {"failed": failed, "failures": {"plan": {"server": 3}}, "outcomes": {"refusal": 2}}},
    }
    folder = _run(tmp_path, scores)
    text = _report(folder)
    assert (
        "match: 4 rows unscored (plan failed (server)); with all of them wrong 20.0, with all of them right 40.0"
        in text
    )
    assert "no headline and no rank: 4 of 20 rows failed, more than 5%" in text
    assert "failed: plan of 4 (3 server, 1 timeout); languages with many: en 20%" in text
    assert "no answer by the model, counted as wrong: 2 refusal" in text
    listings = (block for block in SECTION.blocks if isinstance(block, Listing))
    (missing,), counted, unread = (block.points(page_data([folder])) for block in listings)
    assert unread == []
    assert missing["bounds"] == "20.0 to 40.0; no headline: 4 of 20 rows failed, more than 5%"
    assert [(p["language"], p["step"], p["reason"], p["rows"], p["failed"]) for p in counted] == [
        ("en", "plan", "server", 3, "20.0 [10.0, 40.0], many"),
        ("en", "no answer", "refusal", 2, "20.0 [10.0, 40.0], many"),
    ]


def test_a_run_of_a_part_of_the_rows_says_so_next_to_its_scores(tmp_path: Path) -> None:
    folder = _run(tmp_path, {"metrics": {"match": _SCORE}})
    file = next(folder.rglob("results_*.json"))
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**content, "n-samples": {"qa": {"original": 1190, "effective": 20}}}), "utf-8")
    assert "| qa [20 of 1,190 rows] | unnamed model | 25.0 [10.0, 50.0] (n=20) |" in _report(folder)


def test_a_later_run_of_a_part_of_the_rows_does_not_replace_a_whole_one(tmp_path: Path) -> None:
    write_run(tmp_path / "whole", {"qa": [row(0)]}, config={"scores": {"rows": 1190, "metrics": {"match": _SCORE}}})
    _run(tmp_path / "part", {"metrics": {"match": {**_SCORE, "value": 0.5}}})
    for name, rows, date in (("whole", 1190, 1.0), ("part", 20, 2.0)):
        file = next((tmp_path / name).rglob("results_*.json"))
        content = json.loads(file.read_text("utf-8"))
        counts = {"n-samples": {"qa": {"original": 1190, "effective": rows}}, "date": date}
        file.write_text(json.dumps(with_all_records({**content, **counts})), "utf-8")
    text = _report(tmp_path)
    assert "| qa | unnamed model | 25.0 [10.0, 50.0] (n=20) |" in text
    assert "| qa [20 of 1,190 rows] | unnamed model | 50.0 [10.0, 50.0] (n=20) |" in text
    frame = load_results(tmp_path)
    assert sorted(frame["value"]) == [0.25, 0.5]


def test_scores_by_pair_of_languages_are_in_the_text_table(tmp_path: Path) -> None:
    text = _report(write_full_run(tmp_path))
    assert "### match by pair of languages · qa_one\n" in text
    assert "| question | relevant document | n | match |\n" in text
    assert "| ar | en | 23 | 30.0 [20.0, 50.0] |" in text


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (2, 9), (12, 3), (20, 24), (3, 0)])
@pytest.mark.parametrize("width", [40, 100, 200])
def test_a_table_keeps_every_figure_within_the_width(rows: int, columns: int, width: int) -> None:
    """Turned or cut, each figure stands once, on the line and below the head of what it is of."""
    names = [f"метрика{i}" for i in range(columns)]
    made = tuple(
        Row((f"任务{i}", "x"), "model", tuple(Cell(100.0 * i + j, None, n=1) for j in range(columns)))
        for i in range(rows)
    )
    text = render([Table("t", "T", ("task", "language"), tuple(names), made, 0)], "md", width)
    found = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert all(cell_len(line) <= max(width, 60) for line in lines)
        grid = [[part.strip() for part in line.strip("|").split("|")] for line in lines if "---" not in line]
        for line in grid[1:]:
            for head, figure in zip(grid[0], line, strict=True):
                if "(n=1)" in figure:
                    assert (frozenset((head, line[0])), figure) not in found.items()
                    found[frozenset((head.split(" · ")[0], line[0].split(" · ")[0]))] = figure
    assert len(found) == rows * columns
    for i in range(rows):
        for j, name in enumerate(names):
            wanted = f"{100 * i + j} (n=1)"
            assert wanted in (found.get(frozenset((name, f"任务{i}"))), found.get(frozenset((name, "x"))))


@pytest.mark.parametrize("metrics", [1, 9])
def test_a_score_has_its_interval_in_the_text_table_however_wide(tmp_path: Path, metrics: int) -> None:
    text = _report(_run(tmp_path, {"metrics": {f"metric_{i}": _SCORE for i in range(metrics)}}))
    assert text.count("| 25.0 [10.0, 50.0] (n=20) ") == metrics


def test_a_score_without_an_interval_has_none_in_the_text_table(tmp_path: Path) -> None:
    score = {"value": 0.25, "n": 20, "reason": "every language needs two rows"}
    text = _report(_run(tmp_path, {"metrics": {"match": score}}))
    assert "| 25.0 (n=20) |" in text


def test_a_run_of_one_pair_of_languages_has_no_table_of_pairs(tmp_path: Path) -> None:
    by = {"pair": {"ar->en": _SCORE}}
    assert "pair of languages" not in _report(_run(tmp_path, {"metrics": {"match": {**_SCORE, "by": by}}}))


def _languages(value: float) -> Mapping[str, Any]:
    cells = {code: {**_SCORE, "value": value / 2 if code == "ar" else value, "n": 10} for code in ("ar", "en")}
    pairs = {"ar->en": _SCORE, "en->en": _SCORE, "ar->ar": _SCORE}
    return {"metrics": {"match": {**_SCORE, "value": value, "by": {"query_lang": cells, "pair": pairs}}}}


def test_of_one_task_the_table_has_languages_down_and_the_pairs_follow(tmp_path: Path) -> None:
    more = {f"metric_{i}": _SCORE for i in range(9)}
    scores = {**_languages(0.5), "unscored": {"correct_language": {"the detector does not know Hausa": 20}}}
    scores["metrics"] = {**scores["metrics"], **more}
    text = _report(_run(tmp_path, scores), "--format", "md")
    # as many metrics as fit, the headline first, and n once a row
    assert "| language | n | match | metric_0 | metric_1 | metric_2 |\n" in text
    assert "| all | 20 | 50.0 [10.0, 50.0] |" in text
    assert "| ar | 25.0 [10.0, 50.0] (n=10) | |" in text or "| ar | 10 | 25.0 [10.0, 50.0] |" in text
    assert "no row has correct_language: the detector does not know Hausa (qa)" in text
    assert "### match by pair of languages\n" in text
    assert "| ar | en | 20 | 25.0 [10.0, 50.0] |" in text
    assert "mrag-eval report" in text.splitlines()[-1]
    assert "| language | n | metric_5 |" in _report(tmp_path, "--metrics", "metric_5")


@pytest.mark.parametrize(("tasks", "head"), [(1, "language"), (12, "task")])
def test_systems_stand_side_by_side_with_their_headline_alone(tasks: int, head: str, tmp_path: Path) -> None:
    for name, value in (("one", 0.5), ("two", 0.75)):
        rows = {f"qa{i}": [row(0)] for i in range(tasks)}
        scores = {"rows": 20, **_languages(value), "failures": {"plan": {"server": 3}}}
        folder = write_run(tmp_path / name, rows, config={"scores": scores})
        for file in folder.rglob("results_*.json"):
            file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "model_name": name}), "utf-8")
    text = _report(tmp_path, "--format", "md")
    assert f"| {head} | n | one | two |" in text
    assert text.count("25.0 [10.0, 50.0] | 37.5 [10.0, 50.0]") == (tasks == 1)
    assert text.count("| 20 | 50.0 [10.0, 50.0] | 75.0 [10.0, 50.0] |") == tasks
    # what is said of all is said once
    assert text.count("failed: plan of 3 (3 server)") == 1
    latex = _report(tmp_path, "--format", "latex")
    assert "\\toprule" in latex
    assert latex.count("\\caption{Scores by match") == 1
    assert r"\textbf" not in latex


def test_a_metric_that_no_run_has_is_refused_with_those_there_are(tmp_path: Path) -> None:
    _run(tmp_path, {"metrics": {"match": _SCORE}})
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--metrics", "matc"], obj=Session())
    assert "--metrics: no run has 'matc'; did you mean 'match'?" in str(done.exception)


def test_a_run_without_any_metric_has_a_table_without_columns(tmp_path: Path) -> None:
    folder = _run(tmp_path, {"metrics": {}})
    for flags in ((), ("--format", "latex")):
        done = CliRunner().invoke(app, ["report", str(folder), *flags], obj=Session())
        assert done.exit_code == 0, done.output
        assert "qa" in done.stdout


def test_a_layout_takes_no_metrics(tmp_path: Path) -> None:
    words = ["report", str(_run(tmp_path, {"metrics": {"match": _SCORE}})), "--layout", "xrag", "--metrics", "match"]
    done = CliRunner().invoke(app, words, obj=Session())
    assert done.exit_code == 2
    assert "cannot be combined with --layout" in single_spaced(done.output.replace("\n", " "))


def test_a_layout_is_written_as_a_page_too(tmp_path: Path) -> None:
    """Its figures, notes and heads are those of the printed table."""
    table = Table("t", "A <b>", ("task",), ("match",), (Row(("qa",), "this run", (Cell(25.0, n=3),), ("k=1",)),), 1)
    write_tables([table], tmp_path / "page.html", "Layout")
    page = (tmp_path / "page.html").read_text("utf-8")
    for part in ("A &lt;b&gt;", "25.0 (n=3)", "this run [1]", "[1] k=1", '<th scope="col">match</th>'):
        assert part in page
    assert "<script" not in page


def test_a_metric_that_was_asked_for_and_is_left_out_is_named(tmp_path: Path) -> None:
    asked = ["match", "hit@2", "mrr@2", "rerank_hit@2"]
    scores = {"metrics": {"match": _SCORE}}
    text = _report(_run(tmp_path, scores, metrics=asked, retrieval={"mode": "given"}))
    assert "- hit@2, mrr@2, rerank_hit@2: not measured, as mode given searches no corpus (qa)" in text


def test_every_table_of_a_judged_metric_names_who_decides_it(tmp_path: Path) -> None:
    """Also where two systems were judged by others, and in the captions of LaTeX, whose tables stand alone."""
    cell = {"value": 0.5, "low": 0.2, "high": 0.8, "n": 9}
    pairs = {"by": {"pair": {f"{one}->{two}": cell for one in ("de", "en") for two in ("de", "en")}}}
    for system, judge in (("a", "judge-one"), ("b", "judge-two")):
        scores = {
            "rows": 9,
            "metrics": {"judge_correct": {**cell, **pairs}},
            "judge": {"judges": {judge: {"model": judge, "correct": cell}}},
        }
        rows = [row(i) for i in range(9)]
        write_run(tmp_path / system, {"qa": rows}, config={"scores": scores})
        (path,) = (tmp_path / system).rglob("results_*.json")
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "model_name": system}), "utf-8")
    text = _report(tmp_path)
    for judge in ("judge-one", "judge-two"):
        assert text.count(f"judge_correct: decided by {judge}") == 2
    captions = [line for line in _report(tmp_path, "--format", "latex").splitlines() if line.startswith("\\caption")]
    assert [len({f"judge-{n}" for n in ("one", "two") if f"decided by judge-{n}" in one}) for one in captions] == [
        2,
        1,
        1,
    ]
