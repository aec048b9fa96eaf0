"""Guards of a gate on every cell of a breakdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval.platform import ConfigError
from mrag_eval.report import (
    GateResult,
    GateRules,
    gate,
    gate_changes,
    gate_lines,
    gate_markdown,
    junit,
    read_results,
    read_rules,
    write_baseline,
)
from tests.report.runs import row, write_run
from tests.worlds import logs

BY = "answer_evidence"
# Cell -> its rows, and how many of them are wrong in the candidate.
CELLS = {"de->de": (60, 0), "de->en": (50, 30), "en->en": (60, 2), "en->several": (40, 0)}


def rows_of(wrong: bool, *, cells: Mapping[str, str] | None = None, by: str = BY) -> list[dict[str, Any]]:
    """Return rows in all cells; ``cells`` are those of single rows, by id, empty for none."""
    made = []
    for cell, (n, lost) in CELLS.items():
        for i in range(n):
            one = row(1000 * len(made) + i, cell[:2], acc=0.0 if wrong and i < lost else 1.0)
            own = (cells or {}).get(one["row"], cell)
            one["cell"] |= {by: own} if own else {}
            made.append(one)
    return made


def rules(**rule: Any) -> GateRules:
    return GateRules.model_validate({"min_n": 20, "rules": [{"metric": "acc", "max_drop": 0.3, **rule}]})


def gated(folder: Path, before: Sequence[Any], after: Sequence[Any], found: GateRules) -> GateResult:
    a, b = write_run(folder / "a", {"qa": before}), write_run(folder / "b", {"qa": after})
    return gate([a], [b], found)


def test_every_cell_of_a_breakdown_is_a_test_of_the_family(tmp_path: Path) -> None:
    asked = rules(per={BY: {"max_drop": 0.1}})
    result = gated(tmp_path, rows_of(False), rows_of(True), asked)
    assert [(check.by, check.language, check.n, check.verdict == "fail") for check in result.checks] == [
        (None, None, 210, False),
        *((BY, cell, n, lost > 2) for cell, (n, lost) in CELLS.items()),
    ]
    assert result.tests == 1 + len(CELLS)
    assert all(check.p_adjusted >= check.p_value for check in result.checks)  # type: ignore[operator]
    text = "\n".join(gate_lines(result))
    assert f"acc · {BY} de->en" in text
    assert f"acc [{BY} de-&gt;en]" in junit(result)
    changes = gate_changes(result, [tmp_path / "a"], [tmp_path / "b"], asked)
    assert gate_markdown(result, changes).startswith("## mrag-eval gate: FAIL")
    # every row that got worse in the cell that fails is shown as such
    assert sum(len(cell.worse) for cell in changes.cells if cell.failed) >= 30


def test_a_guard_has_the_tests_of_the_same_guard_by_its_own_key(tmp_path: Path) -> None:
    def made(wrong: bool) -> list[dict[str, Any]]:
        found = rows_of(wrong)
        for one in found:
            one["cell"]["doc_lang"] = one["cell"][BY][-2:].replace("al", "zh")
        return found

    for key, by in (("per_language", "query_lang"), ("per_pair", "pair")):
        guard = {"max_drop": 0.1, "min_n": 5}
        named = gated(tmp_path, made(False), made(True), rules(**{key: guard}))
        same = gated(tmp_path, made(False), made(True), rules(per={by: guard}))
        assert same == named
    # the same rows under another name have the same verdicts
    by_evidence = gated(tmp_path, made(False), made(True), rules(per={BY: guard}))
    assert [(c.n, c.p_value, c.p_adjusted, c.verdict) for c in by_evidence.checks] == [
        (c.n, c.p_value, c.p_adjusted, c.verdict) for c in named.checks
    ]


def test_rows_are_in_the_cells_of_the_baseline_and_others_are_named(tmp_path: Path) -> None:
    ids = {cell: [one["row"] for one in rows_of(False) if one["cell"][BY] == cell] for cell in CELLS}
    moved = dict.fromkeys(ids["de->de"], "de->ko") | dict.fromkeys(ids["en->several"][:7], "en->en")
    moved |= dict.fromkeys(ids["en->several"][7:9], "")
    result = gated(tmp_path, rows_of(False), rows_of(True, cells=moved), rules(per={BY: {"max_drop": 0.1}}))
    checks = {check.language: check for check in result.checks}
    assert [*checks] == [None, *CELLS]
    assert {cell: checks[cell].n for cell in CELLS} == {cell: n for cell, (n, _) in CELLS.items()}
    assert checks["de->de"].elsewhere == "de->ko 60"
    assert checks["en->several"].elsewhere == "en->en 7, none 2"
    assert checks["de->en"].elsewhere is None
    assert "rows elsewhere in the candidate: de->ko 60" in "\n".join(gate_lines(result))
    # a cell that the candidate alone has holds the rows that have none in the baseline
    nowhere = dict.fromkeys(ids["de->de"], "")
    result = gated(tmp_path, rows_of(False, cells=nowhere), rows_of(True, cells=moved), rules(per={BY: {}}))
    assert [check.language for check in result.checks] == [None, "de->en", "de->ko", "en->en", "en->several"]


def test_only_the_cells_that_are_named_are_guarded(tmp_path: Path) -> None:
    runs = rows_of(False), rows_of(True)
    for only, cells in (
        (["de->en"], ["de->en"]),
        (["*->en"], ["de->en", "en->en"]),
        (["en->*", "de->de"], ["de->de", "en->en", "en->several"]),
    ):
        result = gated(tmp_path, *runs, rules(per={BY: {"only": only}}))
        assert [check.language for check in result.checks] == [None, *cells]
        assert result.tests == 1 + len(cells)
    result = gated(tmp_path, *runs, rules(per_language={"only": ["en"]}))
    assert [check.language for check in result.checks] == [None, "en"]
    # one that no row has is refused, also beside others
    for key, guard, said in (
        ("per", {BY: {"only": ["ko->en", "de->en"]}}, f"no row has the cell 'ko->en' of {BY}"),
        ("per_language", {"only": ["en", "dee"]}, "no row has the cell 'dee' of query_lang; did you mean 'de'?"),
        ("per_pair", {"only": ["*->th"]}, "no row has the cell '*->th' of pair"),
    ):
        made = [one | {"cell": one["cell"] | {"doc_lang": "en"}} for one in runs[0]]
        with pytest.raises(ConfigError, match=re.escape(said)):
            gated(tmp_path, made, made, rules(**{key: guard}))


def test_a_breakdown_that_no_row_has_is_named_beside_those_there_are(tmp_path: Path) -> None:
    result = gated(tmp_path, rows_of(False), rows_of(False), rules(per={"answer_evidense": {}}))
    assert result.exit_code == 2
    assert result.checks[1].language == "per answer_evidense"
    assert result.checks[1].reason == f"no row has the breakdown 'answer_evidense'; there are {BY}, query_lang"


def test_a_baseline_file_has_the_cells(tmp_path: Path) -> None:
    asked = rules(per={BY: {"max_drop": 0.1}})
    wanted = gated(tmp_path, rows_of(False), rows_of(True), asked)
    file = tmp_path / "baseline.json"
    write_baseline([tmp_path / "a"], file)
    assert gate([file], [tmp_path / "b"], asked).checks == wanted.checks
    # one of the format before has none: the candidate's count
    content = json.loads(file.read_text("utf-8")) | {"format": 4}
    content["tasks"]["qa"]["rows"] = [one[:5] for one in content["tasks"]["qa"]["rows"]]
    file.write_text(json.dumps(content), "utf-8")
    assert gate([file], [tmp_path / "b"], asked).checks == wanted.checks
    bare = write_run(tmp_path / "bare", {"qa": [row(i, acc=1.0) for i in range(50)]})
    write_baseline([bare], file)
    assert gate([file], [bare], rules(per_language={})).checks[1].verdict == "no drop shown"


def test_a_guard_in_a_rule_without_a_drop_is_refused(tmp_path: Path) -> None:
    for rule, said in (
        ("min_score: .5, per: {answer_evidence: {}}", "'per' compares with the baseline: add 'max_drop'"),
        ("per: {answer_evidence: {max_dorp: 0}}", r"rules\[0\]\.per\.answer_evidence"),
        ("per: answer_evidence", r"rules\[0\]\.per"),
        ("per: {answer_evidence: {only: []}}", "only"),
    ):
        file = tmp_path / "gate.yaml"
        file.write_text(f"rules: [{{metric: acc, {rule}}}]", "utf-8")
        with pytest.raises(ConfigError, match=said) as error:
            read_rules(file)
        assert "\n" not in error.value.message


def test_every_breakdown_of_the_results_can_be_guarded(tmp_path: Path) -> None:
    """Whatever breakdowns there are: those of every run, of a log's contexts, and a column of the user's."""
    rows = enumerate(logs.rows_of(logs.own) * 20)
    given = [{**one, "id": f"r{n}", "shop": f"shop {n % 3}"} for n, one in rows]
    mrag_eval.score(given, ["match_unicode"], breakdowns=["shop"], output=tmp_path / "out")
    (file,) = read_results([tmp_path / "out"])
    (leaf,) = file.leaves.values()
    by = leaf.scores.metrics["match_unicode"].by
    assert {"shop", "context_pair", "query_lang"} <= {*by}
    for name, cells in by.items():
        asked = GateRules.model_validate({"rules": [{"metric": "match_unicode", "per": {name: {"min_n": 2}}}]})
        result = gate([tmp_path / "out"], [tmp_path / "out"], asked)
        assert [check.language for check in result.checks[1:]] == [*cells]
        assert [check.n for check in result.checks[1:]] == [cell.n for cell in cells.values()]
