"""Languages of which many rows failed are marked wherever two runs are compared, whichever run and rule it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrag_eval.platform import DataError
from mrag_eval.report import GateRules, compare, comparison_text, gate, gate_lines, gate_markdown, write_baseline
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
    rules = GateRules.model_validate({"min_n": 2, "rules": [{"metric": "acc", "max_unpaired": 0.5, **RULES[rule]}]})
    result = gate([first], [second], rules)
    if rule == "floor":
        where = [one for one in where if "candidate" in one]
    marked = [f"zh: {one}" for one in where]
    # three of 40 are more than a twentieth of all rows
    of_all = [f"all: {one.replace(' of 20', ' of 40')}" for one in where]
    for check in result.checks:
        whole = check.language is None and rule != "pair"
        expected = "; ".join([*(of_all if whole else []), *marked]) or None
        assert check.marked == (None if check.language == "de" else expected), check
        if expected is not None and check.language != "de":
            for shown in ("\n".join(gate_lines(result)), gate_markdown(result)):
                assert f"many rows failed: {expected}" in shown
    assert ("many rows failed" in gate_markdown(result)) == bool(marked)


def test_a_comparison_marks_a_language(tmp_path: Path) -> None:
    found = compare([written(tmp_path / "a", 0)], [written(tmp_path / "b", 3)])
    assert {one.language: one.marked for one in found.differences} == {
        None: "all: 3 of 40 rows failed in the second run; zh: 3 of 20 rows failed in the second run",
        "de": None,
        "zh": "zh: 3 of 20 rows failed in the second run",
    }
    shown = comparison_text(found)
    assert "zh (many failed)" in shown
    assert "- qa, many rows failed: all: 3 of 40 rows failed in the second run; zh: 3 of 20 rows" in shown
    assert "many failed" not in comparison_text(compare([written(tmp_path / "c", 0)], [written(tmp_path / "d", 2)]))


def test_a_comparison_names_metrics_without_a_value_in_one_run(tmp_path: Path) -> None:
    rows = [row(i, "de", acc=1.0) for i in range(4)]
    down = [row(i, "de", found=1.0) | {"failures": FAILED, "unscored": {"acc": "x"}} for i in range(4)]
    both = write_run(tmp_path / "both", {"qa": [one | {"values": {**one["values"], "found": 1.0}} for one in rows]})
    dead = write_run(tmp_path / "dead", {"qa": down})
    line = "qa: no value in the second run for acc (4 of 4 rows failed)"
    assert f"- {line}" in comparison_text(compare([both], [dead]))
    with pytest.raises(DataError, match="no task of both runs has the metric 'acc'") as caught:
        compare([both], [dead], metrics=["acc"])
    assert line in caught.value.message
    with pytest.raises(DataError) as caught:
        compare([write_run(tmp_path / "alone", {"qa": rows})], [dead])
    assert caught.value.message.startswith(line)
    assert "run again what failed" in (caught.value.next_step or "")
