"""The order of verdicts: a drop that is shown fails, whatever else is missing; a pass needs enough to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mrag_eval.core import ConfigError, DataError
from mrag_eval.report import compare, gate, gate_changes, gate_lines, gate_markdown, read_rules, write_baseline
from mrag_eval.report.comparison._gate import Check, GateResult
from mrag_eval.report.comparison._gate_rules import Rules
from tests.report.runs import row, write_run


def rules(*given: Mapping[str, Any], **top: Any) -> Rules:
    return Rules.model_validate({"min_n": 20, **top, "rules": [{"metric": "acc", **rule} for rule in given]})


def two(tmp_path: Path, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[Path, Path]:
    return write_run(tmp_path / "a", {"qa": before}), write_run(tmp_path / "b", {"qa": after})


def plain(values: Sequence[float]) -> list[dict[str, Any]]:
    return [row(i, acc=float(x)) for i, x in enumerate(values)]


def held(
    tmp_path: Path, before: Sequence[float], after: Sequence[float], rule: Mapping[str, Any], **top: Any
) -> GateResult:
    a, b = two(tmp_path, plain(before), plain(after))
    return gate([a], [b], rules(rule, **top))


def only(result: GateResult) -> Check:
    (check,) = result.checks
    return check


# A drop first, then power


def test_a_drop_of_thirty_points_fails_though_a_smaller_one_could_not_be_detected(tmp_path: Path) -> None:
    # 60 of 100 are right, then 30: 45 lost, 15 gained, so the error is large and two points cannot be detected
    before = [1] * 60 + [0] * 40
    after = [0] * 45 + [1] * 15 + [1] * 15 + [0] * 25
    result = held(tmp_path, before, after, {"must_detect": 0.02})
    assert (only(result).verdict, result.exit_code) == ("FAIL", 1)


def test_a_collapse_fails_whatever_the_number_of_rows(tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 63, [0] * 63, {}, min_n=100)
    check = only(result)
    # 63 losses and no gain
    assert (check.verdict, check.p_value) == ("FAIL", pytest.approx(2.0**-63))
    assert result.exit_code == 1
    # without a drop the same rows do not pass
    same = only(held(tmp_path, [1] * 63, [1] * 63, {}, min_n=100))
    assert (same.verdict, same.reason) == ("not comparable", "too few rows (63 of 100)")


def test_a_collapse_fails_where_rows_are_missing_or_unscored(tmp_path: Path) -> None:
    a, b = two(tmp_path, plain([1] * 100), plain([0] * 60))
    check = only(gate([a], [b], rules({})))
    assert (check.verdict, check.reason) == ("FAIL", "qa: 40 rows only in the baseline, 0 only in the candidate")
    half = [row(i, acc=0.0) if i < 50 else row(i) for i in range(100)]
    write_run(b, {"qa": half})
    check = only(gate([a], [b], rules({})))
    assert check.verdict == "FAIL"
    assert "50 of 100 rows are scored in one run only" in gate_lines(gate([a], [b], rules({})))[0]


# Groups of rows


def in_groups(values: Sequence[float], size: int) -> list[dict[str, Any]]:
    return [row(i, group=f"g{i // size}", acc=float(x)) for i, x in enumerate(values)]


def test_two_groups_of_a_hundred_rows_are_two_units(tmp_path: Path) -> None:
    after = [0.0 if i % 100 < 2 else 1.0 for i in range(200)]
    a, b = two(tmp_path, in_groups([1] * 200, 100), in_groups(after, 100))
    check = only(gate([a], [b], rules({})))
    assert (check.verdict, check.reason) == ("not comparable", "too few groups of rows (2 of 20)")
    # both groups lost as much: half of 2^-1 on the side of a drop
    assert check.p_value == pytest.approx(0.25)


def test_groups_that_all_fall_by_the_same_amount_have_a_p_above_zero(tmp_path: Path) -> None:
    after = [0.0 if i % 5 == 0 else 1.0 for i in range(100)]
    a, b = two(tmp_path, in_groups([1] * 100, 5), in_groups(after, 5))
    check = only(gate([a], [b], rules({"max_drop": 0.01})))
    assert check.verdict == "FAIL"
    # each of 20 groups fell by more than allowed: one of 2^20 flips
    assert check.p_value == pytest.approx(2.0**-20)


# The correction over the rules


def test_ten_rules_are_corrected_for_their_number(tmp_path: Path) -> None:
    # six losses and no gain in one of ten tasks: 2^-6 = .016 alone, ten times that by Holm
    lost = {f"qa{i}": plain([0.0] * 6 + [1.0] * 94 if i == 0 else [1.0] * 100) for i in range(10)}
    a = write_run(tmp_path / "a", {name: plain([1.0] * 100) for name in lost})
    b = write_run(tmp_path / "b", lost)
    ten = [{"task": name} for name in lost]
    holm = gate([a], [b], rules(*ten))
    assert (holm.exit_code, holm.tests) == (0, 10)
    assert (holm.checks[0].p_value, holm.checks[0].p_adjusted) == (pytest.approx(2**-6), pytest.approx(10 * 2**-6))
    assert "p: Holm, 10 tests, level 0.05" in gate_lines(holm)[-1]
    plainly = gate([a], [b], rules(*ten, correction="none"))
    assert plainly.exit_code == 1
    assert "p: uncorrected, 10 tests" in gate_lines(plainly)[-1]
    assert "p: Benjamini-Hochberg, 10 tests" in gate_markdown(gate([a], [b], rules(*ten, correction="bh")))
    with pytest.raises(ValueError, match="correction"):
        rules({}, correction="bonferroni")


def test_the_smallest_detectable_drop_is_that_of_the_corrected_test(tmp_path: Path) -> None:
    before, after = [1, 0] * 50, [0, 1] + [1, 0] * 49
    a, b = two(tmp_path, plain(before), plain(after))
    one, ten = (gate([a], [b], rules(*[{}] * n)).checks[0].detectable for n in (1, 10))
    assert one is not None
    assert ten is not None
    assert ten > 1.3 * one


@pytest.mark.slow
def test_ten_rules_without_a_change_alarm_in_at_most_five_of_a_hundred_gates(tmp_path: Path) -> None:
    """100 gates on ten tasks of 100 rows, of which 20% change without a drop; uncorrected, more than 15 alarm."""
    rng = np.random.default_rng(0)
    names = [f"qa{i}" for i in range(10)]
    alarms = uncorrected = 0
    for _ in range(100):
        kinds = {name: rng.choice(4, size=100, p=[0.1, 0.1, 0.5, 0.3]) for name in names}
        a = write_run(tmp_path / "a", {name: plain(np.isin(kind, (0, 2))) for name, kind in kinds.items()})
        b = write_run(tmp_path / "b", {name: plain(np.isin(kind, (1, 2))) for name, kind in kinds.items()})
        found = gate([a], [b], rules(*({"task": name} for name in names)))
        alarms += found.exit_code == 1
        uncorrected += any(check.p_value is not None and check.p_value <= 0.05 for check in found.checks)
    # .05 and three standard errors of 100 gates
    assert alarms <= 100 * 0.05 + 3 * (100 * 0.05 * 0.95) ** 0.5
    assert uncorrected > 15


# Non-inferiority


def test_a_rule_of_non_inferiority_passes_only_if_it_is_shown(tmp_path: Path) -> None:
    rule = {"max_drop": 0.02, "non_inferiority": True}
    before, after = [1, 0] * 50, [0, 1] * 3 + [1, 0] * 47
    few = held(tmp_path / "few", before, after, rule)
    # six of 100 rows differ, half each way: a drop of two points is not excluded
    assert (only(few).verdict, few.exit_code) == ("not shown", 2)
    assert only(few).reason == "not shown: a drop smaller than 0.02"
    assert held(tmp_path / "plain", before, after, {"max_drop": 0.02}).exit_code == 0
    # the same shares in 2,000 rows exclude it
    many = held(tmp_path / "many", before * 20, after * 20, rule)
    assert (only(many).verdict, many.exit_code) == ("pass", 0)
    assert "p of a smaller drop" in gate_lines(many)[0]
    worse = held(tmp_path / "worse", [1] * 100, [0] * 30 + [1] * 70, rule)
    assert (only(worse).verdict, worse.exit_code) == ("FAIL", 1)


def test_non_inferiority_where_less_is_better(tmp_path: Path) -> None:
    rule = {"max_drop": 0.05, "non_inferiority": True, "metric": "option_unread"}
    before = [0.0] * 950 + [1.0] * 50
    for after, code in (([0.0] * 990 + [1.0] * 10, 0), ([0.0] * 850 + [1.0] * 150, 1)):
        values = [[row(i, option_unread=x) for i, x in enumerate(run)] for run in (before, after)]
        a, b = two(tmp_path / str(code), *values)
        assert gate([a], [b], rules(rule)).exit_code == code


# A floor


@pytest.mark.parametrize(("floor", "verdict"), [(0.69, "pass"), (0.7, "pass"), (0.71, "FAIL")])
def test_a_floor_under_the_score(floor: float, verdict: str, tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 100, [1] * 70 + [0] * 30, {"min_score": floor})
    check = only(result)
    # no rule on a drop, so the lost thirty points are no matter; no test, so nothing to correct
    assert (check.verdict, check.candidate, result.tests) == (verdict, 0.7, 0)
    assert f"70.0   [60.4, 78.1]   n = 100   floor {100 * floor:.1f}" in gate_lines(result)[0]


@pytest.mark.parametrize(("ceiling", "verdict"), [(0.31, "pass"), (0.3, "pass"), (0.29, "FAIL")])
def test_a_ceiling_above_the_score(ceiling: float, verdict: str, tmp_path: Path) -> None:
    rows = [row(i, option_unread=float(i < 30)) for i in range(100)]
    a, b = two(tmp_path, rows, rows)
    result = gate([a], [b], rules({"metric": "option_unread", "max_score": ceiling}))
    check = only(result)
    assert (check.verdict, check.candidate, result.tests) == (verdict, 0.3, 0)
    assert f"n = 100   ceiling {100 * ceiling:.1f}" in gate_lines(result)[0]


def test_a_floor_and_a_drop_are_two_checks(tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 100, [1] * 70 + [0] * 30, {"min_score": 0.5, "max_drop": 0.1})
    assert [check.verdict for check in result.checks] == ["pass", "FAIL"]


def test_a_floor_needs_rows_and_scores_to_pass(tmp_path: Path) -> None:
    few = only(held(tmp_path / "few", [1] * 10, [1] * 10, {"min_score": 0.5}))
    assert (few.verdict, few.reason) == ("not comparable", "too few rows (10 of 20)")
    assert only(held(tmp_path / "low", [1] * 10, [0] * 10, {"min_score": 0.5})).verdict == "FAIL"
    a, b = two(tmp_path, plain([1] * 100), [row(i, acc=1.0) if i < 90 else row(i) for i in range(100)])
    check = only(gate([a], [b], rules({"min_score": 0.5})))
    assert check.reason == "10 of 100 rows are unscored, and max_unpaired is 0"


# Pairs of languages


def with_pairs(lost: int) -> list[dict[str, Any]]:
    """100 German and 100 Korean questions, each half on English documents, half on their own language's."""
    made = []
    for lang in ("de", "ko"):
        for i in range(100):
            falls = lang == "ko" and i < lost
            one = row(i, lang, acc=0.0 if falls else 1.0)
            one["cell"]["doc_lang"] = "en" if i < 50 else lang
            made.append(one)
    return made


def test_a_rule_for_one_pair_of_languages(tmp_path: Path) -> None:
    a, b = two(tmp_path, with_pairs(0), with_pairs(10))
    for pair, n, verdict in (("ko->en", 50, "FAIL"), ("ko->ko", 50, "pass"), ("*->en", 100, "FAIL")):
        check = only(gate([a], [b], rules({"pair": pair})))
        assert (check.language, check.n, check.verdict) == (pair, n, verdict)
    assert only(gate([a], [b], rules({"pair": "ko->en", "min_score": 0.9}))).candidate == pytest.approx(0.8)
    nothing = only(gate([a], [b], rules({"pair": "ko->th"})))
    assert nothing.reason == "no row has the languages ko->th (question->document)"


def test_a_guard_on_every_pair_of_languages(tmp_path: Path) -> None:
    a, b = two(tmp_path, with_pairs(0), with_pairs(12))
    result = gate([a], [b], rules({"max_drop": 0.2, "per_pair": {"max_drop": 0.0}}))
    assert [(check.language, check.verdict) for check in result.checks] == [
        (None, "pass"), ("de->de", "pass"), ("de->en", "pass"), ("ko->en", "FAIL"), ("ko->ko", "pass"),
    ]  # fmt: skip


def test_a_baseline_file_keeps_the_pairs_and_an_older_one_is_refused(tmp_path: Path) -> None:
    a, b = two(tmp_path, with_pairs(0), with_pairs(10))
    file = tmp_path / "baseline.json"
    write_baseline([a], file)
    assert only(gate([file], [b], rules({"pair": "ko->en"}))).verdict == "FAIL"
    assert only(gate([file], [file], rules({"pair": "ko->en"}))).n == 50
    old = json.loads(file.read_text("utf-8")) | {"format": 2}
    file.write_text(json.dumps(old), "utf-8")
    # it does not say what was measured
    with pytest.raises(DataError, match="not a baseline file"):
        gate([file], [b], rules({"pair": "ko->en"}))


# Rules that contradict themselves


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("non_inferiority: true", "'non_inferiority' requires 'max_drop' or 'max_drop_relative'"),
        ("lower_is_better: true", "of acc, more is better: leave 'lower_is_better' out"),
        ("max_score: .5", "of acc, more is better: write 'min_score' for 'max_score'"),
        ("max_score: .5, per_pair: {max_drop: 0}", "of acc, more is better"),
        ("min_score: .5, per_language: {max_drop: 0}", "compare with the baseline: add 'max_drop'"),
        ("pair: de", r"rules\[0\]\.pair"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(rule: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(f"rules: [{{metric: acc, {rule}}}]", "utf-8")
    with pytest.raises(ConfigError, match=said):
        read_rules(file)


# Output


def test_the_markdown_begins_with_the_verdict_and_ends_with_the_rows_that_changed(tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 100, [0] * 30 + [1] * 70, {})
    lines = gate_markdown(
        result, gate_changes(result, [tmp_path / "a"], [tmp_path / "b"], rules({"metric": "acc"}))
    ).splitlines()
    assert lines[0] == "## mrag-eval gate: FAIL"
    assert lines[2].startswith("**en: 30 of 100 answers lost")
    assert lines[4].startswith("1 FAIL. Points")
    assert lines[6].split("|")[1].strip() == "verdict"
    assert lines[-1].startswith("- qa, acc, en: 30 worse: <code>r0</code>, <code>r1</code>, <code>r10</code>")
    assert lines[-1].endswith("and 10 more")
    assert gate_markdown(held(tmp_path / "same", [1] * 100, [1] * 100, {})).startswith("## mrag-eval gate: pass\n")


def test_the_first_rules_are_written_from_a_run_and_can_be_used(tmp_path: Path) -> None:
    from mrag_eval.cli._app import Session, app

    rows = [row(i, match=1.0, char3gram_recall=1.0) for i in range(60)]
    demo = {"data": {"benchmark": "demo"}}
    a = write_run(tmp_path / "a", {"mrag_demo_norag": rows}, config=demo, groups={"mrag_demo": ["mrag_demo_norag"]})
    write_run(a / "own", {"mine": plain([1] * 200)}, date="2026-01-02T00-00-00.000000")
    file, markdown = tmp_path / "gate.yaml", tmp_path / "gate.md"
    done = CliRunner().invoke(app, ["gate", "--init", str(file), str(a)], obj=Session())
    assert done.exit_code == 0, done.output
    made = read_rules(file)
    # the main metric of the demo, for its group; a task that declares none has a rule on each of its metrics
    assert [(rule.task, rule.metric) for rule in made.rules] == [("mine", "acc"), ("mrag_demo", "char3gram_recall")]
    assert (made.correction, made.min_n) == ("holm", 60)
    # (z(.975) + z(.8)) sqrt(.1 / 200) = 2.80 * .0224
    assert (
        "# 200 rows: if 10% of the answers change, a drop of 6.3 points is found in 8 of 10 gates" in file.read_text()
    )
    check = ["gate", "--baseline", str(a), "--candidate", str(a), "--rules", str(file), "--markdown", str(markdown)]
    assert CliRunner().invoke(app, check, obj=Session()).exit_code == 0
    assert markdown.read_text("utf-8").startswith("## mrag-eval gate: pass\n")
    again = CliRunner().invoke(app, ["gate", "--init", str(file), str(a)], obj=Session())
    assert again.exit_code == 2
    assert "exists already" in again.output


def test_compare_reads_a_baseline_file(tmp_path: Path) -> None:
    a, b = two(tmp_path, plain([1] * 100), plain([0] * 10 + [1] * 90))
    file = tmp_path / "baseline.json"
    write_baseline([a], file)
    (found,) = compare([file], [b]).differences
    assert found == compare([a], [b]).differences[0]
    assert found.difference == pytest.approx(-0.1)
