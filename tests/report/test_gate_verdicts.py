"""The order of verdicts: a drop that is shown fails, whatever else is missing; a pass needs enough to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import (
    Check,
    GateResult,
    GateRules,
    compare,
    gate,
    gate_changes,
    gate_lines,
    gate_markdown,
    junit,
    read_rules,
    starter_rules,
    write_baseline,
)
from tests.report.runs import row, write_run


def rules(*given: Mapping[str, Any], **top: Any) -> GateRules:
    return GateRules.model_validate({"min_n": 20, **top, "rules": [{"metric": "acc", **rule} for rule in given]})


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
    assert (only(result).verdict, result.exit_code) == ("fail", 1)


def test_a_collapse_fails_whatever_the_number_of_rows(tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 63, [0] * 63, {}, min_n=100)
    check = only(result)
    # 63 losses and no gain
    assert (check.verdict, check.p_value) == ("fail", pytest.approx(2.0**-63, rel=1e-3))
    assert result.exit_code == 1
    # without a drop the same rows do not pass
    same = only(held(tmp_path, [1] * 63, [1] * 63, {}, min_n=100))
    assert (same.verdict, same.reason) == ("cannot tell", "63 of 100 rows needed")


def test_a_collapse_fails_where_rows_are_missing_or_unscored(tmp_path: Path) -> None:
    a, b = two(tmp_path, plain([1] * 100), plain([0] * 60))
    check = only(gate([a], [b], rules({})))
    assert (check.verdict, check.reason) == ("fail", "qa: 40 rows only in the baseline, 0 only in the candidate")
    half = [row(i, acc=0.0) if i < 50 else row(i) for i in range(100)]
    write_run(b, {"qa": half})
    check = only(gate([a], [b], rules({})))
    assert check.verdict == "fail"
    assert (check.n, check.candidate) == (50, 0.0)


# Groups of rows


def in_groups(values: Sequence[float], size: int) -> list[dict[str, Any]]:
    return [row(i, group=f"g{i // size}", acc=float(x)) for i, x in enumerate(values)]


def test_two_groups_of_a_hundred_rows_are_two_units(tmp_path: Path) -> None:
    after = [0.0 if i % 100 < 2 else 1.0 for i in range(200)]
    a, b = two(tmp_path, in_groups([1] * 200, 100), in_groups(after, 100))
    check = only(gate([a], [b], rules({})))
    assert (check.verdict, check.reason) == ("cannot tell", "2 of 20 groups of rows needed")
    # two groups that lost two rows of a hundred are no evidence
    assert check.p_value == 1


def test_groups_that_all_fall_by_the_same_amount_have_a_p_above_zero(tmp_path: Path) -> None:
    after = [0.0 if i % 5 == 0 else 1.0 for i in range(300)]
    a, b = two(tmp_path, in_groups([1] * 300, 5), in_groups(after, 5))
    check = only(gate([a], [b], rules({"max_drop": 0.01})))
    assert check.verdict == "fail"
    # who bets on a drop above .01 wins (.2 - .01) / (1 + .01) of each stake by each of 60 groups; a tenth of the level
    stakes = (np.arange(1, 21) / 20) ** 2
    assert check.p_value == pytest.approx(10 / np.mean((1 + stakes * 0.19 / 1.01) ** 60))


# The correction over the rules


def test_ten_rules_are_corrected_for_their_number(tmp_path: Path) -> None:
    # six losses and no gain in one of ten tasks: alone shown at level .05, corrected for ten not
    lost = {f"qa{i}": plain([0.0] * 6 + [1.0] * 94 if i == 0 else [1.0] * 100) for i in range(10)}
    a = write_run(tmp_path / "a", {name: plain([1.0] * 100) for name in lost})
    b = write_run(tmp_path / "b", lost)
    ten = [{"task": name} for name in lost]
    holm = gate([a], [b], rules(*ten))
    assert (holm.exit_code, holm.tests) == (0, 10)
    alone = holm.checks[0].p_value
    assert alone == pytest.approx(0.00744, abs=1e-5)
    assert holm.checks[0].p_adjusted == pytest.approx(10 * alone)
    assert "p: family-wise, 10 tests, level 0.05" in gate_lines(holm)[-1]
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
    """50 gates on ten tasks of 100 rows, of which 20% change without a drop; uncorrected, more than 8 alarm."""
    rng = np.random.default_rng(0)
    names = [f"qa{i}" for i in range(10)]
    alarms = uncorrected = 0
    for _ in range(50):
        kinds = {name: rng.choice(4, size=100, p=[0.1, 0.1, 0.5, 0.3]) for name in names}
        a = write_run(tmp_path / "a", {name: plain(np.isin(kind, (0, 2))) for name, kind in kinds.items()})
        b = write_run(tmp_path / "b", {name: plain(np.isin(kind, (1, 2))) for name, kind in kinds.items()})
        found = gate([a], [b], rules(*({"task": name} for name in names)))
        alarms += found.exit_code == 1
        uncorrected += any(check.p_value is not None and check.p_value <= 0.05 for check in found.checks)
    # .05 and three standard errors of 50 gates
    assert alarms <= 50 * 0.05 + 3 * (50 * 0.05 * 0.95) ** 0.5
    assert uncorrected > 8


# Non-inferiority


def test_a_rule_of_non_inferiority_passes_only_if_it_is_shown(tmp_path: Path) -> None:
    rule = {"max_drop": 0.02, "non_inferiority": True}
    before, after = [1, 0] * 50, [0, 1] * 3 + [1, 0] * 47
    few = held(tmp_path / "few", before, after, rule)
    # six of 100 rows differ, half each way: a drop of two points is not excluded
    assert (only(few).verdict, few.exit_code) == ("cannot tell", 2)
    assert only(few).reason == "a drop larger than 0.02 is not excluded"
    assert only(few).needed > 500
    assert held(tmp_path / "plain", before, after, {"max_drop": 0.02}).exit_code == 0
    # the same shares in 2,000 rows exclude it
    many = held(tmp_path / "many", before * 20, after * 20, rule)
    assert (only(many).verdict, many.exit_code) == ("no worse", 0)
    assert "shown to be no worse than −2.0" in gate_lines(many)[1]
    worse = held(tmp_path / "worse", [1] * 100, [0] * 30 + [1] * 70, rule)
    assert (only(worse).verdict, worse.exit_code) == ("fail", 1)


def test_non_inferiority_where_less_is_better(tmp_path: Path) -> None:
    rule = {"max_drop": 0.05, "non_inferiority": True, "metric": "option_unread"}
    before = [0.0] * 950 + [1.0] * 50
    for after, code in (([0.0] * 990 + [1.0] * 10, 0), ([0.0] * 850 + [1.0] * 150, 1)):
        values = [[row(i, option_unread=x) for i, x in enumerate(run)] for run in (before, after)]
        a, b = two(tmp_path / str(code), *values)
        assert gate([a], [b], rules(rule)).exit_code == code


# A floor


@pytest.mark.parametrize(("floor", "verdict"), [(0.69, "holds"), (0.7, "holds"), (0.71, "fail")])
def test_a_floor_under_the_score(floor: float, verdict: str, tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 100, [1] * 70 + [0] * 30, {"min_score": floor})
    check = only(result)
    # no rule on a drop, so the lost thirty points are no matter; no test, so nothing to correct
    assert (check.verdict, check.candidate, result.tests) == (verdict, 0.7, 0)
    assert "70.0   [60.4, 78.1]" in gate_lines(result)[1]
    assert f"n = 100   floor {100 * floor:.1f}" in gate_lines(result, verbose=True)[2]


@pytest.mark.parametrize(("ceiling", "verdict"), [(0.31, "holds"), (0.3, "holds"), (0.29, "fail")])
def test_a_ceiling_above_the_score(ceiling: float, verdict: str, tmp_path: Path) -> None:
    rows = [row(i, option_unread=float(i < 30)) for i in range(100)]
    a, b = two(tmp_path, rows, rows)
    result = gate([a], [b], rules({"metric": "option_unread", "max_score": ceiling}))
    check = only(result)
    assert (check.verdict, check.candidate, result.tests) == (verdict, 0.3, 0)
    assert f"n = 100   ceiling {100 * ceiling:.1f}" in gate_lines(result, verbose=True)[2]


@pytest.mark.parametrize("bound", ["min_score", "max_score"])
def test_a_bound_at_the_score_holds_in_its_last_digit(bound: str, tmp_path: Path) -> None:
    metric = "f1" if bound == "min_score" else "language_mix"
    # a mean of 110 times .1 is .09999999999999996
    rows = [row(i, **{metric: 0.1}) for i in range(110)]
    a, b = two(tmp_path, rows, rows)
    assert only(gate([a], [b], rules({"metric": metric, bound: 0.1}))).verdict == "holds"


def test_a_floor_and_a_drop_are_two_checks(tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 100, [1] * 70 + [0] * 30, {"min_score": 0.5, "max_drop": 0.1})
    assert [check.verdict for check in result.checks] == ["holds", "fail"]


def test_a_floor_needs_rows_and_scores_to_pass(tmp_path: Path) -> None:
    few = only(held(tmp_path / "few", [1] * 10, [1] * 10, {"min_score": 0.5}))
    assert (few.verdict, few.reason) == ("cannot tell", "10 of 20 rows needed")
    assert only(held(tmp_path / "low", [1] * 10, [0] * 10, {"min_score": 0.5})).verdict == "fail"
    a, b = two(tmp_path, plain([1] * 100), [row(i, acc=1.0) if i < 90 else row(i) for i in range(100)])
    check = only(gate([a], [b], rules({"min_score": 0.5})))
    assert check.verdict == "holds"  # ten wrong answers more leave 90
    check = only(gate([a], [b], rules({"min_score": 0.95})))
    assert check.reason == "10 of 100 rows are unscored: with the worst values there the bound would be crossed"
    check = only(gate([a], [b], rules({"min_score": 0.5, "max_unpaired": 0.05})))
    assert check.reason == "10 of 100 rows are unscored, and max_unpaired is 0.05"


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
    for pair, n, verdict in (("ko->en", 50, "fail"), ("ko->ko", 50, "no drop shown"), ("*->en", 100, "fail")):
        check = only(gate([a], [b], rules({"pair": pair})))
        assert (check.language, check.n, check.verdict) == (pair, n, verdict)
    assert only(gate([a], [b], rules({"pair": "ko->en", "min_score": 0.9}))).candidate == pytest.approx(0.8)
    for bound in ({"max_drop": 0.01}, {"max_drop": None, "min_score": 0.9}):
        with pytest.raises(
            ConfigError, match=r"rule on acc: no row has the languages ko->th \(question->document\)"
        ) as caught:
            gate([a], [b], rules({"pair": "ko->th", **bound}))
        assert caught.value.next_step == "the pairs there: de->de, de->en, ko->en, ko->ko"


def test_a_guard_on_every_pair_of_languages(tmp_path: Path) -> None:
    a, b = two(tmp_path, with_pairs(0), with_pairs(12))
    result = gate([a], [b], rules({"max_drop": 0.2, "per_pair": {"max_drop": 0.0}}))
    assert [(check.language, check.verdict) for check in result.checks] == [
        (None, "no worse"), ("de->de", "no drop shown"), ("de->en", "no drop shown"), ("ko->en", "fail"),
        ("ko->ko", "no drop shown"),
    ]  # fmt: skip


def test_a_baseline_file_keeps_the_pairs_and_an_older_one_is_refused(tmp_path: Path) -> None:
    a, b = two(tmp_path, with_pairs(0), with_pairs(10))
    file = tmp_path / "baseline.json"
    write_baseline([a], file)
    assert only(gate([file], [b], rules({"pair": "ko->en"}))).verdict == "fail"
    assert only(gate([file], [file], rules({"pair": "ko->en"}))).n == 50
    old = json.loads(file.read_text("utf-8")) | {"format": 2}
    file.write_text(json.dumps(old), "utf-8")
    # it does not say what was measured
    with pytest.raises(DataError, match="a baseline file of format 2; this version reads 5"):
        gate([file], [b], rules({"pair": "ko->en"}))
    file.write_text('{"format": 5, "tasks": {}}', "utf-8")
    with pytest.raises(DataError, match="not a baseline file"):
        gate([file], [b], rules({"pair": "ko->en"}))


def test_a_candidate_does_not_decide_which_guards_there_are(tmp_path: Path) -> None:
    """Without the languages of documents in the candidate, the pairs of the baseline are guarded all the same."""
    unknown = [one | {"cell": {"query_lang": one["cell"]["query_lang"]}} for one in with_pairs(60)]
    a, b = two(tmp_path, with_pairs(0), unknown)
    rule = {"max_drop": 0.4, "per_pair": {"max_drop": 0.05}}
    checks = gate([a], [b], rules(rule)).checks
    assert [check.language for check in checks] == [None, "de->de", "de->en", "ko->en", "ko->ko"]
    assert checks[3].verdict == "fail"
    # with none in either run, the guard cannot tell
    c = write_run(tmp_path / "c", {"qa": unknown})
    found = gate([c], [b], rules(rule))
    assert (found.exit_code, found.checks[1].reason) == (2, "no row has the languages of question and document")
    nameless = [one | {"cell": {"query_lang": ""}} for one in unknown]
    d = write_run(tmp_path / "d", {"qa": nameless})
    found = gate([d], [d], rules({"max_drop": 0.4, "per_language": {}}))
    assert (found.exit_code, found.checks[1].reason) == (2, "no row has a language")


# Rules that contradict themselves


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("non_inferiority: true", "'non_inferiority' requires 'max_drop' or 'max_drop_relative'"),
        ("lower_is_better: true", "of acc, more is better: leave 'lower_is_better' out"),
        ("max_score: .5", "of acc, more is better: write 'min_score' for 'max_score'"),
        ("max_score: .5, per_pair: {max_drop: 0}", "of acc, more is better"),
        ("min_score: .5, per_language: {max_drop: 0}", "compares with the baseline: add 'max_drop'"),
        ("max_unpaired: .9", "less than or equal to 0.5"),
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
    assert lines[2].startswith("**FAIL: qa lost 30 right answers of 100 and won none")
    assert lines[4].startswith("en: 30 of 100 answers lost")
    assert lines[6:8] == ["baseline: unnamed model  ", "candidate: unnamed model"]
    assert lines[9].startswith("1 fail. Points")
    assert lines[11].split("|")[1].strip() == "verdict"
    assert lines[-1].startswith("- qa, acc, en: 30 worse: <code>r0</code>, <code>r1</code>, <code>r10</code>")
    assert lines[-1].endswith("and 10 more")
    assert gate_markdown(held(tmp_path / "same", [1] * 100, [1] * 100, {})).startswith("## mrag-eval gate: pass\n")


def test_the_first_rules_are_written_from_a_run_and_can_be_used(tmp_path: Path) -> None:
    from mrag_eval.cli import Session, app

    rows = [row(i, match=1.0, char3gram_recall=1.0) for i in range(150)]
    demo = {"data": {"benchmark": "demo"}}
    a = write_run(tmp_path / "a", {"mrag_demo_norag": rows}, config=demo, groups={"mrag_demo": ["mrag_demo_norag"]})
    mine = {"mine": plain([1] * 200), "tiny": plain([1] * 9)}
    write_run(a / "own", mine, date="2026-01-02T00-00-00.000000")
    file, markdown = tmp_path / "gate.yaml", tmp_path / "gate.md"
    done = CliRunner().invoke(app, ["gate", "--init", str(file), str(a)], obj=Session())
    assert done.exit_code == 0, done.output
    made = read_rules(file)
    # the main metric of the demo, for its group; a task that declares none has a rule on each of its metrics
    assert [(rule.task, rule.metric) for rule in made.rules] == [("mine", "acc"), ("mrag_demo", "char3gram_recall")]
    assert (made.correction, made.min_n) == ("holm", 100)
    assert [rule.max_unscored for rule in made.rules] == [rule.max_drop for rule in made.rules]
    # four tests, two each of a score and of the share without one: (z(1 - .05 / 4) + z(.8)) sqrt(.1 / 200) = .0689
    # beyond a fourth of that, which is allowed
    assert (made.rules[0].max_drop, "  # 200 rows: a drop of 8.9 points is found\n" in file.read_text()) == (0.02, True)
    assert "# too few rows for a rule: tiny: acc\n# without a rule: mrag_demo: match\n" in file.read_text()
    check = ["gate", "--baseline", str(a), "--candidate", str(a), "--rules", str(file), "--markdown", str(markdown)]
    assert CliRunner().invoke(app, check, obj=Session()).exit_code == 0
    assert markdown.read_text("utf-8").startswith("## mrag-eval gate: pass\n")
    again = CliRunner().invoke(app, ["gate", "--init", str(file), str(a)], obj=Session())
    assert again.exit_code == 2
    assert "exists already" in again.output


@pytest.mark.parametrize("names", [("ar", "de", "en"), ("ar", "de", "en", "es", "fi", "hi", "ja", "ru", "tr", "zh")])
def test_the_first_rules_find_what_one_language_lost(names: Sequence[str], tmp_path: Path) -> None:
    """Arabic falls from 72 to 40 of 100; as many answers rise as fall in the other languages."""

    def rows(right: Mapping[str, Sequence[bool]]) -> list[dict[str, Any]]:
        return [row(i, name, acc=float(x)) for name, values in right.items() for i, x in enumerate(values)]

    before = {name: [i < 72 for i in range(100)] for name in names}
    after = {name: [i < 40 if name == "ar" else 4 <= i < 76 for i in range(100)] for name in names}
    a, b = two(tmp_path, rows(before), rows(after))
    file = tmp_path / "gate.yaml"
    file.write_text(starter_rules([a]), "utf-8")
    made = read_rules(file)
    (guard,) = [rule.per_language for rule in made.rules]
    assert guard is not None
    assert (guard.max_drop, guard.only) == (0.05, None)
    found = gate([a], [b], made)
    assert [one.place for one in found.checks if one.verdict == "fail" and one.place] == ["ar"]
    assert gate_lines(found)[0].startswith("FAIL: Arabic lost 32 right answers of 100 and won none")
    assert gate([a], [a], made).exit_code == 0


def test_compare_reads_a_baseline_file(tmp_path: Path) -> None:
    a, b = two(tmp_path, plain([1] * 100), plain([0] * 10 + [1] * 90))
    file = tmp_path / "baseline.json"
    write_baseline([a], file)
    (found,) = compare([file], [b]).differences
    assert found == compare([a], [b]).differences[0]
    assert found.difference == pytest.approx(-0.1)


def test_a_toy_is_not_presented_as_a_gate(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"qa": plain([1] * 40)})
    with pytest.raises(
        DataError, match="40 rows make no gate: most drops of ten points of acc would pass it"
    ) as caught:
        starter_rules([a])
    # (z(1 - .05 / 2) + z(.8))^2 .1 / .1^2 = 78.5
    assert caught.value.next_step == "run more rows: about 79 show a drop of ten points"


# Who is compared


def of_model(folder: Path, name: str, values: Sequence[float], date: str = "2026-01-01T00-00-00.000000") -> Path:
    """Write a run of a model with a name and a date."""
    write_run(folder / name, {"qa": plain(values)}, date=date)
    results = folder / name / "some-model" / f"results_{date}.json"
    told = json.loads(results.read_text("utf-8")) | {"model_name": name, "date": 1767225600.0}
    results.write_text(json.dumps(told), "utf-8")
    return folder


def test_runs_of_several_models_are_listed_and_one_is_chosen_by_its_name(tmp_path: Path) -> None:
    a = of_model(tmp_path / "a", "old", [1] * 100)
    b = of_model(of_model(tmp_path / "b", "bad", [0] * 100), "good", [1] * 100, "2026-02-01T00-00-00.000000")
    with pytest.raises(DataError, match="runs of 2 models: bad, good") as caught:
        gate([a], [b], rules({}))
    assert "--model" in str(caught.value.next_step)
    for name, code in (("bad", 1), ("good", 0)):
        found = gate([a], [b], rules({}), model=name)
        assert (found.exit_code, found.runs["candidate"]) == (code, f"{name} (2026-01-01 00:00)")
        assert found.runs["baseline"] == "old (2026-01-01 00:00)"
        for shown in ("\n".join(gate_lines(found)), gate_markdown(found), junit(found)):
            assert f"{name} (2026-01-01 00:00)" in shown
    with pytest.raises(DataError, match="no run of the model other") as caught:
        gate([a], [b], rules({}), model="other")
    assert caught.value.next_step == "the models there: bad, good"
    with pytest.raises(DataError, match="runs of 2 models"):
        compare([a], [b])
    file = tmp_path / "baseline.json"
    with pytest.raises(ConfigError, match="differs nosuch: the runs have no such setting"):
        gate([a], [a], rules({}, differs=["nosuch"]))
    write_baseline([a], file)
    with pytest.raises(DataError, match="no run of the model new"):
        gate([file], [a], rules({}), baseline_model="new")
    with pytest.raises(DataError, match="runs of 2 models"):
        write_baseline([b], file)
    write_baseline([b], file, "good")
    assert gate([file], [a], rules({})).runs["baseline"] == "good (2026-01-01 00:00)"


def test_a_pinned_baseline_sees_a_drift_that_each_release_hides(tmp_path: Path) -> None:
    """Three points a release, of which five are allowed at once and eight since the pinned one."""
    runs = [of_model(tmp_path / str(i), f"v{i}", [0.0] * 60 * i + [1.0] * (2000 - 60 * i)) for i in range(4)]
    rule = {"max_drop": 0.05, "max_drop_pinned": 0.08}
    for i, code in ((1, 0), (2, 0), (3, 0)):
        assert gate([runs[i - 1]], [runs[i]], rules(rule)).exit_code == code
    found = gate([runs[2]], [runs[3]], rules(rule), pinned=[runs[0]])
    assert [(check.against, check.verdict, check.limit) for check in found.checks] == [
        ("baseline", "no worse", 0.05),
        ("pinned", "no drop shown", 0.08),
    ]
    assert (found.tests, list(found.runs)) == (2, ["baseline", "pinned", "candidate"])
    found = gate([runs[2]], [runs[3]], rules(rule | {"max_drop_pinned": 0.06}), pinned=[runs[0]])
    assert [check.verdict for check in found.checks] == ["no worse", "fail"]
    assert any(line.startswith("FAIL  acc, since the pinned") for line in gate_lines(found))


def test_what_no_rule_looks_at_is_named(tmp_path: Path) -> None:
    rows = [row(i, acc=1.0, f1=0.5, match=1.0) for i in range(100)]
    a = write_run(tmp_path / "a", {"qa": rows, "other": rows})
    found = gate([a], [a], rules({"task": "qa"}))
    assert found.without_rule == {"other": ("acc", "f1", "match"), "qa": ("f1", "match")}
    assert "no rule for other: acc, f1, match" in gate_lines(found)
    assert "Without a rule: other: acc, f1, match; qa: f1, match." in gate_markdown(found)


# Rows without a score


def test_a_rise_of_the_share_without_a_score_fails_with_its_reasons(tmp_path: Path) -> None:
    unread = [row(i) | {"unscored": {"acc": "answer failed (timeout)"}} for i in range(30)]
    a, b = two(tmp_path, plain([1] * 300), [*unread, *plain([1] * 300)[30:]])
    drop, unscored = gate([a], [b], rules({"max_drop": 0.02, "max_unscored": 0.02})).checks
    assert (unscored.verdict, unscored.unscored, unscored.baseline, unscored.candidate) == ("fail", True, 0.0, 0.1)
    assert unscored.why == "30 answer failed (timeout)"
    assert unscored.low is not None
    assert unscored.low > 0.02
    # the drop itself cannot be told: the thirty may all be wrong
    assert drop.verdict == "cannot tell"
    assert drop.reason is not None
    assert drop.reason.startswith(
        "30 of 300 rows are scored in one run only (30 answer failed (timeout)): with the worst"
    )
    few = gate([a], [b], rules({"max_drop": 0.2, "max_unscored": 0.2}))
    assert [check.verdict for check in few.checks] == ["no worse", "no worse"]


def test_rows_without_a_score_in_both_runs_or_few_of_them_change_nothing(tmp_path: Path) -> None:
    """11 rows of 1,190, of which each run alone lacks some, as a detector that sees short answers leaves them out."""
    values = [[row(i) if i in gone else row(i, acc=1.0) for i in range(1190)] for gone in (range(6), range(3, 11))]
    a, b = two(tmp_path, *values)
    check = only(gate([a], [b], rules({"max_drop": 0.01})))
    assert (check.verdict, check.n) == ("no worse", 1179)
    # three gained a score and five lost it: with the worst values eight rows fell and none rose
    check = only(gate([a], [b], rules({})))
    assert (check.verdict, "8 of 1190 rows are scored in one run only" in str(check.reason)) == ("cannot tell", True)


# A distance from 0


def territories(values: Sequence[float]) -> list[dict[str, Any]]:
    """Return a territory for each value; all of them count for both scores whose difference it is."""
    names = [f"concurrence.{name}" for name in ("delta_CS_difference", "Con_CS", "Non_CS")]
    return [row(i, **dict(zip(names, (value, 0.5, 0.5), strict=True))) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(0.02, 0.8, "fail"), (0.02, -0.8, "fail"), (-0.02, -0.8, "fail"), (-0.02, 0.8, "fail"), (0.8, -0.1, "no worse"),
     (-0.8, -0.1, "no worse"), (0.3, 0.3, "no drop shown"), (0.3, -0.3, "no drop shown")],
)  # fmt: skip
def test_a_delta_of_concurrence_is_better_near_zero(before: float, after: float, verdict: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, (2, 60))
    noise -= noise.mean(axis=1, keepdims=True)
    a, b = two(tmp_path, territories(before + noise[0]), territories(after + noise[1]))
    check = only(gate([a], [b], rules({"metric": "concurrence.delta_CS_difference"})))
    assert (check.verdict, check.baseline, check.candidate) == (verdict, pytest.approx(before), pytest.approx(after))
    ceiling = only(gate([a], [b], rules({"metric": "concurrence.delta_CS_difference", "max_score": 0.5})))
    assert ceiling.verdict == ("fail" if abs(after) > 0.5 else "holds")


# What no candidate could fail


def test_a_rule_that_no_candidate_could_fail_passes_nothing(tmp_path: Path) -> None:
    for i, (rule, reason) in enumerate(
        (
            ({"max_drop": 0.48, "min_n": 2}, "no candidate could fail: as much as the whole score is allowed"),
            ({"max_drop": 0.45, "min_n": 2}, "40 of about 470 rows needed to show even the worst candidate"),
        )
    ):
        for after in ([1, 0] * 20, [0] * 40):
            found = held(tmp_path / f"{i} {sum(after)}", [1, 0] * 20, after, rule)
            assert (only(found).verdict, only(found).reason, found.exit_code) == ("cannot tell", reason, 2)
    for allowed in (0.5, 0.9, 0.999):
        with pytest.raises(ConfigError, match=r"fails no candidate, as the baseline scores 0\.5") as caught:
            held(tmp_path / str(allowed), [1, 0] * 20, [0] * 40, {"max_drop": allowed})
        assert caught.value.next_step == "write a smaller one: 0.01 is one point"
    less = {"metric": "option_unread", "max_drop": 0.6}
    before, after = ([row(i, option_unread=x) for i, x in enumerate(of)] for of in ([1.0, 0.0] * 20, [1.0] * 40))
    a, b = two(tmp_path / "less", before, after)
    with pytest.raises(ConfigError, match=r"as the baseline scores 0\.5"):
        gate([a], [b], rules(less))
    # a baseline that has more to lose can fail it
    assert only(held(tmp_path / "more", [1] * 40, [0] * 40, {"max_drop": 0.6, "min_n": 2})).verdict == "fail"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"max_drop": 5}, "max_drop: 0.05 for 5 points"),
        ({"max_drop": 1}, "within that range"),
        ({"must_detect": 3}, "must_detect: 0.03 for 3 points"),
        ({"min_score": 70}, "min_score: 0.7 for 70 points"),
        ({"min_score": 0.0}, "within that range"),
        ({"per_language": {"max_drop": 5}}, "max_drop: 0.05 for 5 points"),
        ({"per_language": {"min_score": 40}}, "min_score: 0.4 for 40 points"),
        ({"metric": "option_unread", "max_score": 1.0}, "within that range"),
        ({"metric": "option_unread", "max_score": 20}, "max_score: 0.2 for 20 points"),
    ],
)
def test_a_bound_that_nothing_crosses_is_refused_with_the_likely_value(
    rule: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="decides nothing: values of") as caught:
        held(tmp_path, [1, 0] * 20, [0] * 40, rule)
    assert said in str(caught.value.next_step)


def test_a_floor_in_every_language(tmp_path: Path) -> None:
    rows = [row(i, lang, acc=float(i < right)) for lang, right in (("de", 60), ("ko", 30)) for i in range(100)]
    a, b = two(tmp_path, rows, rows)
    result = gate([a], [b], rules({"per_language": {"min_score": 0.5}, "min_score": 0.4}))
    assert [(c.language, c.floor, c.verdict) for c in result.checks] == [
        (None, 0.4, "holds"),
        ("de", 0.5, "holds"),
        ("ko", 0.5, "fail"),
    ]
    assert gate_lines(result)[0] == "FAIL: acc of Korean is 30.0, floor 50.0."


def test_languages_that_the_candidate_lacks_are_guarded(tmp_path: Path) -> None:
    before = [row(i, lang, acc=1.0) for lang in ("de", "ko") for i in range(100)]
    after = [{**one, "cell": {"query_lang": ""}, "values": {"acc": float(one["row"][:2] == "de")}} for one in before]
    a, b = two(tmp_path, before, after)
    checks = gate([a], [b], rules({"max_drop": 0.6, "per_language": {"max_drop": 0.05}})).checks
    assert [(check.language, check.verdict) for check in checks] == [
        (None, "no worse"),
        ("de", "no worse"),
        ("ko", "fail"),
    ]


@pytest.mark.parametrize("option", ["--html", "--markdown", "--junit"])
def test_a_device_is_no_file_to_write(option: str, tmp_path: Path) -> None:
    from mrag_eval.platform import check_output_file

    with pytest.raises(ConfigError, match=f"{option} /dev/null: a device or pipe, not a file") as caught:
        check_output_file(Path("/dev/null"), option)
    assert caught.value.next_step == f"name a file: {option} FILE"
    assert Path("/dev/null").is_char_device()
