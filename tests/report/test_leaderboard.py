"""Leaderboards: only comparable systems are ranked together, and ranks are shared unless paired tests differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import deep_merge
from mrag_eval.report import page_data
from mrag_eval.report.tables._leaderboard import Board, boards
from tests.report.runs import CONFIG, row
from tests.worlds.measured import with_all_records

LANGUAGES = ("en", "ha", "hi")


def _rows(rate: float, n: int = 20, languages: Sequence[str] = LANGUAGES, **more: float) -> list[dict[str, Any]]:
    """Return ``n`` rows in each language, of which the first ``rate`` are right."""
    return [row(i, lang, acc=float(i < rate * n), **more) for lang in languages for i in range(n)]


def _write(folder: Path, model: str, tasks: Mapping[str, Sequence[Mapping[str, Any]]], **config: Any) -> Path:
    home = folder / model / str(len(list(folder.rglob("results_*"))))
    home.mkdir(parents=True)
    date = "2026-01-01T00-00-00.000000"
    configs = {}
    for task, rows in tasks.items():
        lines = [json.dumps({"doc": {"id": r["row"]}, "rows": r}) + "\n" for r in rows]
        (home / f"samples_{task}_{date}.jsonl").write_text("".join(lines), "utf-8")
        names = {name for r in rows for name in r["values"]}
        scores = {"rows": len(rows), "metrics": {name: {"value": 0.5, "n": len(rows)} for name in names}}
        scores["query_langs"] = dict.fromkeys((r["cell"]["query_lang"] for r in rows), 1)
        configs[task] = deep_merge(CONFIG, {"scores": scores, **config})
    results = {"configs": configs, "model_name": model}
    (home / f"results_{date}.json").write_text(json.dumps(with_all_records(results)), "utf-8")
    return folder


def _boards(folder: Path) -> dict[str, Board]:
    return {board.metric: board for board in boards(page_data([folder]).systems)}


def test_ranks_are_ranges(tmp_path: Path) -> None:
    for model, rate in (("weak", 0.2), ("good", 0.8), ("alike", 0.75)):
        _write(tmp_path, model, {"qa": _rows(rate)}, data={"benchmark": "blend"})
    board = _boards(tmp_path)["acc"]
    assert [(e.run, e.best, e.worst) for e in board.entries] == [("good", 1, 2), ("alike", 1, 2), ("weak", 3, 3)]
    good, alike, _ = board.entries
    assert good.score.value == pytest.approx(0.8)
    assert good.behind is None
    # 20 rows per language; only "alike" has one of them wrong
    assert alike.behind is not None
    assert alike.behind.value == pytest.approx(-0.05)
    assert (board.rows, board.languages, board.tiers) == (60, LANGUAGES, ("low", "high"))
    assert good.parts["ha"].n == 20
    # Hausa is CORAL's one low language here, English its one high
    assert good.parts["low"].value == good.parts["ha"].value


def test_the_mean_is_over_languages_not_rows(tmp_path: Path) -> None:
    rows = [*_rows(1.0, 90, ["en"]), *_rows(0.0, 10, ["ha"])]
    _write(tmp_path, "a", {"qa": rows})
    _write(tmp_path, "b", {"qa": rows})
    assert _boards(tmp_path)["acc"].entries[0].score.value == pytest.approx(0.5)


def test_modes_are_systems_and_tasks_are_parts_of_one(tmp_path: Path) -> None:
    for mode in ("all", "qlang"):
        parts = {f"qa_{mode}_{lang}": _rows(0.5, languages=[lang]) for lang in LANGUAGES}
        _write(tmp_path, "a", parts, retrieval={"mode": mode})
    board = _boards(tmp_path)["acc"]
    assert [(e.mode, e.score.n, e.best, e.worst) for e in board.entries] == [("all", 60, 1, 2), ("qlang", 60, 1, 2)]


def test_two_ways_of_asking_the_same_questions_are_two_systems(tmp_path: Path) -> None:
    _write(tmp_path, "a", {"qa_direct": _rows(0.5)}, prompt={"answer": None})
    _write(tmp_path, "a", {"qa_cite": _rows(0.9)}, prompt={"answer": "citation"})
    board = _boards(tmp_path)["acc"]
    assert {e.mode for e in board.entries} == {"qlang (qa_cite)", "qlang (qa_direct)"}
    ranked = [e for e in board.entries if e.best is not None]
    # their prompts differ, so they are not ranked together
    assert len(ranked) == 0
    assert [e.remark for e in board.entries if "settings" in e.remark] == [
        "other settings (here | on the board): prompt.answer not set | citation"
    ]


def test_other_settings_and_other_questions_are_not_ranked(tmp_path: Path) -> None:
    for model in ("a", "b"):
        _write(tmp_path, model, {"qa": _rows(0.5)})
    _write(tmp_path, "more-passages", {"qa": _rows(0.9)}, retrieval={"k": 10})
    _write(tmp_path, "fewer-rows", {"qa": _rows(0.9, 10)})
    _write(tmp_path, "other-data", {"qa": _rows(0.9)}, source={"sha256": "def"})
    _write(tmp_path, "bare", {"qa": _rows(0.1)}, retrieval={"mode": "no_ir", "k": None})
    board = _boards(tmp_path)["acc"]
    assert {e.run for e in board.entries if e.best is not None} == {"a", "b", "bare"}
    remarks = {e.run: e.remark for e in board.entries}
    assert remarks["more-passages"] == "other settings (here | on the board): retrieval.k 10 | 5"
    assert remarks["other-data"] == "other settings (here | on the board): source.sha256 def | abc"
    assert remarks["fewer-rows"] == "other questions: 30 of the board's 60 shared"
    assert board.entries[-1].best is None


def test_unscored_rows_are_counted_and_their_languages_left_out(tmp_path: Path) -> None:
    _write(tmp_path, "a", {"qa": _rows(0.5)})
    rows = _rows(0.5)
    for each in rows:
        if each["cell"]["query_lang"] == "hi" or each["row"] == "r3":
            each["unscored"] = {"acc": "no verdict"}
            del each["values"]["acc"]
    _write(tmp_path, "b", {"qa": rows})
    board = _boards(tmp_path)["acc"]
    assert board.left_out == ("hi",)
    assert {e.run: (e.score.n, e.unscored) for e in board.entries} == {"a": (39, 0), "b": (39, 1)}


def test_a_system_with_many_failed_rows_has_no_rank(tmp_path: Path) -> None:
    def rows(failed: int) -> list[dict[str, Any]]:
        found = _rows(0.5)
        for one in found[:failed]:
            one |= {"values": {}, "unscored": {"acc": "answer failed (server)"}}
        return found

    # 3 of 60 rows are five percent, 4 are more
    for model, failed in (("a", 0), ("b", 3), ("c", 4)):
        metrics = {"acc": {"value": 0.5, "n": 60 - failed, "failed": failed}}
        scores = {"rows": 60, "metrics": metrics, "query_langs": dict.fromkeys(LANGUAGES, 20)}
        _write(tmp_path, model, {"qa": rows(failed)}, scores=scores)
    board = _boards(tmp_path)["acc"]
    assert {e.run: e.best is not None for e in board.entries} == {"a": True, "b": True, "c": False}
    (last,) = (e for e in board.entries if e.run == "c")
    assert last.remark == "not ranked: qa: 4 of 60 rows failed, more than 5%"
    assert last.cases is not None
    assert board.rows == 57


def test_a_mean_over_tasks_needs_them_all(tmp_path: Path) -> None:
    for model in ("a", "b"):
        _write(tmp_path, model, {"qa_en": _rows(0.5, languages=["en"]), "qa_ha": _rows(0.5, languages=["ha"])})
    (path,) = (tmp_path / "b").rglob("results_*.json")
    content = json.loads(path.read_text("utf-8"))
    del content["configs"]["qa_ha"]["scores"]["metrics"]["acc"]
    content["configs"]["qa_ha"]["scores"]["unscored"] = {"acc": {"answer failed (server)": 20}}
    path.write_text(json.dumps(content), "utf-8")
    for samples in tmp_path.rglob("samples_*.jsonl"):
        samples.unlink()
    entries = {e.run: e for e in _boards(tmp_path)["acc"].entries}
    assert entries["a"].score.value == 0.5
    assert entries["a"].remark.endswith("mean of 2 tasks")
    assert entries["b"].score.value is None
    assert entries["b"].remark.endswith("no mean, as qa_ha has no value")


def test_less_can_be_better_and_some_scores_have_no_better(tmp_path: Path) -> None:
    _write(tmp_path, "a", {"qa": _rows(0.5, language_mix=0.9, declined=0.1)})
    _write(tmp_path, "b", {"qa": _rows(0.5, language_mix=0.2, declined=0.8)})
    found = _boards(tmp_path)
    assert [(e.run, e.best) for e in found["language_mix"].entries] == [("b", 1), ("a", 2)]
    assert {e.best for e in found["declined"].entries} == {None}
    assert found["declined"].entries[0].remark == "more is neither better nor worse: not ranked"


def test_without_samples_a_score_is_listed_without_a_rank(tmp_path: Path) -> None:
    _write(tmp_path, "a", {"qa": _rows(0.5)})
    _write(tmp_path, "b", {"qa": _rows(0.5)})
    for path in (tmp_path / "b").rglob("samples_*"):
        path.unlink()
    entry = _boards(tmp_path)["acc"].entries[-1]
    assert (entry.run, entry.best, entry.score.value) == ("b", None, 0.5)
    assert entry.remark == "no samples (--log_samples), so no test"


def test_one_system_makes_no_leaderboard(tmp_path: Path) -> None:
    assert _boards(_write(tmp_path, "a", {"qa": _rows(0.5)})) == {}


def test_rows_that_all_change_alike_or_not_at_all_have_an_interval(tmp_path: Path) -> None:
    for model, rate in (("first", 1.0), ("same", 1.0), ("last", 0.0)):
        _write(tmp_path, model, {"qa": _rows(rate)})
    behind = {e.run: e.behind for e in _boards(tmp_path)["acc"].entries}
    assert behind["first"] is None
    # each of three languages of 20 rows reaches z^2 / (20 + z^2) both ways, as Wilson's interval of as many rows of 1
    # and -1 does as are worth 20^2 / z^2 + 2 20; together they are three times as many
    z2 = 1.959964**2
    reach = math.sqrt(z2 / (3 * (20**2 / z2 + 40) + z2))
    same = behind["same"]
    assert same is not None
    assert (same.value, same.low, same.high) == pytest.approx((0.0, -reach, reach), abs=1e-6)
    last = behind["last"]
    assert last is not None
    # all 60 rows lost: Wilson's limit, where each of three languages gives 2/3 of a row of its 20 for its own share
    assert last.value == last.low == -1.0
    rows = 60 * (1 - (1 - 1 / 3) / 20)
    assert last.high == pytest.approx(2 * z2 / (rows + z2) - 1, abs=1e-6)


def test_the_order_of_a_leaderboard_agrees_with_its_ranks(tmp_path: Path) -> None:
    """ "picky" has 18 of the 24 rows that it scored (.75), "full" 30 of all 50 (.60), but 24 of those 24."""
    rows = {name: _rows(1.0, 50, ["en"]) for name in ("picky", "full")}
    for i in range(50):
        rows["full"][i]["values"]["acc"] = float(i < 24 or i >= 44)
        rows["picky"][i]["values"]["acc"] = float(i < 18)
        if i >= 24:
            rows["picky"][i]["unscored"] = {"acc": "no verdict"}
            del rows["picky"][i]["values"]["acc"]
    for name in rows:
        _write(tmp_path, name, {"qa": rows[name]})
    board = _boards(tmp_path)["acc"]
    # six rows differ, all one way: 2 of 2^6, so that "full" is first and "picky" second
    assert [(e.run, e.score.value, e.best) for e in board.entries] == [("full", 1.0, 1), ("picky", 0.75, 2)]
    assert (board.rows, [e.score.n for e in board.entries]) == (24, [24, 24])
    assert [(e.unscored, e.cases) for e in board.entries] == [(0, None), (26, pytest.approx((18 / 50, 44 / 50)))]


def test_questions_of_a_group_count_as_one_in_the_tests(tmp_path: Path) -> None:
    for model, rate in (("a", 1.0), ("b", 0.0)):
        rows = _rows(rate)
        for each in rows:
            each["group"] = each["row"][-1]
        _write(tmp_path, model, {"qa": rows})
    board = _boards(tmp_path)["acc"]
    # ids end in the digits 0 to 9: ten groups, and 2 of 2^10 swaps are as extreme
    assert (board.rows, board.groups) == (60, 10)
    assert [(e.best, e.worst) for e in board.entries] == [(1, 1), (2, 2)]
    few = tmp_path / "few"
    for model, rate in (("a", 1.0), ("b", 0.0)):
        rows = _rows(rate)
        for each in rows:
            each["group"] = str(int(each["row"][-1]) % 4)
        _write(few, model, {"qa": rows})
    # four groups: 2 of 2^4
    assert [(e.best, e.worst) for e in _boards(few)["acc"].entries] == [(1, 2), (1, 2)]
