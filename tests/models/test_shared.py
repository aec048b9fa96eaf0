"""One object per model and process: what judge, planner, reranker and translator share, and what they do not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.config import Agent, Judge, LmSpec, ModelSpec, Retrieval
from mrag_eval.config._agent import AgentBudget
from mrag_eval.core import Passage, RagDoc
from mrag_eval.judging import Case, build_panel, verdict_rubric
from mrag_eval.models import build_translator, get
from mrag_eval.models._shared import clear
from mrag_eval.platform import ConfigError, Store
from mrag_eval.retrieval.agents._loop import retrieve_by_agents
from mrag_eval.retrieval.agents._seats import agents_for
from mrag_eval.retrieval.rerank._listwise import ListQuery, ListwiseReranker
from mrag_eval.retrieval.rerank._rerank import open_reranker
from tests.models.conftest import ask
from tests.retrieval.agents.scripted import plan
from tests.worlds.judges import verdict
from tests.worlds.model_server import Answer, ModelServer, asked, said

CORPUS = [Passage("p1", "en", "The tower was built in 1841."), Passage("p2", "en", "The bakery sells bread.")]


def any_role(body: dict[str, Any], attempt: int) -> Answer:
    """Answers as judge, planner, reranker or translator, depending on the question."""
    prompt = asked(body)
    if "<generated_answer>" in prompt:
        return said(verdict("correct"))
    if "<passage_2>" in prompt:
        return said("[2, 1]")
    return said(plan("en")) if "<question>" in prompt else said("<translation>Der Turm ist alt.</translation>")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write the active config file, with its own cache."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    numbers = count()

    def write(models: dict[str, Any], **keys: Any) -> None:
        path = tmp_path / f"mrag-{next(numbers)}.yaml"
        path.write_text(yaml.safe_dump({"models": models, **keys}), "utf-8")
        monkeypatch.setenv("MRAG_CONFIG", str(path))

    return write


def entry(url: str = "http://127.0.0.1:9/v1", **keys: Any) -> dict[str, Any]:
    return {"model": "local-chat-completions", "model_args": {"model": "m", "base_url": url}, **keys}


# Each is asked once about ``text`` and returns the error that its caller receives, or None.


def judge(text: str) -> str | None:
    panel = build_panel(Judge(panel=("gpt",)))
    assert panel is not None
    (votes,), _ = panel.votes(verdict_rubric(), [Case(text, text, "en", ("1841",), "1841")])
    return None if votes["gpt"].verdict else str(votes["gpt"].error)


def planner(text: str) -> str | None:
    # one call per question: only the plan
    agent = Agent(max_rounds=1, filter="none", budget=AgentBudget(calls_per_question=1))
    retrieval = Retrieval(mode="coral", kind="bm25", query_text="question")
    (found,) = retrieve_by_agents([RagDoc(text, text, "en")], retrieval, agent, agents_for(agent), corpus=CORPUS)
    assert found.trace is not None
    return None if found.passages else found.trace.stopped


def reranker(text: str) -> str | None:
    block = Retrieval.model_validate({"mode": "all", "kind": "bm25", "rerank": {"kind": "listwise", "model": "gpt"}})
    found = open_reranker(block)
    assert isinstance(found, ListwiseReranker)
    (ordered,) = found.order([ListQuery(text, "en", [{"text": p.text, "title": "", "lang": "en"} for p in CORPUS])])
    assert ordered.order == ([1, 0] if ordered.fault is None else [0, 1])
    return ordered.fault


def translator(text: str) -> str | None:
    (done,) = build_translator(LmSpec(backend="lm", model="gpt")).translate([text], ["en"], "de")
    return None if done.is_translation else f"{done.outcome}: {done.detail}"


ROLES = (judge, planner, reranker, translator)


@pytest.mark.parametrize("twice", ROLES, ids=lambda role: role.__name__)
def test_one_limit_holds_over_judge_planner_reranker_and_translator(
    start: Callable[..., ModelServer], config: Callable[..., None], twice: Callable[[str], str | None]
) -> None:
    server = start(any_role)
    config({"gpt": entry(server.url, budget={"max_calls": 5})}, planner="gpt")
    spent = [role("Is the tower old?") for role in ROLES] + [twice("Is the bakery old?")]
    assert spent == [None] * 5
    assert len(server.requests) == 5
    refusal = "budget: not sent, max_calls 5 is reached"
    assert judge("Who built the tower?") == refusal
    assert planner("Who built the tower?") == "planner: budget"
    assert reranker("Who built the tower?") == "the reranker gave no order (budget)"
    assert translator("Who built the tower?") == f"failed: {refusal}"
    assert len(server.requests) == 5
    # earlier answers are in the cache and cost nothing
    assert [role("Is the tower old?") for role in ROLES] == [None] * 4


def test_tokens_are_counted_together_too(start: Callable[..., ModelServer], config: Callable[..., None]) -> None:
    server = start(any_role)  # every answer reports 11 + 7 tokens
    config({"gpt": entry(server.url, budget={"max_tokens": 30})})
    assert [judge("Is it old?"), translator("Is it old?")] == [None, None]
    assert reranker("Is it old?") == "the reranker gave no order (budget)"
    assert len(server.requests) == 2


def test_one_name_is_one_object_and_one_cache(config: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real = Store.__init__
    monkeypatch.setattr(Store, "__init__", lambda self, path, **rest: opened.append(path) or real(self, path, **rest))
    config({"gpt": entry(), "other": entry(retries=1)})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(get, ["gpt", "other"] * 50))
    assert len(set(map(id, found))) == 2
    assert [model.name for model in found[:2]] == ["gpt", "other"]
    panel = build_panel(Judge(panel=("gpt",)))
    assert panel is not None
    assert agents_for(Agent(planner="gpt")).planner.model is panel._seats["gpt"][1].model is get("gpt")
    assert [path.name for path in opened] == ["models.sqlite"]


def test_two_names_for_one_model_share_its_budget(
    start: Callable[..., ModelServer], config: Callable[..., None]
) -> None:
    server = start()
    spec = entry(server.url, budget={"max_calls": 3})
    config({"a": spec, "b": spec, "c": {**spec, "budget": {"max_calls": 4}}})
    a, b, written_out, c = get("a"), get("b"), get(ModelSpec.model_validate(spec)), get("c")
    # results and messages use a model's name
    assert [model.name for model in (a, b, written_out, c)] == ["a", "b", "m", "c"]
    replies = [model.seat().generate(ask(f"q{n}"))[0].reason for n, model in enumerate((a, b, written_out, a, b))]
    assert replies == [None, None, None, "budget", "budget"]
    # a different budget is a different entry
    assert [reply.reason for reply in c.seat().generate(ask(*"vwxyz"))].count("budget") == 1


def test_a_changed_config_file_is_followed(start: Callable[..., ModelServer], config: Callable[..., None]) -> None:
    server = start()
    config({"gpt": entry(server.url, budget={"max_calls": 1})})
    first = get("gpt")
    assert [reply.reason for reply in first.seat().generate(ask("a", "b"))].count("budget") == 1
    config({"gpt": entry(server.url, budget={"max_calls": 2})})
    assert get("gpt") is not first
    assert [reply.reason for reply in get("gpt").seat().generate(ask("c", "d", "e"))].count("budget") == 1
    config({"gpt": entry(server.url, budget={"max_calls": 1})})
    assert get("gpt") is first


def test_another_cache_folder_spends_the_same_budget(
    start: Callable[..., ModelServer], config: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    config({"gpt": entry(server.url, budget={"max_calls": 1})})
    assert get("gpt").seat().generate(ask("a"))[0].error is None
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "elsewhere"))
    assert get("gpt").seat().generate(ask("a"))[0].reason == "budget"


def test_cleared_models_begin_again(start: Callable[..., ModelServer], config: Callable[..., None]) -> None:
    server = start()
    config({"gpt": entry(server.url, budget={"max_calls": 1})})
    first = get("gpt")
    assert [reply.reason for reply in first.seat().generate(ask("a", "b"))] == [None, "budget"]
    clear()
    assert get("gpt") is not first
    assert [reply.cached for reply in get("gpt").seat().generate(ask("a", "b"))] == [True, False]
    assert len(server.requests) == 2


def test_a_name_that_does_not_exist_is_an_error(config: Callable[..., None]) -> None:
    config({"gpt": entry()})
    with pytest.raises(ConfigError, match="models has no 'gtp'; did you mean 'gpt'"):
        get("gtp")


CHILD = """
import os, sys
from mrag_eval.models import get
ask = lambda text: get("gpt").seat().generate([[{"role": "user", "content": text}]])[0].reason
assert [ask("a"), ask("b")] == [None, "budget"]
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        # a separate process has its own connection, loop and budget
        code = 0 if [ask("a"), ask("c"), ask("d")] == [None, None, "budget"] else 1
        sys.exit(code)
    assert os.waitpid(child, 0)[1] == 0
assert ask("e") == "budget"
assert ask("a") is None
"""


def test_a_forked_process_has_its_own_and_the_cache_is_closed_at_exit(
    start: Callable[..., ModelServer], config: Callable[..., None], tmp_path: Path
) -> None:
    server = start()
    config({"gpt": entry(server.url, budget={"max_calls": 1})})
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 2
    # an unclosed database would leave its log behind
    assert [file.name for file in (tmp_path / "cache").glob("models.sqlite*")] == ["models.sqlite"]
