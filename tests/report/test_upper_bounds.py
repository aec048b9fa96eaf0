"""Upper bounds: what no system could know is marked in every table and export, and is ranked with nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import MODES, deep_merge, upper_bound
from mrag_eval.report import (
    EXPORTS,
    Options,
    compare,
    comparison_text,
    export,
    page_data,
    read_results,
    render,
    score_tables,
    write_report,
)
from mrag_eval.report.tables._leaderboard import Board, boards
from tests.report.runs import CONFIG, row, with_record

# The settings of an upper bound -> why it is one.
BOUNDS: Mapping[str, tuple[dict[str, Any], str]] = {
    "oracle": ({"mode": "oracle"}, "the passages shown are those known to answer"),
    "gold_lang": ({"mode": "gold_lang"}, "the search is told the language of the relevant document"),
    "gold alone": ({"mode": "given", "given": {"subset": "gold"}}, "the passages shown are those known to answer"),
    "gold's language": (
        {"mode": "all", "languages": ["gold"]},
        "the search is told the language of the relevant document",
    ),
}
MODEL = "the model replies with the reference answer"


def write(folder: Path, model: str, rate: float, retrieval: Mapping[str, Any], kind: str = "hf") -> Path:
    """Write a run over 40 rows, of which the first ``rate`` are right and have a relevant passage in the prompt."""
    home, date = folder / model, "2026-01-01T00-00-00.000000"
    home.mkdir(parents=True)
    rows = [row(i, **{"match": float(i < rate * 40), "shown@k": float(i < rate * 40)}) for i in range(40)]
    lines = [json.dumps({"doc": {"id": one["row"]}, "rows": one, "filtered_resps": ["x"]}) + "\n" for one in rows]
    (home / f"samples_qa_{date}.jsonl").write_text("".join(lines), "utf-8")
    metrics = {name: {"value": rate, "n": 40} for name in ("match", "shown@k")}
    scores = {"rows": 40, "metrics": metrics, "query_langs": {"en": 40}}
    config = deep_merge(CONFIG, {"retrieval": dict(retrieval), "scores": scores, "metrics": ["match", "shown@k"]})
    content = {
        "configs": {"qa": with_record("qa", config, sorted(one["row"] for one in rows))},
        "model_name": model,
        "date": 1_767_225_600.0,
        "config": {"model": kind, "model_args": f"pretrained={model}"},
    }
    (home / f"results_{date}.json").write_text(json.dumps(content), "utf-8")
    return home


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_is_a_bound_if_it_is_told_what_is_relevant(mode: str) -> None:
    expected = {"oracle", "gold_lang"}
    assert (upper_bound({"mode": mode}) is not None) == (mode in expected)
    assert upper_bound({"mode": mode}, "oracle_answer") == f"upper bound: {MODEL}"
    assert upper_bound({"mode": mode}, "hf") == upper_bound({"mode": mode})
    # its languages are chosen by the block
    assert (upper_bound({"mode": mode, "languages": ["en"]}) is not None) == (mode == "oracle")


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_below_the_ranks(name: str, tmp_path: Path) -> None:
    retrieval, why = BOUNDS[name]
    write(tmp_path, "weak", 0.4, {"mode": "all"})
    write(tmp_path, "good", 0.9, {"mode": "all"})
    write(tmp_path, "told", 1.0, retrieval)
    found = {board.metric: board for board in boards(page_data([tmp_path]).systems)}
    for metric in ("match", "shown@k"):
        entries = found[metric].entries
        assert [(e.run, e.best, e.worst) for e in entries] == [("good", 1, 1), ("weak", 2, 2), ("told", None, None)]
        assert entries[2].remark == f"not ranked: qa: upper bound: {why}"
        assert entries[2].score.value == 1.0
        assert (entries[1].behind is not None, entries[0].behind) == (True, None)


def test_a_model_that_knows_the_answer_bounds_what_depends_on_answers(tmp_path: Path) -> None:
    for model, rate in (("weak", 0.4), ("good", 0.9)):
        write(tmp_path, model, rate, {"mode": "all"})
    write(tmp_path, "told", 1.0, {"mode": "all"}, kind="oracle_answer")
    found: dict[str, Board] = {board.metric: board for board in boards(page_data([tmp_path]).systems)}
    last = found["match"].entries[-1]
    assert (last.run, last.best, last.remark) == ("told", None, f"not ranked: qa: upper bound: {MODEL}")
    # its passages were retrieved as anybody's
    assert [(e.run, e.best, e.worst) for e in found["shown@k"].entries] == [
        ("told", 1, 2),
        ("good", 1, 2),
        ("weak", 3, 3),
    ]
    (file,) = read_results([tmp_path / "told"])
    leaf = file.leaves["qa"]
    assert (leaf.no_headline("match"), leaf.no_headline("shown@k")) == (f"upper bound: {MODEL}", None)


def exported(folder: Path, runs: Path) -> dict[str, str]:
    """Return everything that is written of the runs, by export."""
    out = {}
    for name in EXPORTS:
        options = Options(output=folder / name, dataset="me/bench", metrics=("match", "shown@k"))
        made = export([runs], name, options)
        out[name] = "\n".join(path.read_text("utf-8") for path in made.files)
    return out


def test_every_export_marks_it_and_has_no_headline_of_it(tmp_path: Path) -> None:
    plain, told = write(tmp_path / "a", "m", 0.9, {"mode": "all"}), write(tmp_path / "b", "m", 1.0, {"mode": "oracle"})
    for name, text in exported(tmp_path / "plain", plain).items():
        assert "upper bound" not in text, name
    texts = exported(tmp_path / "told", told)
    for name, text in texts.items():
        # a table in LaTeX says it beneath, beside the mark of the task
        label = (
            "upper bound: the passages shown are those known to answer: qa [1]"
            if name == "latex"
            else "qa (upper bound)"
        )
        assert label in text.replace(r"\_", "_"), name
    # the id of a headline is the task alone
    assert "task_id: qa (upper bound).match" in texts["eval-results"]
    assert "task_id: qa (upper bound)\n" not in texts["eval-results"]
    assert '"main_score": null' in texts["mteb"]
    assert "upper bound: the passages shown are those known to answer" in texts["csv"]


def test_every_table_marks_it(tmp_path: Path) -> None:
    plain = write(tmp_path / "a", "m", 0.9, {"mode": "all"})
    told = write(tmp_path / "b", "m", 1.0, {"mode": "gold_lang"})
    tables = score_tables([plain, told])
    for form in ("md", "csv", "json"):
        text = render(tables, form)
        assert text.count("qa (gold_lang) [upper bound]") >= 1, form
        assert "qa (all) [upper bound]" not in text, form
    why = "upper bound: the search is told the language of the relevant document; no headline, no rank"
    assert f"- {why} (qa (gold_lang) [upper bound])" in render(tables)
    page = tmp_path / "page.html"
    write_report([plain, told], page)
    assert "qa (gold_lang) [upper bound]" in page.read_text("utf-8")
    found = compare([plain], [told], differs=["all"])
    assert r"qa [all rows \| upper bound]" in comparison_text(found)
