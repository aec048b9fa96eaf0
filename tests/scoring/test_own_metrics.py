"""Metrics of the user's: one record like ours, whatever names them; faults are reasons, a change is another metric."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks import TaskManager

import mrag_eval
from mrag_eval.config import Measurement
from mrag_eval.core import RagDoc, Scored
from mrag_eval.platform import ConfigError, DataError, FunctionName
from mrag_eval.report import compare, gate, load_results, read_rules, score_tables
from mrag_eval.scoring import (
    METRIC_NAMES,
    METRICS,
    TASK_MEASURES,
    control_of,
    is_loaded,
    metric,
    more_is_better,
    needs_of,
    scale_of,
    score_rows,
    tell_metrics,
    words_of,
)
from tests.task.test_hook import build, knows_everything, run
from tests.worlds.small import BASE, ScriptedLM

OURS = tuple(METRICS)
ROW = Scored(RagDoc("r", "When?", "en", ("1841",)), "In 1841")
BREVITY = '''
def brevity(row):
    """Shorter replies score higher."""
    return 1 / (1 + len(row.answer.split()))
'''


def forget(name: str) -> None:
    """Take a metric of the user's away; a declaration of it here ends what runs say of two metrics."""
    del METRICS[name]
    metric(name=name)(lambda row: 1.0)
    del METRICS[name]


@pytest.fixture(autouse=True)
def only_ours() -> Any:
    yield
    for name in {*METRICS} - {*OURS}:
        forget(name)


def scored(name: str, row: Scored = ROW) -> float | str:
    (scores,) = score_rows([row], [name], searched=False)
    return scores.values[name] if name in scores.values else scores.unscored[name]


def task_with(folder: Path, metrics: str, source: str = BREVITY) -> Path:
    (folder / "mine.py").write_text(source, "utf-8")
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in BASE.items() if key != "metrics")
    data = json.dumps({"benchmark": "jsonl", "path": str(folder / "questions.jsonl")})
    text = f"class: !function mrag_eval.task.RagTask\ntask: own\n{lines}data: {data}\nmetrics: {metrics}\n"
    path = folder / "own.yaml"
    path.write_text(text, "utf-8")
    return path


# ------------------------------------------------------------------ names


def test_a_function_of_a_task_file_is_a_metric(tasks: Path) -> None:
    task_with(tasks, "[match, !function mine.brevity]")
    results = run(tasks, "own")
    assert build(tasks, "own").blocks.metrics == ("match", "brevity")
    assert 0 < results["results"]["own"]["brevity,none"] <= 1
    scores = results["configs"]["own"]["scores"]["metrics"]["brevity"]
    assert scores["value"] == pytest.approx(results["results"]["own"]["brevity,none"])
    told = results["configs"]["own"]["measurement"]["instrument"]["metric:brevity"]
    assert told["function"] == "mine.brevity"
    assert len(told["sha256"]) == 64


def test_tasks_are_planned_with_functions_that_the_harness_has_not_loaded(tasks: Path) -> None:
    from mrag_eval.config import read_task_yaml, split_config

    path = task_with(tasks, "[!function mine.brevity]")
    config = read_task_yaml(path)
    assert split_config(config, METRIC_NAMES)[1].metrics == ("brevity",)


def test_a_function_that_the_harness_lists_without_loading_it_is_found(tasks: Path) -> None:
    from mrag_eval.config import listed_by, split_config

    task_with(tasks, "[!function mine.brevity]")
    config = listed_by(TaskManager(include_path=str(tasks), include_defaults=False))["own"].config
    assert config["metrics"] == [f"{tasks}/mine.brevity"]
    assert split_config(config, METRIC_NAMES)[1].metrics == ("brevity",)


def test_a_name_of_module_and_function_does_as_well(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task_with(tasks, "[match]")
    monkeypatch.chdir(tasks)
    assert build(tasks, "own", {"metrics": ["mine:brevity"]}).blocks.metrics == ("brevity",)


def test_an_installed_package_brings_metrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "acme_metrics.py").write_text(BREVITY, "utf-8")
    about = tmp_path / "acme_metrics-0.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-metrics\nVersion: 0.3\n", "utf-8")
    (about / "entry_points.txt").write_text("[mrag_eval.metrics]\nshortness = acme_metrics:brevity\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert "shortness" in METRIC_NAMES
    assert "longness" not in METRIC_NAMES
    assert scored("shortness") == pytest.approx(1 / 3)
    assert METRICS["shortness"].identity["package"] == "acme-metrics 0.3"


def test_the_decorator_makes_a_metric_and_leaves_the_function(tmp_path: Path) -> None:
    @mrag_eval.metric
    def has_year(row: Scored) -> bool:
        return "1841" in row.answer

    @metric(name="words", better="lower", unit="words", high=None)
    def counted(row: Scored) -> int:
        """Count words."""
        return len(row.answer.split())

    assert has_year(ROW) is True
    assert (scored("has_year"), scored("words")) == (1.0, 2.0)
    record = METRICS["words"]
    assert (record.summary, record.higher_is_better, record.scale.unit) == ("Count words.", False, "words")
    rows = [{"id": "a", "query": "When?", "query_lang": "en", "answers": ["1841"], "reply": "In 1841"}]
    given = mrag_eval.score(rows, metrics=["has_year", "words", "match"])
    assert given.frame.set_index("metric")["value"]["words"] == 2.0


def test_every_question_about_a_metric_has_an_answer_for_one_of_the_users() -> None:
    @metric(better="neither")
    def tone(row: Scored) -> float:
        return 0.5

    assert more_is_better("tone") is None
    assert needs_of("tone") == needs_of("match")
    assert control_of("tone").kind == "none"
    assert scale_of("tone").percent
    assert "tone" in METRIC_NAMES


@pytest.mark.parametrize("name", [*OURS, *TASK_MEASURES, "concurrence", "citations", "unscored"])
def test_a_name_of_ours_is_refused(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        metric(name=name)(lambda row: 1.0)
    assert "\n" not in caught.value.message
    assert name in caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize("name", ["hit@5", "rerank_mrr@10", "a b", "x,none", "own_proxy", "metric:x"])
def test_names_that_results_read_in_another_way_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name"):
        metric(name=name)(lambda row: 1.0)


def test_two_functions_of_one_name_are_refused_and_a_new_version_is_not() -> None:
    def tone(row: Scored) -> float:
        return 0.5

    metric(tone)
    metric(tone)

    def other(row: Scored) -> float:
        return 0.6

    with pytest.raises(ConfigError, match="two functions are called 'tone'"):
        metric(name="tone")(other)


def test_functions_of_one_name_in_two_folders_are_not_mixed(tmp_path: Path) -> None:
    for folder, source in (("a", BREVITY), ("b", BREVITY.replace("1 / (1", "1 / (2")), ("c", BREVITY)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(source, "utf-8")
    METRIC_NAMES.named(FunctionName.beside("mine.brevity", tmp_path / "a"), "task a")
    with pytest.raises(ConfigError, match=r"task b: two functions are called 'brevity': .*/a/mine, .*/b/mine"):
        METRIC_NAMES.named(FunctionName.beside("mine.brevity", tmp_path / "b"), "task b")
    # a copy is the same function
    assert METRIC_NAMES.named(FunctionName.beside("mine.brevity", tmp_path / "c"), "task c") == "brevity"


@pytest.mark.parametrize(
    ("metrics", "source", "said"),
    [
        ("[!function mine.brevty]", BREVITY, "mine has no 'brevty'; did you mean 'brevity'?"),
        ("[!function mine.brevity]", "import no_such_module\n" + BREVITY, "No module named 'no_such_module'"),
        ("[!function mine.brevity]", "brevity = 3\n", "'brevity' is not a function"),
        ("['mine:brevity']", "raise SystemError('two\\nlines')", "SystemError: two lines"),
        ("[brevity]", BREVITY, "unknown metric 'brevity'"),
    ],
)
def test_a_function_that_is_not_there_is_one_line(
    metrics: str, source: str, said: str, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mrag_eval.config import read_task_yaml, split_config

    monkeypatch.chdir(tasks)
    with pytest.raises(ConfigError) as caught:
        split_config(read_task_yaml(task_with(tasks, metrics, source)), METRIC_NAMES)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert "task own, metrics" in caught.value.message


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (math.nan, "probe: the score is nan, which is not a finite number"),
        (math.inf, "probe: the score is inf, which is not a finite number"),
        ("0.5", "probe returned '0.5', which is not a number"),
        (None, "probe returned None, which is not a number"),
        ([1.0], "probe returned [1.0], which is not a number"),
        (1j, "probe returned 1j, which is not a number"),
        (37, "probe returned 37, which is not between 0 and 1: @metric(low=..., high=...)"),
        (-0.1, "probe returned -0.1, which is not between 0 and 1: @metric(low=..., high=...)"),
        (10**400, "probe: OverflowError: int too large to convert to float"),
        (ValueError("two\nlines"), "probe: ValueError: two lines"),
        (KeyError("x"), "probe: KeyError: 'x'"),
        (SystemExit("I stop"), "probe: SystemExit: I stop"),
        (SystemExit(3), "probe: SystemExit: 3"),
        (StopIteration(), "probe: StopIteration:"),
        (True, 1.0),
        (0, 0.0),
        (0.25, 0.25),
    ],
)
def test_what_a_function_gives_is_a_value_or_a_reason(returned: Any, reason: str | float) -> None:
    @metric
    def probe(row: Scored) -> Any:
        if isinstance(returned, BaseException):
            raise returned
        return returned

    assert scored("probe") == reason


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("1 / 0", "picky: ZeroDivisionError: division by zero"), ("exit('I stop')", "picky: SystemExit: I stop")],
)
def test_a_faulty_row_is_counted_and_the_others_are_scored(fault: str, reason: str, tasks: Path) -> None:
    source = f"def picky(row):\n    return {fault} if row.doc.query_lang == 'de' else 1\n"
    task_with(tasks, "[match, !function mine.picky]", source)
    results = run(tasks, "own")
    scores = results["configs"]["own"]["scores"]
    assert scores["unscored"] == {"picky": {reason: 3}}
    assert (scores["metrics"]["picky"]["value"], scores["metrics"]["picky"]["n"]) == (1.0, 12)


# ------------------------------------------------------------------ identity


def ran(tasks: Path, out: Path, source: str = BREVITY) -> Path:
    path = task_with(tasks, "[match, !function mine.brevity]", source)
    mrag_eval.evaluate(ScriptedLM(knows_everything), str(path), output=out, apply_chat_template=False)
    return out


def test_a_changed_function_is_another_metric_and_changes_no_other(tasks: Path, tmp_path: Path) -> None:
    first, second = ran(tasks, tmp_path / "first"), ran(tasks, tmp_path / "second")
    assert {d.metric for d in compare([first], [second]).differences} == {"match", "brevity"}
    third = ran(tasks, tmp_path / "third", BREVITY.replace("1 / (1", "1 / (2"))
    found = compare([first], [third])
    assert {d.metric for d in found.differences} == {"match"}
    assert found.notes == ("own: 'brevity' is another metric in the second run: what computes it has changed",)
    assert "metric:brevity.sha256" in found.differs["own"]
    on_purpose = compare([first], [third], differs=["metric:brevity"])
    assert {d.metric for d in on_purpose.differences} == {"match", "brevity"}
    with pytest.raises(DataError, match="what computes it has changed"):
        compare([first], [third], metrics=["brevity"])
    rules = tmp_path / "gate.yaml"
    rules.write_text(
        json.dumps({"rules": [{"metric": name, "max_drop": 0.5} for name in ("match", "brevity")]}), "utf-8"
    )
    reasons = {check.metric: check.reason for check in gate([first], [third], read_rules(rules)).checks}
    assert reasons["brevity"] == "brevity is another metric in the candidate: what computes it has changed"
    assert "changed" not in str(reasons["match"])


@pytest.mark.parametrize("changed", ["better='lower'", "unit='words'", "low=None", "high=None", "high=2.0"])
def test_what_two_runs_declare_otherwise_is_two_metrics(changed: str, tasks: Path, tmp_path: Path) -> None:
    """Neither run decides, whichever is read first; what else they have is shown, and so is each alone."""
    plain = "import mrag_eval\n@mrag_eval.metric()\n" + BREVITY.lstrip()
    other = plain.replace("metric()", f"metric({changed})")
    runs = [ran(tasks, tmp_path / str(n), source) for n, source in enumerate([plain, other])]
    for order in (runs, runs[::-1]):
        forget("brevity")
        assert {d.metric for d in compare([order[0]], [order[0]]).differences} == {"match", "brevity"}
        assert {d.metric for d in compare([order[0]], [order[1]]).differences} == {"match"}
        for ask in (lambda: score_tables(order), lambda: scale_of("brevity"), lambda: more_is_better("brevity")):  # noqa: B023
            with pytest.raises(DataError, match="'brevity' is two metrics: better=") as caught:
                ask()
            assert all(str(run) in caught.value.message for run in order)


def test_a_run_tells_the_side_and_unit_of_its_metrics(tasks: Path, tmp_path: Path) -> None:
    source = "import mrag_eval\n@mrag_eval.metric(better='lower', unit='words', high=None)\n" + BREVITY.lstrip()
    out = ran(tasks, tmp_path / "out", source)
    told = dict(METRICS["brevity"].identity)
    del METRICS["brevity"]
    results = load_results(out)
    assert more_is_better("brevity") is False
    assert scale_of("brevity").unit == "words"
    assert not is_loaded("brevity")
    assert scored("brevity") == "the function of brevity is not loaded here"
    assert words_of(["brevity"]) == {"metric:brevity": told}
    assert "brevity" in set(results["metric"])
    # a function takes its place, and the record of a run takes none of ours
    tell_metrics({"metric:match": {"better": "lower"}}, "a record")
    assert more_is_better("match") is True
    task_with(tasks, "[!function mine.brevity]", source)
    build(tasks, "own")
    assert is_loaded("brevity")


def test_the_hash_of_a_measurement_has_the_function() -> None:
    one, other = (
        Measurement("t", instrument={"metric:tone": {"function": "m.tone", "sha256": sha}}) for sha in ("a" * 64, "b")
    )
    assert one.sha256 != other.sha256
