"""Replies of 100,000 nested lists from every model of a run: the rows concerned have a reason, and the run goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.models import _shared
from tests.retrieval.agents.scripted import GOOD, enough, plan
from tests.task.test_hook import run
from tests.worlds.judges import verdict
from tests.worlds.model_server import Answer, ModelServer, said
from tests.worlds.small import BASE, LANGS, TOPICS, write_task

DEEP = "[" * 100_000 + "]" * 100_000
OBJECTS = '{"answer": ' * 100_000 + "1" + "}" * 100_000


def reply(body: dict[str, Any], attempt: int) -> Answer:
    """Reply with nested lists to everything about bakeries, and sensibly to the rest."""
    prompt = "\n".join(turn["content"] for turn in body["messages"])
    seat = body["model"]
    # the German question is in all prompts on bakeries that are about that row alone
    if "Was verkauft die Bäckerei" in prompt or (seat == "translator" and "Olm" in prompt):
        return said(OBJECTS if seat == "judge" else DEEP)
    if seat == "judge":
        return said(verdict("correct"))
    if seat == "translator":
        return said(f"<translation>{translated(prompt)}</translation>")
    if "<documents>" in prompt:
        return said(enough(True))
    return said(GOOD if "<document>" in prompt else plan("de", "en"))


def translated(prompt: str) -> str:
    """Return the same topic's question in the language that the prompt asks for."""
    target = re.search(r"into (\w+)", prompt)
    assert target is not None
    lang = dict(zip(("English", "German", "Spanish", "Russian", "Chinese"), LANGS, strict=True))[target[1]]
    return next(of[lang][1] for of in TOPICS.values() if any(question in prompt for _, question, _ in of.values()))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["coral", "translation"])
def test_a_run_survives_nested_replies(
    tasks: Path, start: Callable[..., ModelServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    server = start(reply)
    names = ("planner", "critic", "judge", "translator")
    models = {
        name: {"model": "local-chat-completions", "model_args": {"model": name, "base_url": server.url}, "retries": 0}
        for name in names
    }
    config = {"models": models, "planner": "planner", "critic": "critic", "judges": ["judge"]}
    config["translator"] = {"backend": "lm", "model": "translator"}
    (tmp_path / "mrag.yaml").write_text(yaml.safe_dump(config), "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    keys = {**BASE, "metrics": ["judge_correct", "char3gram_recall"]}
    agent = {"agent": {"k": 2, "max_rounds": 2}} if mode == "coral" else {}
    retrieval = {"mode": mode, "k": 2, "kind": "bm25"}
    write_task(tasks, "nested", **keys, data=data, retrieval=retrieval, judge={"prompt": "correctness"}, **agent)
    for _ in range(2):  # the second run reads the replies from the cache
        _shared.clear()
        results = run(tasks, "nested")
        samples = {sample["doc"]["id"]: sample for sample in results["samples"]["nested"]}
        assert len(samples) == 15
        hit, spared = samples["q-bakery-de"], samples["q-ferry-de"]
        assert spared["rows"]["values"]["judge_correct"] == 1.0
        if mode == "coral":
            assert hit["rows"]["unscored"]["judge_correct"] == "no majority: 1 of 1 judge gave no verdict"
            assert hit["votes"]["judge"]["error"].startswith("unreadable: ")
            assert "planner: unreadable (kept previous)" in results["configs"]["nested"]["scores"]["loop"]["faults"]
            assert hit["doc"]["trace"]["faults"]
            assert not spared["doc"]["trace"]["faults"]
        else:
            assert set(hit["rows"]["unscored"].values()) == {"translation of queries failed (unreadable)"}
            assert hit["doc"]["searched_with"][0] == "Was verkauft die Bäckerei in Olm?"
            assert results["configs"]["nested"]["scores"]["translation"]["counts"]["queries"]
        json.dumps(results["results"], allow_nan=False)
