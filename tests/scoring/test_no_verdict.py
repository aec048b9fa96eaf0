"""Answers without a verdict, by language: in results, and as marks where two runs are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import GateRules, compare, gate, write_baseline
from mrag_eval.scoring import PanelShare, RowRecord, panel_line, summarize
from tests.report.runs import row, write_run


def judged(number: int, language: str, votes: dict[str, Any], verdict: bool | None, outcome: str) -> dict[str, Any]:
    one = row(number, language, **({} if verdict is None else {"judge_correct": float(verdict)}))
    one["judge"] = {"verdict": verdict, "outcome": outcome, "disagreement": 0.0, "votes": votes}
    return one if verdict is not None else one | {"unscored": {"judge_correct": "no majority"}}


def planted() -> list[dict[str, Any]]:
    """Plant the votes of judges a and b. German: ten verdicts of both. Amharic: ten answers were asked about; b is
    silent on two, one of which the panel leaves undecided, as a is silent, too; an eleventh was declined, and nobody
    was asked.
    """
    both = {"a": True, "b": True}
    rows = [judged(i, "de", both, True, "unanimous") for i in range(10)]
    rows += [judged(i, "am", both, True, "unanimous") for i in range(8)]
    rows += [judged(8, "am", {"a": True, "b": "timeout"}, True, "unanimous")]
    rows += [judged(9, "am", {"a": "unreadable", "b": "timeout"}, None, "unjudged")]
    return [*rows, judged(10, "am", {}, False, "declined")]


def test_shares_without_a_verdict_by_language() -> None:
    """Of ten Amharic answers the panel and a leave one undecided, b two (Wilson: .057 to .510)."""
    share = PanelShare({"a": "m", "b": "n"}, {}, None)
    records = [RowRecord.from_dict(one) for one in planted()]
    assert summarize(records).judge is None  # without a share there was no panel
    table = summarize([replace(records[0], panel=share), *records[1:]]).judge
    assert table is not None
    assert {lang: (one.value, one.n) for lang, one in table.no_verdict.items()} == {"am": (0.1, 10), "de": (0.0, 10)}
    b = table.judges["b"].no_verdict
    assert {lang: (one.value, one.n) for lang, one in b.items()} == {"am": (0.2, 10), "de": (0.0, 10)}
    assert b["am"].low == pytest.approx(0.0567, abs=5e-5)
    assert b["am"].high == pytest.approx(0.5098, abs=5e-5)
    # a tenth is not more than a tenth
    assert {lang: list(seats) for lang, seats in table.marked_languages.items()} == {"am": ["b"]}
    assert "many rows without a verdict in am" in panel_line(table)


@pytest.mark.parametrize("kept", ["runs", "baseline file"])
def test_a_language_that_a_judge_is_silent_about_is_marked(tmp_path: Path, kept: str) -> None:
    first = write_run(tmp_path / "a", {"qa": planted()})
    second = write_run(tmp_path / "b", {"qa": planted()})
    why = "am: no verdict of b on 2 of 10 answers"
    found = {one.language: one.marked for one in compare([first], [second]).differences}
    assert found == {
        None: f"{why} in the first run; {why} in the second run",
        "de": None,
        "am": f"{why} in the first run; {why} in the second run",
    }
    if kept == "baseline file":
        write_baseline([first], tmp_path / "base.json")
        first = tmp_path / "base.json"
    rules = GateRules.model_validate(
        {
            "min_n": 2,
            "rules": [{"metric": "judge_correct", "max_unpaired": 0.5, "per_language": {"max_drop": 0.1, "min_n": 2}}],
        }
    )
    checks = gate([first], [second], rules).checks
    assert {check.language for check in checks} == {None, "de", "am"}
    for check in checks:
        expected = None if check.language == "de" else f"{why} in the baseline; {why} in the candidate"
        assert check.marked == expected
