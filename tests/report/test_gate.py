"""The release gate: failures, passes, and cases that must not pass."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from scipy.special import gammaln
from typer.testing import CliRunner

from mrag_eval.platform import ConfigError, DataError
from mrag_eval.report import (
    GateResult,
    GateRules,
    compare,
    comparison_text,
    gate,
    gate_lines,
    gate_markdown,
    github_annotations,
    junit,
    read_rules,
    starter_rules,
    write_baseline,
)
from mrag_eval.scoring import METRICS, TASK_MEASURES, more_is_better, nearer_zero_is_better
from tests.report.runs import row, write_run
from tests.tables import single_spaced


def rules(*given: Mapping[str, Any], **top: Any) -> GateRules:
    return GateRules.model_validate({"min_n": 20, **top, "rules": list(given)})


def runs(
    tmp_path: Path, before: Sequence[float], after: Sequence[float], metric: str = "acc", **changes: Any
) -> tuple[Path, Path]:
    a = write_run(tmp_path / "a", {"qa": [row(i, **{metric: x}) for i, x in enumerate(before)]})
    b = write_run(tmp_path / "b", {"qa": [row(i, **{metric: x}) for i, x in enumerate(after)]}, **changes)
    return a, b


def held(tmp_path: Path, before: Sequence[float], after: Sequence[float], rule: Mapping[str, Any]) -> GateResult:
    a, b = runs(tmp_path, before, after)
    return gate([a], [b], rules({"metric": "acc", **rule}))


def unconditional(lost: int, gained: int, n: int) -> float:
    """Return the exact p-value of no drop, by a sum over all outcomes that are as extreme by (b - c) / sqrt(b + c)."""
    b, c = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = b + c <= n
    z = (b - c) / np.sqrt(np.maximum(b + c, 1))
    extreme = possible & (z >= (lost - gained) / (lost + gained) ** 0.5 - 1e-9)
    rest = np.where(possible, n - b - c, 0)
    ways = gammaln(n + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(rest + 1)
    shares = [*np.linspace(0.001, 0.499, 500), 0.5 - 1e-9]
    return float(max(np.exp(ways + (b + c) * np.log(q) + rest * np.log1p(-2 * q))[extreme].sum() for q in shares))


def test_a_clear_drop_fails(tmp_path: Path) -> None:
    result = held(tmp_path, [1] * 100, [0] * 10 + [1] * 90, {})
    (check,) = result.checks
    assert (check.verdict, result.exit_code) == ("fail", 1)
    # ten losses and no gain: at most C(100, 10) p^10 (1 - p)^90 / 2^10 and more, the largest where a tenth changes
    assert check.p_value == pytest.approx(unconditional(10, 0, 100), rel=1e-4)
    assert check.difference == pytest.approx(-0.1)


def test_no_change_passes(tmp_path: Path) -> None:
    result = held(tmp_path, [1, 0] * 50, [1, 0] * 50, {})
    assert (result.checks[0].verdict, result.exit_code) == ("no drop shown", 0)


def test_a_gain_passes(tmp_path: Path) -> None:
    (check,) = held(tmp_path, [0] * 10 + [1] * 90, [1] * 100, {}).checks
    # ten gains, and none or more of ten are expected always
    assert (check.verdict, check.p_value) == ("no worse", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ({"max_drop": 0.02}, "fail"),
        ({"max_drop": 0.12}, "no drop shown"),
        ({"max_drop_relative": 0.12}, "no drop shown"),
    ],
)
def test_a_drop_within_what_is_allowed_passes(tmp_path: Path, limit: Mapping[str, float], verdict: str) -> None:
    assert held(tmp_path, [1] * 100, [0] * 10 + [1] * 90, limit).checks[0].verdict == verdict


@pytest.mark.parametrize(
    ("metric", "rule", "verdict"),
    [
        ("option_unread", {}, "fail"),
        ("language_mix", {}, "fail"),
        ("acc", {}, "no worse"),
        ("hit@5", {}, "no worse"),
        ("a_metric_of_one_s_own", {}, "no worse"),
        ("a_metric_of_one_s_own", {"lower_is_better": False}, "no worse"),
        ("option_refused", {"lower_is_better": True}, "fail"),
        ("option_refused", {"lower_is_better": False}, "no worse"),
        ("option_refused", {}, "cannot tell"),
    ],
)
def test_the_metric_says_whether_a_rise_is_worse(
    metric: str, rule: dict[str, Any], verdict: str, tmp_path: Path
) -> None:
    a, b = runs(tmp_path, [0.0] * 100, [1.0] * 10 + [0.0] * 90, metric)
    (check,) = gate([a], [b], rules({"metric": metric, **rule})).checks
    assert check.verdict == verdict
    if verdict == "cannot tell":
        assert check.reason == (
            "neither more nor less of option_refused is better: write lower_is_better: true (or false) in the rule"
        )
    else:
        assert check.difference == pytest.approx(0.1)


def test_every_metric_falls_on_its_worse_side_alone(tmp_path: Path) -> None:
    """Every metric and measure of the package, up and down: one of the two fails, and the metric says which."""
    for metric in (*METRICS, *TASK_MEASURES, "recall@5", "ndcg@10_reranked"):
        more = False if nearer_zero_is_better(metric) else more_is_better(metric)
        rule = {"metric": metric} if more is not None else {"metric": metric, "lower_is_better": False}
        for before, after in ((0.0, 1.0), (1.0, 0.0)):
            # without a range, rows that all change alike say nothing of the spread
            apart = 1e-3 if nearer_zero_is_better(metric) else 0.0
            values = [
                [abs(value - apart * (i % spread)) for i in range(40)] for value, spread in ((before, 5), (after, 7))
            ]
            a, b = runs(tmp_path / f"{metric.replace('@', ' ')} {after}", *values, metric)
            (check,) = gate([a], [b], rules(rule)).checks
            worse = after < before if more is not False else after > before
            # a territory of a delta may count as often as there are territories: 40 exclude no change of one more
            delta = metric == "concurrence.delta_CS_difference"
            verdicts = ("cannot tell", "no drop shown") if delta else ("fail", "no worse")
            assert check.verdict == verdicts[not worse], metric


def test_scores_that_are_not_shares(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    before = rng.random(200)
    a, b = runs(tmp_path, before.tolist(), (before - 0.05 + rng.normal(0, 0.05, 200)).tolist(), "f1")
    (check,) = gate([a], [b], rules({"metric": "f1"})).checks
    assert check.verdict == "fail"
    (check,) = gate([a], [b], rules({"metric": "f1", "max_drop": 0.05})).checks
    assert check.verdict == "no drop shown"


def not_comparable(result: GateResult) -> str:
    (check,) = result.checks
    assert check.verdict == "cannot tell"
    assert result.exit_code == 2
    return str(check.reason)


def test_too_few_rows_are_no_pass(tmp_path: Path) -> None:
    assert not_comparable(held(tmp_path, [1] * 10, [1] * 10, {})) == "10 of 20 rows needed"


def test_a_missing_metric_does_not_pass(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rule on f1: no row of qa has that metric") as caught:
        held(tmp_path, [1] * 100, [1] * 100, {"metric": "f1"})
    assert caught.value.next_step == "the metrics there: acc"
    a, b = runs(tmp_path, [1] * 100, [1] * 100), runs(tmp_path / "other", [1] * 100, [1] * 100, "f1")
    assert not_comparable(gate([a[0]], [b[1]], rules({"metric": "acc"}))) == "the candidate has no acc"


def test_a_pair_where_no_row_knows_both_languages_is_refused(tmp_path: Path) -> None:
    a, b = runs(tmp_path, [1] * 30, [1] * 30)
    with pytest.raises(ConfigError, match="no row has the languages ar->en") as caught:
        gate([a], [b], rules({"metric": "acc", "pair": "ar->en"}))
    assert caught.value.next_step == "leave 'pair' out: no row knows both languages"


def test_a_missing_task_does_not_pass(tmp_path: Path) -> None:
    a, b = runs(tmp_path, [1] * 30, [1] * 30)
    with pytest.raises(ConfigError, match="rule on acc: no task of either run is called 'other'") as caught:
        gate([a], [b], rules({"metric": "acc", "task": "other"}))
    assert caught.value.next_step == "the tasks there: qa"
    write_run(a, {"more": [row(0, acc=1.0)]})
    assert not_comparable(gate([a], [b], rules({"metric": "acc"}))) == "more is not in the candidate"


def test_missing_rows_do_not_pass(tmp_path: Path) -> None:
    reason = not_comparable(held(tmp_path, [1] * 100, [1] * 60, {}))
    assert reason == "qa: 40 rows only in the baseline, 0 only in the candidate"


def test_answers_that_lost_their_score_do_not_pass(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"qa": [row(i, acc=1.0) for i in range(100)]})
    b = write_run(tmp_path / "b", {"qa": [row(i, acc=1.0) if i > 3 else row(i) for i in range(100)]})
    reason = not_comparable(gate([a], [b], rules({"metric": "acc", "max_unpaired": 0.03})))
    assert reason == "4 of 100 rows are scored in one run only, and max_unpaired is 0.03"
    assert gate([a], [b], rules({"metric": "acc", "max_unpaired": 0.04})).exit_code == 0
    # four losses of a hundred would be a drop, if these four are wrong; of five allowed, they are none
    reason = not_comparable(gate([a], [b], rules({"metric": "acc"})))
    assert reason == "4 of 100 rows are scored in one run only: with the worst values there the drop would be 4.0"
    assert gate([a], [b], rules({"metric": "acc", "max_drop": 0.05})).exit_code == 0


def test_other_settings_do_not_pass(tmp_path: Path) -> None:
    a, b = runs(tmp_path, [1] * 100, [1] * 100, config={"source": {"sha256": "other"}})
    assert "source.sha256" in not_comparable(gate([a], [b], rules({"metric": "acc"})))
    assert gate([a], [b], rules({"metric": "acc"}, differs=["source"])).exit_code == 0


def test_too_few_rows_to_show_what_must_be_detected(tmp_path: Path) -> None:
    before = [1, 0] * 50
    after = [0, 1, *before[2:]]
    # one of 100 rows rose: about ten must fall for p <= .05, so a true drop of about twelve is found in four of five
    assert "too few rows" in not_comparable(held(tmp_path, before, after, {"must_detect": 0.05}))
    assert held(tmp_path, before, after, {"must_detect": 0.12}).exit_code == 0
    # runs that are alike show no more
    assert "too few rows" in not_comparable(held(tmp_path / "same", before, before, {"must_detect": 0.03}))
    assert held(tmp_path / "alike", before, before, {"must_detect": 0.09}).exit_code == 0


def by_language(tmp_path: Path, losses: Mapping[str, int], n: int = 100) -> GateResult:
    def made(losses: Mapping[str, int]) -> list[dict[str, Any]]:
        return [row(i, lang=lang, acc=float(i >= losses.get(lang, 0))) for lang in ("de", "ko", "th") for i in range(n)]

    a = write_run(tmp_path / "a", {"qa": made({})})
    b = write_run(tmp_path / "b", {"qa": made(losses)})
    guard = {"max_drop": 0.0, "min_n": 30}
    return gate([a], [b], rules({"metric": "acc", "max_drop": 0.1, "per_language": guard}))


def test_one_language_that_falls_is_seen_where_the_whole_passes(tmp_path: Path) -> None:
    result = by_language(tmp_path, {"th": 10})
    assert [(c.language, c.verdict) for c in result.checks] == [
        (None, "no worse"),
        ("de", "no drop shown"),
        ("ko", "no drop shown"),
        ("th", "fail"),
    ]
    # half of the level is that of three languages, a sixth for each
    assert result.checks[3].p_value == pytest.approx(unconditional(10, 0, 100), rel=1e-4)
    assert result.checks[3].p_adjusted == pytest.approx(6 * unconditional(10, 0, 100), rel=1e-4)


def test_a_language_of_few_rows_is_not_comparable(tmp_path: Path) -> None:
    result = by_language(tmp_path, {}, n=20)
    assert {c.verdict for c in result.checks[1:]} == {"cannot tell"}
    assert result.exit_code == 2


def test_a_group_means_its_tasks(tmp_path: Path) -> None:
    def tasks(lost: int) -> dict[str, list[dict[str, Any]]]:
        return {f"qa_{x}": [row(i, lang=x, acc=float(i >= lost)) for i in range(20)] for x in ("de", "ko")}

    groups = {"qa": ["qa_de", "qa_ko"], "all_of_it": ["qa"]}
    a = write_run(tmp_path / "a", tasks(0), groups=groups)
    b = write_run(tmp_path / "b", tasks(6), groups=groups)
    for name in ("qa", "all_of_it", "qa_*"):
        (check,) = gate([a], [b], rules({"metric": "acc", "task": name})).checks
        assert (check.n, check.verdict) == (40, "fail")


def test_a_baseline_file_gives_the_same_outcome(tmp_path: Path) -> None:
    a, b = runs(tmp_path, [1] * 100, [0] * 6 + [1] * 94)
    file = tmp_path / "baseline.json"
    assert write_baseline([a], file) == 1
    chosen = rules({"metric": "acc"})
    assert gate([file], [b], chosen) == gate([a], [b], chosen)
    assert "doc" not in json.loads(file.read_text("utf-8"))["tasks"]["qa"]
    assert gate([file], [file], chosen).exit_code == 0


def test_a_baseline_keeps_who_translated(tmp_path: Path) -> None:
    def made(name: str, translator: str, content: str = "abc") -> Path:
        rows = [row(i, acc=1.0) for i in range(100)]
        told = {"translator": translator, "identity": {"model": translator, "sha256": content}}
        return write_run(tmp_path / name, {"qa": rows}, config={"scores": {"translation": told}})

    file = tmp_path / "baseline.json"
    write_baseline([made("a", "nllb small")], file)
    chosen = rules({"metric": "acc"})
    assert gate([file], [made("b", "nllb small")], chosen).exit_code == 0
    assert "translator.model" in not_comparable(gate([file], [made("c", "nllb large")], chosen))
    assert "translator.sha256" in not_comparable(gate([file], [made("d", "nllb small", "def")], chosen))


def test_a_baseline_without_finite_values_is_damaged(tmp_path: Path) -> None:
    a, _ = runs(tmp_path, [1] * 30, [1] * 30)
    file = tmp_path / "baseline.json"
    write_baseline([a], file)
    file.write_text(file.read_text("utf-8").replace('"acc": 1.0', '"acc": "NaN"', 1), "utf-8")
    with pytest.raises(DataError, match=r"baseline\.json: a damaged baseline file .*NaN"):
        gate([file], [a], rules({"metric": "acc"}))


@pytest.mark.parametrize("text", ["{", '{"format": 9}', '{"format": 1, "tasks": {"qa": {"rows": [[1]]}}}', "[]"])
def test_a_file_that_is_not_a_baseline_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"baseline\.json: "):
        gate([file], [file], rules({"metric": "acc"}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: [{metrik: acc}]", r"rules\[0\]: unknown key 'metrik'; did you mean 'metric'"),
        ("rules: []", "rules"),
        ("rules: [{metric: acc, max_drop: -1}]", r"rules\[0\]\.max_drop"),
        ("rules: [{metric: acc, max_drop: .inf}]", r"rules\[0\]\.max_drop"),
        ("rules: [{metric: acc, max_drop: .1, max_drop_relative: .1}]", "exclude each other"),
        ("a: [", "not readable as YAML"),
        ("rules: [{metric: acc, max_drop: .01, max_drop: .9}]", "the key 'max_drop' is given twice"),
        ("rules: [{metric: acc, min_score: .nan}]", r"rules\[0\]\.min_score"),
    ],
)
def test_a_fault_in_the_rules_names_the_file_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=said) as err:
        read_rules(file)
    assert str(file) in str(err.value)


def three(tmp_path: Path) -> GateResult:
    a = write_run(tmp_path / "a", {t: [row(i, acc=1.0) for i in range(30)] for t in ("bad", "good", "few: 1,2")})
    b = write_run(
        tmp_path / "b",
        {
            "bad": [row(i, acc=float(i > 9)) for i in range(30)],
            "good": [row(i, acc=1.0) for i in range(30)],
            "few: 1,2": [row(i, acc=1.0) for i in range(9)],
        },
    )
    return gate([a], [b], rules(*({"metric": "acc", "task": t} for t in ("bad", "good", "few: 1,2"))))


def test_lines_for_the_screen(tmp_path: Path) -> None:
    lines = [single_spaced(line) for line in gate_lines(three(tmp_path))]
    assert lines[0] == "FAIL: bad lost 10 right answers of 30 and won none (100.0 → 66.7, no drop allowed)."
    assert lines[1].startswith("FAIL acc · all · bad 100.0 → 66.7 -33.3 [")
    assert lines[2].strip().startswith("p .0")
    # of 30 rows without a change, one in ten may be lost: .9^30 = .042
    assert lines[3].startswith("pass acc · all · good 100.0 → 100.0 +0.0 [")
    assert lines[3].endswith("no drop shown, could miss 9.5")
    assert lines[4].startswith("cannot tell acc · all · few: 1,2 100.0 → 100.0")
    assert "9 of 20 rows needed" in lines[6]
    assert lines[-3:-1] == ["baseline: unnamed model", "candidate: unnamed model"]
    outcome = "1 fail, 1 cannot tell, 1 no drop shown"
    shared = "family-wise"
    assert lines[-1] == f"{outcome} · p: {shared}, 3 tests, level 0.05 · exit code 1"
    assert max(map(len, gate_lines(three(tmp_path)))) <= 120


@pytest.mark.parametrize("side", ["candidate", "baseline", "pinned", "save", "init", "compare"])
def test_a_folder_of_two_runs_is_refused_with_the_newest_as_the_value(side: str, tmp_path: Path) -> None:
    a, b = runs(tmp_path, [1] * 100, [0] * 100)
    runs(tmp_path, [1] * 100, [1] * 100, date="2026-02-01T00-00-00.000000")
    asked = {
        "candidate": lambda two: gate([a], [two], rules({"metric": "acc"})),
        "baseline": lambda two: gate([two], [a], rules({"metric": "acc"})),
        "pinned": lambda two: gate([a], [a], rules({"metric": "acc"}), pinned=[two]),
        "save": lambda two: write_baseline([two], tmp_path / "base.json"),
        "init": lambda two: starter_rules([two]),
        "compare": lambda two: compare([a], [two]),
    }[side]
    with pytest.raises(DataError) as refused:
        asked(b)
    newest = b / "some-model" / "results_2026-02-01T00-00-00.000000.json"
    assert refused.value.message.endswith("2 runs of qa, of 2026-01-01T00-00-00.000000 | 2026-02-01T00-00-00.000000")
    assert refused.value.next_step == f"name one of them: the newest is {newest}"
    asked(newest)


def test_a_run_that_was_repeated_with_the_same_scores_is_one(tmp_path: Path) -> None:
    a, b = runs(tmp_path, [1] * 100, [0] * 100)
    runs(tmp_path, [1] * 100, [0] * 100, date="2026-02-01T00-00-00.000000")
    assert gate([a], [b], rules({"metric": "acc"})).exit_code == 1


@pytest.mark.parametrize("last", [0.0, 1.0])
def test_a_run_that_was_given_again_for_what_failed_takes_the_place_of_the_first(last: float, tmp_path: Path) -> None:
    """What has a score keeps it; if it does not, there are two runs."""
    a, b = runs(tmp_path, [1] * 100, [0] * 100)
    rows = [{**row(i), "unscored": {"acc": "answer failed"}} if i < 5 else row(i, acc=0.0) for i in range(100)]
    write_run(tmp_path / "b", {"qa": rows})
    again = [row(i, acc=0.0 if i < 99 else last) for i in range(100)]
    write_run(tmp_path / "b", {"qa": again}, date="2026-02-01T00-00-00.000000")
    if last:
        with pytest.raises(DataError, match="2 runs of qa"):
            gate([a], [b], rules({"metric": "acc"}))
    else:
        assert gate([a], [b], rules({"metric": "acc"})).checks[0].n == 100


def test_an_improvement_is_called_one(tmp_path: Path) -> None:
    lines = gate_lines(held(tmp_path, [1] * 20 + [0] * 80, [1] * 60 + [0] * 40, {"max_drop": 0.02}))
    assert lines[0].startswith("Pass, and better: acc +40.0 [")
    assert single_spaced(lines[1]).startswith("pass acc · all 20.0 → 60.0 +40.0 [")
    assert lines[1].endswith("better")
    assert "p 1.000" not in "\n".join(lines)


def test_a_pair_that_fails_is_told_with_the_language_of_its_questions(tmp_path: Path) -> None:
    def made(lost: int) -> list[dict[str, Any]]:
        rows = []
        for i in range(160):
            one = row(i, "th" if i % 2 else "de", acc=float(i % 4 != 1 or i // 4 >= lost))
            one["cell"]["doc_lang"] = "en" if i % 4 < 2 else one["cell"]["query_lang"]
            rows.append(one)
        return rows

    a, b = write_run(tmp_path / "a", {"qa": made(0)}), write_run(tmp_path / "b", {"qa": made(20)})
    guards = {"max_drop": 0.5, "per_language": {"max_drop": 0.4}, "per_pair": {"max_drop": 0.1}}
    result = gate([a], [b], rules({"metric": "acc", **guards}))
    assert [check.language for check in result.checks if check.verdict == "fail"] == ["th->en"]
    assert gate_lines(result)[0] == (
        "FAIL: Thai lost 20 right answers of 80 and won none; th → en lost 20 right answers of 40 and won none "
        "(100.0 → 50.0, allowed −10.0)."
    )


def test_junit(tmp_path: Path) -> None:
    suite = ElementTree.fromstring(junit(three(tmp_path)))
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert [[part.tag for part in case] for case in suite] == [
        ["property", "property"],
        ["failure"],
        [],
        ["error"],
    ]


def test_for_github(tmp_path: Path) -> None:
    result = three(tmp_path)
    lines = github_annotations(result)
    assert lines[0].startswith("::error title=bad acc::FAIL%3A 100.0 → 66.7")
    assert lines[1].startswith("::warning title=few%3A 1%2C2 acc::")
    assert len(lines) == 2
    assert "| FAIL | bad | acc | 100.0 → 66.7 | -33.3 [" in single_spaced(gate_markdown(result))


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrag_eval.cli import Session, app

    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    a, b = runs(tmp_path, [1] * 100, [0] * 10 + [1] * 90)
    file, rule_file, xml = tmp_path / "baseline.json", tmp_path / "gate.yaml", tmp_path / "gate.xml"
    rule_file.write_text(yaml.safe_dump({"rules": [{"metric": "acc", "task": "qa"}]}), "utf-8")
    done = CliRunner().invoke(app, ["gate", "--save", str(file), str(a)], obj=Session())
    assert done.exit_code == 0, done.output
    where = ["--baseline", str(file), "--rules", str(rule_file)]
    done = CliRunner().invoke(app, ["gate", *where, "--candidate", str(b), "--junit", str(xml)], obj=Session())
    assert done.exit_code == 1
    assert "FAIL acc · all 100.0 → 90.0" in single_spaced(done.output)
    assert "::error title=qa acc" in done.output
    assert ElementTree.parse(xml).getroot().get("failures") == "1"
    assert "| FAIL | qa |" in single_spaced((tmp_path / "summary.md").read_text("utf-8"))
    done = CliRunner().invoke(app, ["gate", *where, "--candidate", str(a), "--json"], obj=Session())
    assert (done.exit_code, json.loads(done.stdout)["exit_code"]) == (0, 0)


def test_a_drop_of_rows_that_may_lack_those_that_gained_cannot_be_told(tmp_path: Path) -> None:
    """One row in fifty gains .8 and all others lose a little: most samples of 30 rows contain no gain."""
    losses = (0.066 + np.random.default_rng(0).normal(0, 0.02, 30)).tolist()
    a, b = runs(tmp_path, [0.9] * 30, [0.9 - loss for loss in losses], "f1")
    rule = {"metric": "f1", "max_drop": 0.05}
    result = gate([a], [b], rules(rule))
    (check,) = result.checks
    # a share q of rows that gained 1: (1 - q)^n = .0225, where (1 - q) mean - q = .05
    enough = np.log(0.0225) / np.log(1.05 / (1 + np.mean(losses)))
    assert (check.verdict, check.needed) == ("cannot tell", np.ceil(enough))
    assert check.reason == (
        f"a drop is likely, and 30 rows may lack those that gained much: about {check.needed} would show it"
    )
    assert result.exit_code == 2
    # without a drop there is no such remark
    again = gate([a], [b], rules(rule | {"max_drop": float(np.mean(losses))})).checks[0]
    assert (again.verdict, again.caution) == ("no drop shown", None)
    many = runs(tmp_path / "many", [0.9] * 300, [0.9 - loss for loss in losses * 10], "f1")
    (check,) = gate([many[0]], [many[1]], rules(rule)).checks
    assert (check.verdict, check.caution) == ("fail", None)


def test_two_runs_of_one_system_open_with_what_changed_between_them(tmp_path: Path) -> None:
    """Of runs without a name, and of two modes, nothing is said to have changed: the verdict is last."""
    a, b = runs(tmp_path, [1] * 40, [1, 0] * 20, config={"retrieval": {"k": 9}})
    c = write_run(tmp_path / "c", {"qa": [row(i, acc=1.0) for i in range(40)]}, config={"retrieval": {"mode": "all"}})
    given = rules({"metric": "acc", "max_drop": 0.05}, differs=["retrieval"])
    assert compare([a], [b], differs=["retrieval"]).cause is gate([a], [b], given).cause is None
    for path in tmp_path.rglob("results_*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "model_name": "mine"}), "utf-8")
    assert compare([a], [c], differs=["retrieval"]).cause is gate([a], [c], given).cause is None
    changed = "; what differs: retrieval.k (5 → 9)."
    found = compare([a], [b], differs=["retrieval"])
    opening = comparison_text(found).splitlines()[0]
    assert opening.startswith("b is worse than a: 50.0 against 100.0 by acc, -50.0 ")
    assert opening.endswith(f"40 paired rows{changed}")
    assert json.loads(comparison_text(found, "json"))["cause"] == changed[2:-1]
    result = gate([a], [b], given)
    assert gate_lines(result)[0].startswith("FAIL: ")
    assert gate_lines(result)[0].endswith(changed)
    assert changed in gate_markdown(result).splitlines()[2]
    assert compare([a], [a]).cause == "nothing that is recorded differs"
