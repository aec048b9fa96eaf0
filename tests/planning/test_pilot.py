"""Estimates from rows that ran: what the loop took, scaled to all rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli import main
from mrag_eval.retrieval.agents._seats import Agents
from tests.retrieval.agents.scripted import ScriptedAgent, plan
from tests.worlds.small import BASE, write_task

SERVED = "model: local-chat-completions, model_args: {model: m, base_url: 'http://127.0.0.1:1/v1'}"
SPEC = f"{{{SERVED}, price: {{input: 1, output: 2}}}}"


@pytest.fixture
def looped(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return a call of ``plan`` for a task of 15 rows in mode coral, whose agents are scripted."""
    monkeypatch.chdir(tasks)
    monkeypatch.setenv("MRAG_CACHE", str(tasks / "cache"))
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    settings = {"mode": "coral", "k": 2, "kind": "bm25"}
    write_task(tasks, "looped", **BASE, data=data, agent={"k": 2, "max_rounds": 2}, retrieval=settings)
    (tasks / "mrag.yaml").write_text(f"models: {{own: {SPEC}}}\nplanner: own\n", "utf-8")
    agent = ScriptedAgent(planner=lambda asked: plan("en"))
    monkeypatch.setattr("mrag_eval.retrieval.sources._agents.agents_for", lambda block: Agents.of(block, agent, agent))
    monkeypatch.setattr(Agents, "check", lambda self: None)

    def call(*words: str) -> dict[str, Any]:
        capsys: pytest.CaptureFixture[str] = words[0]  # type: ignore[assignment]
        with pytest.raises(SystemExit):
            main(["plan", "--tasks", "looped", "--include_path", ".", "--json", *words[1:]])
        text = capsys.readouterr().out
        found: dict[str, Any] = json.loads(text[text.index("{\n") :])
        return {**found, "by_role": {cost["role"]: cost for cost in found["costs"]}}

    return call


@pytest.mark.slow
def test_a_pilot_scales_what_its_rows_took(
    looped: Callable[..., dict[str, Any]], tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = looped(capsys)["by_role"]
    # two rounds: a plan each, two documents of three corpora each, a decision each
    assert (before["planner"]["calls"], before["critic"]["calls"]) == (15 * 2, 15 * 2 * (6 + 1))
    run = ["--model", "oracle_answer", "--no-retrieve-first"]
    found = looped(capsys, "--pilot", "3", *run)
    after = found["by_role"]
    # of the first three rows, in English, German and Spanish, each took one round: a plan, the two documents of each
    # corpus that the plan and the rule chose, and a decision; every call reads 100 tokens and writes 10
    assert after["planner"] | {"money": 0} == {
        "role": "planner",
        "model": "own",
        "calls": 15,
        "tokens_in": 1500,
        "tokens_out": 150,
        "basis": "pilot",
        "money": 0,
        "least": 15,
        "hours": None,
    }
    assert after["planner"]["money"] == pytest.approx((1500 * 1 + 150 * 2) / 1e6)
    assert after["critic"]["basis"] == "pilot"
    assert after["critic"]["calls"] < before["critic"]["calls"]
    assert found["hours"] > 0
    assert not list(tasks.glob("**/samples_*"))


@pytest.mark.slow
def test_a_finished_run_serves_as_a_pilot(
    looped: Callable[..., dict[str, Any]], tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(
            [
                *("run", "--model", "oracle_answer", "--tasks", "looped", "--include_path", ".", "--limit", "2"),
                *("--no-retrieve-first", "--log_samples", "--output_path", "out"),
            ]
        )
    capsys.readouterr()
    found = looped(capsys, "--pilot", "out")
    assert found["by_role"]["planner"]["calls"] == 15
    assert found["by_role"]["evaluated"]["calls"] == 15
    assert found["hours"] is None
