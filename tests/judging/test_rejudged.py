"""Verdicts given after a run: what follows from them, and what keeps the judges that it had."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import GROUNDED, Grounded, verdict_metrics
from mrag_eval.core import LABEL_SHARE, Claim, Grounding, Hit, Judgement, RagDoc, Scored, VerdictScale
from mrag_eval.datasets import sha256_file
from mrag_eval.models import load_checker
from mrag_eval.platform import UnwrittenError
from mrag_eval.report import LeafResult, read_results, read_samples, sample_files, verify
from mrag_eval.scoring import METRICS, more_is_better, score_rows
from tests.worlds.classifiers import Rule, classifier_folder
from tests.worlds.judged_runs import cli, judges_told, run_task, serving_judges
from tests.worlds.model_server import Answer, ModelServer, said
from tests.worlds.small import BASE, TOPICS, write_task

# What each judge says, whatever the row.
SAYS = {
    "strict": {"answer": "incorrect", "sufficient": "no", "grade": 0, "passages": "[]"},
    "kind": {"answer": "correct", "sufficient": "yes", "grade": 2, "passages": "[1]"},
    "moody": {"answer": "correct", "sufficient": "yes", "grade": 1, "passages": "[1]"},
}
# Judges that answer nothing.
DOWN: set[str] = set()
GRADE = """{% block user %}
<question>{{ query }}</question><reply>{{ answer }}</reply>
Reply with JSON: {"justification": "...", "grade": ...}
{% endblock %}
"""


@pytest.fixture
def judges(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Three judges of one opinion each, in the config file of the folder."""

    def script(body: dict[str, Any], attempt: int) -> Any:
        prompt = " ".join(turn["content"] for turn in body["messages"])
        if body["model"] in DOWN:
            return Answer(status=400, body={"error": "down"})
        own = SAYS[body["model"]]
        key = next((key for key in ("grade", "sufficient", "answer") if f'"{key}"' in prompt), "passages")
        if "<grade>" in prompt:
            return said(f"<grade>{own['grade']}</grade>")
        return said(str(own[key]) if key == "passages" else json.dumps({"justification": "seen", key: own[key]}))

    DOWN.clear()
    (tasks / "grade.jinja").write_text(GRADE, "utf-8")
    with serving_judges(tasks, script, monkeypatch, retries=0) as server:
        yield server


@pytest.fixture
def finished(tasks: Path, judges: ModelServer) -> Callable[..., Path]:
    """Run a task ``t`` that shows two passages; return the folder of its output."""

    def make(name: str, metrics: list[str], **judge: Any) -> Path:
        data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
        if judge.get("relevance"):
            rows = [json.loads(line) for line in (tasks / "questions.jsonl").read_text("utf-8").splitlines()]
            rows = [{k: v for k, v in row.items() if k not in ("relevant_ids", "gold_doc_lang")} for row in rows]
            (tasks / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        retrieval = {"mode": "all", "k": 2, "kind": "bm25"}
        write_task(tasks, "t", **{**BASE, "metrics": metrics}, data=data, judge=judge, retrieval=retrieval)
        run_task(tasks, "t", name)
        return Path(name)

    return make


def rejudged(out: Any, *flags: Any) -> None:
    done = cli("judge", "answers", out, *flags)
    assert done.exit_code == 0, f"{done.output} {done.exception}"


def leaf_of(out: Path) -> LeafResult:
    (file,) = read_results([out])
    return file.leaves["t"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "block"), [("context_sufficiency", {}), ("hit@2", {"relevance": {"labels": "judge"}})]
)
def test_what_other_judges_decided_keeps_them(metric: str, block: Any, finished: Callable[..., Path]) -> None:
    for name, judge in (("a", "strict"), ("b", "kind"), ("c", "moody")):
        finished(name, ["match", "judge_correct", metric], panel=[judge], **block)
    for name in ("a", "b"):
        rejudged(name, "--panel", "moody")
    found = leaf_of(Path("a")).measurement
    assert found is not None
    assert [*found.instrument["judges"]] == ["moody"]
    assert [*found.instrument[f"metric:{metric}"]["judges"]] == ["strict"]
    # two later verdicts of one panel, and one beside a run that this panel judged
    for other in ("b", "c"):
        compared = cli("compare", "a", other)
        assert compared.exit_code == 0, f"{compared.output} {compared.exception}"
        assert "### judge_correct" in compared.output
        assert f"### {metric}" not in compared.output
    Path("rules.yaml").write_text(f"rules: [{{task: '*', metric: '{metric}', max_drop: 0.1}}]", "utf-8")
    assert cli("gate", "--save", "base.json", "b").exit_code == 0
    gated = cli("gate", "--baseline", "base.json", "--candidate", "a", "--rules", "rules.yaml")
    assert gated.exit_code == 2, gated.output
    assert "another metric" in gated.output, gated.output
    assert more_is_better(metric) is True
    # those of the same panel are alike
    rejudged("c", "--panel", "moody")
    assert f"metric:{metric}" not in leaf_of(Path("c")).measurement.instrument  # type: ignore[union-attr]
    assert cli("export", "a", "--format", "eee", "-o", "eee").exit_code == 0
    told = judges_told(Path("eee"))
    assert told["judge_correct"] == ["moody"]
    assert told.get("context_sufficiency", ["strict"]) == ["strict"]
    # each share keeps the judges of its own metric
    share = "sufficiency_panel" if metric == "context_sufficiency" else "labelling"
    path = next(Path("a").rglob("judged_samples_*.jsonl"))
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in (line["rows"] for line in lines):
        if row.get(share):
            row[share]["models"] = row["panel"]["models"] if row.get("panel") else {"moody": "moody"}
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    scores = next(Path("a").rglob("judged_scores_*.json"))
    whole = json.loads(scores.read_text("utf-8")) | {"samples": sha256_file(path)}
    scores.write_text(json.dumps(whole, ensure_ascii=False), "utf-8")
    faults = [remark.text for remark in verify([Path("a")], Path("tasks"))[0].of("fault")]
    assert any(f"{share}.models are not the judges of the results" in fault for fault in faults), faults


@pytest.mark.parametrize("scale", [None, [0, 1], {"labels": ["wrong", "right"]}], ids=str)
def test_every_metric_that_changes_with_the_verdict_follows_it(scale: Any) -> None:
    """Score one row by every metric, with either verdict and nothing else changed."""
    kept = VerdictScale() if scale is None else VerdictScale.of(scale)
    doc = RagDoc("r", "Which year?", "en", answers=("1841",), relevant_ids=("a",))
    hit = Hit("a", "en", "It was built in 1841.", 1.0, 1, is_gold=True)
    row = Scored(doc, "1841", passages=(hit,), in_language=1.0)
    names = [f"{LABEL_SHARE}.right" if name == LABEL_SHARE else name for name in METRICS]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for verdict in kept.levels:
        claims: tuple[Claim, ...] = (Claim(0, 4, "supported", 1.0), Claim(0, 4, "not_found", 0.0))
        rows = [
            replace(row, judgement=Judgement(verdict, "unanimous", scale=kept), grounding=Grounding("en", (claim,)))
            for claim in claims
        ]
        for name in names:
            scores = score_rows(rows, (name, "judge_correct"), searched=False)
            found[name].append([{**score.values, **score.unscored}[name] for score in scores])
    changed = {name for name in names if found[name][0] != found[name][-1]}
    assert changed
    assert changed <= {*verdict_metrics(names), *GROUNDED[1:]}
    if scale is None:
        assert changed >= {*GROUNDED[1:], "judge_correct", "judged_accuracy"}


@pytest.mark.slow
def test_support_of_right_answers_follows_the_later_verdicts(finished: Callable[..., Path], tasks: Path) -> None:
    texts = [text for topic in TOPICS.values() for own in topic.values() for text in own]
    grounded = {"model": str(classifier_folder(tasks / "model", texts, longest=64))}
    load_checker(Grounded(**grounded))._model = Rule()
    metrics = ["match", "judge_correct", *GROUNDED]
    for name, judge in (("a", "strict"), ("b", "kind")):
        finished(name, metrics, panel=[judge], grounded=grounded)
    before = {name: leaf_of(Path(name)) for name in "ab"}
    rejudged("a", "--panel", "kind")
    after = leaf_of(Path("a"))
    for name in metrics:
        assert after.scores.metrics[name].value == before["b"].scores.metrics[name].value, name
        assert before["a"].scores.metrics[name].n, name
    assert before["a"].scores.metrics["right_supported"].value == 0.0 != after.scores.metrics["right_supported"].value
    assert cli("compare", "a", "b").exit_code == 0
    (path,) = Path("a").rglob("judged_samples_*")
    assert {sample.line["right_supported"] for sample in read_samples(path)} != {0.0}
    # grades say nothing of right or wrong: another metric does
    rejudged("a", "--panel", "kind", "--prompt", "grade.jinja", "--scale", "0,1,2")
    graded = leaf_of(Path("a"))
    assert graded.measurement is not None
    assert graded.measurement.instruments["metric:right_supported"]["right"] == "match"
    assert {*graded.scores.metrics} == {"match", "judge_grade", *GROUNDED}


@pytest.mark.parametrize("lost", ["scores", "samples", "neither"])
def test_samples_and_scores_count_together_or_not_at_all(
    lost: str, finished: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    finished("other", ["match", "judge_correct"], panel=["moody"])
    out = finished("out", ["match", "judge_correct"], panel=["strict"])
    own = leaf_of(out).scores
    rejudged(out, "--panel", "kind")
    (scores,), (samples,) = out.rglob("judged_scores_*"), out.rglob("judged_samples_*")
    assert leaf_of(out).scores.metrics["judge_correct"].value == 1.0
    if lost == "neither":  # but of other votes
        text = samples.read_text("utf-8")
        rejudged(out, "--panel", "moody")
        samples.write_text(text, "utf-8")
    else:
        (scores if lost == "scores" else samples).unlink()
    caplog.clear()
    assert leaf_of(out).scores == own
    (said,) = {record.getMessage() for record in caplog.records if "do not count" in record.getMessage()}
    assert said.startswith(str(samples if lost == "scores" else scores))
    assert "\n" not in said
    # rows and settings are the run's own as well
    (path,) = sample_files([out])
    assert path.name.startswith("samples_")
    refused = cli("compare", out, "other")
    assert "judges" in str(refused.exception)
    if lost == "scores":
        assert "what it measures is unknown" in str(cli("compare", samples, "other").exception)
    # judged again, they are whole
    rejudged(out, "--panel", "kind")
    assert leaf_of(out).scores.metrics["judge_correct"].value == 1.0
    assert sample_files([out]) == [samples]


def test_the_usual_place_is_the_same_however_it_is_spelled(finished: Callable[..., Path]) -> None:
    out = finished("out", ["match"])
    (path,) = out.rglob("samples_*")
    usual = path.with_name(f"judged_{path.name}")
    for panel, place in (("strict", usual), ("kind", usual.resolve()), ("strict", Path("out/../") / usual)):
        rejudged(path, "--panel", panel, "--output", place)
        assert leaf_of(out).scores.metrics["judge_correct"].value == float(panel == "kind")


@pytest.mark.parametrize("command", ["answers", "passages"])
def test_a_panel_without_a_vote_replaces_nothing(command: str, finished: Callable[..., Path]) -> None:
    out = finished("out", ["match", "judge_correct", "context_sufficiency"], panel=["kind"])
    judged = cli("judge", command, out, "--panel", "moody")
    assert judged.exit_code == 0, judged.output
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    DOWN.add("strict")
    dead = cli("judge", command, out, "--panel", "strict")
    error = dead.exception
    assert isinstance(error, UnwrittenError)
    assert error.exit_code == 1
    assert "no judge gave a vote: strict" in error.message
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    # one of several: the files are written all the same, as those of a run are
    some = cli("judge", command, out, "--panel", "strict,kind,moody")
    assert some.exit_code == 1
    assert "no vote was given by strict" in some.output
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} != before


def test_a_run_with_a_scale_is_judged_by_yes_or_no(finished: Callable[..., Path]) -> None:
    out = finished("out", ["match", "judge_grade"], panel=["kind"], prompt="./grade.jinja", scale=[0, 1, 2])
    error = cli("judge", "answers", out, "--prompt", "correctness", "--panel", "moody").exception
    assert "--scale yes/no" in str(error)
    rejudged(out, "--prompt", "correctness", "--panel", "moody", "--scale", "yes/no")
    leaf = leaf_of(out)
    assert {*leaf.scores.metrics} == {"match", "judged_accuracy", "judge_correct"}
    # as in a run without a scale
    finished("plain", ["match", "judge_correct"], panel=["moody"])
    compared = cli("compare", out, "plain")
    assert compared.exit_code == 0, f"{compared.output} {compared.exception}"
    assert "### judge_correct" in compared.output


TAGGED = GRADE.replace('Reply with JSON: {"justification": "...", "grade": ...}', "<grade>0 to 2</grade>")


def test_the_form_of_a_verdict_is_the_prompts(finished: Callable[..., Path], tasks: Path) -> None:
    (tasks / "tagged.jinja").write_text(TAGGED, "utf-8")
    out = finished("out", ["judge_grade"], panel=["kind"], prompt="./tagged.jinja", scale=[0, 1, 2], reply="tag")
    for prompt, flags in (("tagged.jinja", []), ("tagged.jinja", ["--reply", "tag"]), ("grade.jinja", [])):
        rejudged(out, "--prompt", prompt, "--panel", "moody", *flags)
        assert leaf_of(out).scores.metrics["judge_grade"].value == 0.5
    for prompt, wrong, right in (("tagged.jinja", "json", "tag"), ("grade.jinja", "tag", "json")):
        error = cli("judge", "answers", out, "--prompt", prompt, "--reply", wrong).exception
        assert f"--reply {right}" in str(error)
    # the run's own tag is not asked of a prompt for JSON
    rejudged(out, "--prompt", "correctness", "--panel", "moody", "--scale", "yes/no")
    assert leaf_of(out).scores.metrics["judge_correct"].value == 1.0
