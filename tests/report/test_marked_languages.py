"""Languages of which many rows failed are marked wherever two runs are compared, whichever run and rule it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import compare, comparison_text, gate, gate_lines, gate_markdown, write_baseline
from mrag_eval.report.comparison._gate_rules import Rules
from tests.report.runs import row, write_run

FAILED = [{"stage": "answer", "model": "m", "reason": "timeout"}]
RULES: dict[str, dict[str, Any]] = {
    "whole": {},
    "language": {"per_language": {"max_drop": 0.1, "min_n": 2}},
    "pair": {"pair": "zh->en"},
    "floor": {"min_score": 0.5},
}


def written(folder: Path, failing: int) -> Path:
    """Write 20 rows in German and 20 in Chinese, of which some Chinese ones failed and have no score."""
    rows = []
    for i in range(40):
        language = "de" if i < 20 else "zh"
        one = row(i, language, **({} if 20 <= i < 20 + failing else {"acc": 1.0}))
        one["cell"]["doc_lang"] = "en"
        if 20 <= i < 20 + failing:
            one |= {"failures": FAILED, "unscored": {"acc": "answer failed (timeout)"}}
        rows.append(one)
    return write_run(folder, {"qa": rows})


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kept", ["runs", "baseline file"])
@pytest.mark.parametrize(("before", "after", "where"), [
    (0, 0, []),
    (2, 2, []),  # a tenth is not more than a tenth
    (3, 0, ["3 of 20 rows failed in the baseline"]),
    (0, 3, ["3 of 20 rows failed in the candidate"]),
    (3, 20, ["3 of 20 rows failed in the baseline", "20 of 20 rows failed in the candidate"]),
])  # fmt: skip
def test_a_gate_marks_a_language(
    tmp_path: Path, rule: str, kept: str, before: int, after: int, where: list[str]
) -> None:
    first, second = written(tmp_path / "a", before), written(tmp_path / "b", after)
    if kept == "baseline file":
        write_baseline([first], tmp_path / "base.json")
        first = tmp_path / "base.json"
    rules = Rules.model_validate({"min_n": 2, "rules": [{"metric": "acc", "max_unpaired": 0.99, **RULES[rule]}]})
    result = gate([first], [second], rules)
    if rule == "floor":
        where = [one for one in where if "candidate" in one]
    expected = "; ".join(f"zh: {one}" for one in where) or None
    for check in result.checks:
        assert check.marked == (None if check.language == "de" else expected), check
    for shown in ("\n".join(gate_lines(result)), gate_markdown(result)):
        assert (f"many rows failed: {expected}" in shown) == (expected is not None)


def test_a_comparison_marks_a_language(tmp_path: Path) -> None:
    found = compare([written(tmp_path / "a", 0)], [written(tmp_path / "b", 3)])
    assert {one.language: one.marked for one in found.differences} == {
        None: "zh: 3 of 20 rows failed in the second run",
        "de": None,
        "zh": "zh: 3 of 20 rows failed in the second run",
    }
    shown = comparison_text(found)
    assert "zh (many failed)" in shown
    assert "- qa, many rows failed: zh: 3 of 20 rows failed in the second run" in shown
    assert "many failed" not in comparison_text(compare([written(tmp_path / "c", 0)], [written(tmp_path / "d", 2)]))
