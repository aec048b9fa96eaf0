"""Languages in which a right answer scores too little are named wherever two runs, or a score and a floor, meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import (
    GateRules,
    compare,
    comparison_text,
    gate,
    gate_lines,
    gate_markdown,
    render,
    score_tables,
    write_report,
)
from mrag_eval.report.page.sections._controls import SECTION
from mrag_eval.scoring import RowRecord, summarize
from tests.report.runs import row, write_run

WHY = "first reference in a sentence scores 50.0"


def written(folder: Path, *, known: bool = True) -> Path:
    """Write 20 rows in German and 20 in Korean, where a right answer in a sentence scores a half."""
    rows: list[dict[str, Any]] = []
    for i in range(40):
        language = "de" if i < 20 else "ko"
        one = row(i, language, match=float(i % 4 == 0))
        one["cell"]["doc_lang"] = "en"
        if known:
            ceiling = 1.0 if language == "de" else float(i % 2)
            controls = {"sentence": ceiling, "bare": 1.0, "other": 0.0}
            one["controls"] = {
                "values": {name: {"match": value} for name, value in controls.items()},
                "missing": {"english": "the benchmark has no answer in English"},
            }
        rows.append(one)
    scores = summarize([RowRecord.from_dict(one) for one in rows]).to_dict()
    return write_run(folder, {"qa": rows}, config={"scores": scores})


@pytest.mark.parametrize("rule", [{}, {"per_language": {"max_drop": 0.1, "min_n": 2}}, {"pair": "ko->en"}])
@pytest.mark.parametrize("known", [(True, True), (True, False), (False, True), (False, False)])
def test_a_gate_names_them(tmp_path: Path, rule: dict[str, Any], known: tuple[bool, bool]) -> None:
    runs = [[written(tmp_path / name, known=one)] for name, one in zip("ab", known, strict=True)]
    rules = GateRules.model_validate({"min_n": 2, "rules": [{"metric": "match", **rule}]})
    result = gate(*runs, rules)
    assert result.checks
    for check in result.checks:
        # whichever run has them, as they are the task's
        assert check.limited == (None if check.language == "de" or not any(known) else f"ko: {WHY}"), check
    for shown in ("\n".join(gate_lines(result)), gate_markdown(result)):
        assert (f"limited by the metric: ko: {WHY}" in shown) == any(known)


@pytest.mark.parametrize(("floor", "out"), [(0.4, False), (0.6, True)])
def test_a_gate_says_where_a_floor_is_out_of_reach(tmp_path: Path, floor: float, out: bool) -> None:
    rules = GateRules.model_validate({"min_n": 2, "rules": [{"metric": "match", "min_score": floor}]})
    (check,) = gate([written(tmp_path / "a")], [written(tmp_path / "b")], rules).checks
    reached = "; out of reach: first reference in a sentence scores less than the floor in ko 50.0"
    assert check.limited == f"ko: {WHY}{reached if out else ''}"


def test_a_comparison_names_them(tmp_path: Path) -> None:
    found = compare([written(tmp_path / "a")], [written(tmp_path / "b")])
    assert {one.language: one.limited for one in found.differences} == {
        None: f"ko: {WHY}", "de": None, "ko": f"ko: {WHY}"
    }  # fmt: skip
    shown = comparison_text(found)
    assert "ko (limited by the metric)" in shown
    assert f"- qa, limited by the metric: ko: {WHY}" in shown
    bare = compare([written(tmp_path / "c", known=False)], [written(tmp_path / "d", known=False)])
    assert "limited" not in comparison_text(bare)


def test_report_shows_controls_and_shares(tmp_path: Path) -> None:
    shown = render(score_tables([written(tmp_path / "a")]))
    (line,) = [line for line in shown.splitlines() if line.startswith("| qa") and "| ko " in line and "match" in line]
    cells = [cell.strip().split(" ")[0] for cell in line.strip("|").split("|")]
    # a quarter of the answers is right, half of the ceilings is 1: (1/4 - 0) / (1/2 - 0)
    assert cells == ["qa", "match", "ko", "unnamed", "100.0", "50.0", "0.0", "", "50.0"]
    assert f"marked: ko: {WHY}" in shown
    assert "the benchmark has no answer in English" in shown


def test_the_page_has_a_section_of_them(tmp_path: Path) -> None:
    (listing,) = [block for block in SECTION.blocks if block.caption.startswith("Controls of answers")]
    written(tmp_path / "a")
    out = tmp_path / "page.html"
    write_report([tmp_path / "a"], out)
    page = out.read_text("utf-8")
    assert listing.caption in page
    assert WHY in page


def test_exports_hold_them(tmp_path: Path) -> None:
    from mrag_eval import load_results

    frame = load_results(written(tmp_path / "a"))
    found = frame[frame["dimension"] == "control"].set_index("cell")["value"].astype(object).to_dict()
    assert found["ko, sentence"] == 0.5
    assert found["ko, share"] == pytest.approx(0.5)
    assert found["de, share"] == pytest.approx(0.25)
