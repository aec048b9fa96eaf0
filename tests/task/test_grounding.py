"""Support in whole runs and logs: scores, what verify repeats, what compare and gate leave out, and errors before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import mrag_eval
from mrag_eval.config import GROUNDED, Grounded, listed_in
from mrag_eval.models import load_checker
from mrag_eval.planning import plan_for
from mrag_eval.platform import ConfigError
from mrag_eval.report import compare, gate, read_results, read_rules, read_samples, score_table, verify
from mrag_eval.scoring import EVIDENCE
from tests.task.test_hook import build, knows_everything
from tests.worlds import logs
from tests.worlds.classifiers import ENTAILMENT, EntailmentRule, Rule, classifier_folder
from tests.worlds.small import BASE, LANGS, TOPICS, ScriptedLM, write_task

METRICS = ["match", *GROUNDED]
TEXTS = [text for topic in TOPICS.values() for texts in topic.values() for text in texts]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    load_checker.cache_clear()
    return by_rule(tmp_path / "model")


def by_rule(folder: Path, seed: int = 0) -> Path:
    """Write a classifier whose model is, in this process, a rule."""
    classifier_folder(folder, TEXTS, longest=64, seed=seed)
    checker: Any = load_checker(Grounded(model=str(folder)))
    checker._model = Rule()
    return folder


def ran(tasks: Path, out: Path, folder: Path, lm: ScriptedLM | None = None) -> Path:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    settings = {"retrieval": {"mode": "all", "k": 2, "kind": "bm25"}, "judge": {"grounded": {"model": str(folder)}}}
    path = write_task(tasks, "grounded", **{**BASE, "metrics": METRICS}, data=data, **settings)
    mrag_eval.evaluate(lm or ScriptedLM(knows_everything), str(path), output=out, apply_chat_template=False)
    return out


def test_a_run_measures_support_by_language_pair_and_evidence(tasks: Path, tmp_path: Path, folder: Path) -> None:
    out = ran(tasks, tmp_path / "out", folder)
    (file,) = read_results([out])
    scores = file.leaves["grounded"].scores
    for name in GROUNDED:
        found = scores.metrics[name]
        assert found.n == 15, scores.unscored
        assert {*found.by["query_lang"]} == {*LANGS}
        assert {pair.partition("->")[0] for pair in found.by["pair"]} == {*LANGS}
        assert sum(cell.n for cell in found.by[EVIDENCE].values()) == 15
    assert sum(scores.metrics[name].value or 0 for name in GROUNDED[1:]) == pytest.approx(1)
    assert scores.metrics["right_supported"].value == pytest.approx(
        min(scores.metrics["match"].value or 0, scores.metrics["grounded"].value or 0)
    )
    path = file.samples("grounded")
    assert path is not None
    for sample in read_samples(path):
        grounding = sample.record.grounding
        assert grounding is not None
        for claim in grounding.claims:
            hits = [hit for hit in sample.passages if hit.id == claim.id]
            assert [(hit.rank, hit.lang) for hit in hits] == ([(claim.passage, claim.lang)] if claim.passage else [])
    (checked,) = verify([out], tasks)
    assert checked.findings == ()
    (line,) = (line for line in checked.unchecked if "which claims of an answer are supported" in line)
    assert "judge" not in line
    table = score_table([out])
    assert {*GROUNDED} <= {*table.columns}


def test_a_claim_names_the_passages_that_were_shown(tasks: Path, tmp_path: Path, folder: Path) -> None:
    out = ran(tasks, tmp_path / "out", folder)
    path = next(out.rglob("samples_grounded_*.jsonl"))
    text = path.read_text("utf-8")
    for key, value in (("passage", 99), ("passage", 0), ("id", "nobody"), ("lang", "fr")):
        lines = [json.loads(line) for line in text.splitlines()]
        changed = 0
        for line in lines:
            for claim in line["rows"]["grounding"]["claims"]:
                if claim.get("passage"):
                    claim[key] = value
                    changed += 1
        assert changed
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
        (checked,) = verify([out], tasks)
        faults = [finding.text for finding in checked.of("fault")]
        assert [fault for fault in faults if fault.startswith(f"grounding.claims.{key} of ")], (key, value)
        assert not [fault for fault in faults if "by its reply" in fault]


def test_another_classifier_leaves_out_its_metrics_alone(tasks: Path, tmp_path: Path, folder: Path) -> None:
    first = ran(tasks, tmp_path / "a", folder)
    # the same, wherever it lies and whatever it is called
    moved = shutil.copytree(folder, tmp_path / "elsewhere" / "another name")
    again = ran(tasks, tmp_path / "b", moved)
    assert {one.metric for one in compare([first], [again]).differences} == {*METRICS}
    other = ran(tasks, tmp_path / "c", by_rule(tmp_path / "other" / "model", seed=1))
    found = compare([first], [other])
    assert {one.metric for one in found.differences} == {"match"}
    on_purpose = compare([first], [other], differs=[f"metric:{name}" for name in GROUNDED])
    assert {one.metric for one in on_purpose.differences} == {*METRICS}
    rules = tmp_path / "gate.yaml"
    rules.write_text(json.dumps({"rules": [{"metric": "grounded", "max_drop": 0.5}]}), "utf-8")
    (check,) = gate([first], [again], read_rules(rules)).checks
    assert "another metric" not in str(check.reason)
    (check,) = gate([first], [other], read_rules(rules)).checks
    assert "grounded is another metric in the candidate" in str(check.reason)


@pytest.mark.parametrize(
    ("metrics", "judge", "said"),
    [
        (["grounded"], {}, "metric 'grounded' needs a classifier of support"),
        (["match", "wrong_supported"], {}, "metric 'wrong_supported' needs a classifier of support"),
        (["f1", "wrong_supported"], {"grounded": {"model": "x"}}, "needs one that says whether an answer is right"),
        (["grounded"], {"grounded": {"model": "x", "template": "{question}"}}, "it must hold {passage} once"),
        (["grounded"], {"grounded": {"max_length": 512}}, "judge.grounded"),
    ],
)
def test_what_is_missing_is_said_in_one_line(metrics: list[str], judge: Any, said: str, tasks: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    write_task(tasks, "t", **{**BASE, "metrics": metrics}, data=data, judge=judge, retrieval={"mode": "no_ir"})
    with pytest.raises(ConfigError) as error:
        build(tasks, "t")
    assert said in error.value.message
    assert "\n" not in error.value.message


def test_a_plan_names_the_classifier_that_a_metric_needs(tasks: Path, tmp_path: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl")}
    for metric, named in (("grounded", True), ("match", False)):
        judge = {"grounded": {"model": str(tmp_path / "missing")}}
        keys = {**BASE, "metrics": [metric], "data": data, "judge": judge}
        write_task(tasks, "t", **keys, retrieval={"mode": "no_ir"})
        needs = [need for need in plan_for(["t"], listed_in([tasks]), {}).needs if "classifier" in need.what]
        assert [need.ok for need in needs] == ([False] if named else [])


def test_a_classifier_that_is_not_there_is_named_before_anything_is_generated(tasks: Path, tmp_path: Path) -> None:
    lm = ScriptedLM(knows_everything)
    with pytest.raises(ConfigError, match=r"classifier .*missing cannot be loaded"):
        ran(tasks, tmp_path / "out", tmp_path / "missing", lm)
    assert not lm.prompts


def test_a_log_is_checked_by_the_same_classifier(tmp_path: Path) -> None:
    load_checker.cache_clear()
    rows = logs.rows_of(logs.own)
    texts = [text for turn in logs.TURNS for text in (turn.answer, *(text for _, text in turn.contexts))]
    folder = classifier_folder(tmp_path / "nli", texts, "BertForSequenceClassification", labels=ENTAILMENT, longest=128)
    checker: Any = load_checker(Grounded(model=str(folder)))
    checker._model = EntailmentRule()
    results = mrag_eval.score(rows, [*METRICS], grounded=str(folder), output=tmp_path / "out")
    (file,) = read_results([results.path])
    leaf = file.leaves["rows"]
    path = file.samples("rows")
    assert path is not None
    by_row = {sample.record.row: sample.record for sample in read_samples(path)}
    # q2 repeats its passage, q3 declines, q5 holds a quote of another row's
    assert by_row["q2"].values["grounded"] == 1.0
    assert by_row["q3"].unscored["grounded"] == "the model declined to answer"
    assert by_row["q5"].values["grounded"] < 1.0
    assert by_row["q2"].cell[EVIDENCE] == "de->de"
    assert leaf.measurement is not None
    told = leaf.measurement.instrument["metric:grounded"]
    assert told["head"] == "ForSequenceClassification"
    # the content decides, and the name is for people
    assert "model" not in told
    assert Path(leaf.measurement.setting["judge"]["grounded"]["model"]) == folder
    (checked,) = verify([results.path], Path(mrag_eval.__file__).parent.parent / "tasks")
    assert not [one for one in checked.findings if one.kind == "fault"]
    # by default it is one more metric
    default = mrag_eval.score(rows, grounded={"model": str(folder)}).frame
    assert "grounded" in {*default.metric}
    with pytest.raises(ConfigError, match="'grounded' needs a classifier of support") as error:
        mrag_eval.score(rows, ["grounded"])
    assert "--grounded MODEL" in str(error.value.next_step)
