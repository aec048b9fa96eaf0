"""Verdicts given after a run: what follows from them, and what keeps the judges that it had."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mrag_eval import harness
from mrag_eval.cli._app import Session, app
from mrag_eval.report import read_results
from mrag_eval.report.files._results import LeafResult
from tests.worlds.model_server import ModelServer, said
from tests.worlds.small import BASE, ScriptedLM, write_task

# What each judge says, whatever the row.
SAYS = {
    "strict": {"answer": "incorrect", "sufficient": "no", "grade": 0, "passages": "[]"},
    "kind": {"answer": "correct", "sufficient": "yes", "grade": 2, "passages": "[1]"},
    "moody": {"answer": "correct", "sufficient": "yes", "grade": 1, "passages": "[1]"},
}
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
        own = SAYS[body["model"]]
        key = next((key for key in ("grade", "sufficient", "answer") if f'"{key}"' in prompt), "passages")
        return said(str(own[key]) if key == "passages" else json.dumps({"justification": "seen", key: own[key]}))

    server = ModelServer(script)
    entry = {"model": "local-chat-completions", "retries": 0}
    spec = {name: {**entry, "model_args": {"model": name, "base_url": server.url}} for name in SAYS}
    monkeypatch.chdir(tasks)
    (tasks / "mrag.yaml").write_text(yaml.safe_dump({"models": spec, "judges": list(SAYS)}), "utf-8")
    (tasks / "grade.jinja").write_text(GRADE, "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tasks / "mrag.yaml"))
    monkeypatch.setenv("MRAG_CACHE", str(tasks / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    yield server
    server.close()


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
        manager = harness.task_manager([str(tasks)], {"pretrained": "org/small"})
        settings = {"model": ScriptedLM(lambda prompt: "1841"), "tasks": ["t"], "bootstrap_iters": 100}
        harness.evaluate({**settings, "log_samples": True}, manager, str(tasks / name))
        return Path(name)

    return make


def cli(*arguments: Any) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), obj=Session())


def rejudged(out: Any, *flags: Any) -> None:
    done = cli("judge", "answers", out, *flags)
    assert done.exit_code == 0, f"{done.output} {done.exception}"


def leaf_of(out: Path) -> LeafResult:
    (file,) = read_results([out])
    return file.leaves["t"]


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
    # those of the same panel are alike
    rejudged("c", "--panel", "moody")
    assert f"metric:{metric}" not in leaf_of(Path("c")).measurement.instrument  # type: ignore[union-attr]
    assert cli("export", "a", "--format", "eee", "-o", "eee").exit_code == 0
    (record,) = (file for file in Path("eee").rglob("*.json"))
    told = {
        one["metric_config"]["metric_name"]: [
            judge["model_info"]["name"] for judge in one["metric_config"]["llm_scoring"]["judges"]
        ]
        for one in json.loads(record.read_text("utf-8"))["evaluation_results"]
        if "llm_scoring" in one["metric_config"]
    }
    assert told["judge_correct"] == ["moody"]
    assert told.get("context_sufficiency", ["strict"]) == ["strict"]
