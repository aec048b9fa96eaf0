"""A retriever of the user's in every IR mode: the numbers of the search that it wraps, or one line that refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import pytest

from mrag_eval.config import MODES, Agent, Retrieval, listed_in, validated
from mrag_eval.config._retrieval import Merge
from mrag_eval.core import Retrieved
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.models import Translator, build_translator, write_table
from mrag_eval.planning import plan_for
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval import open_index
from mrag_eval.retrieval._pipeline import as_shown
from mrag_eval.retrieval.agents._seats import Agents
from mrag_eval.retrieval.sources import Lacking, source_for
from tests.retrieval.agents.scripted import Asked, ScriptedAgent, enough, plan
from tests.retrieval.test_own_retriever import task_with
from tests.worlds.small import LANGS, TOPICS
from tests.worlds.tiny_models import bert_folder

# Modes that a retriever cannot serve, and the words of the reason.
REFUSED = {
    "given": "the passages come with the row",
    "system": "the system retrieves",
    "oracle": "it does not list the passages of a document",
    "balanced_weighted": "goes by the size of each language",
    "balanced_passages": "goes by the size of each language",
}
# Modes that need the names of all languages.
NEED_POOL = ("balanced", "coral", "translation")
# Modes that search no language in particular.
ANY_LANGUAGE = ("all", "crossrag")


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    found = load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )
    return replace(found, docs=[replace(doc, extra={"claimant_langs": LANGS}) for doc in found.docs])


@pytest.fixture
def translator(tmp_path: Path) -> Translator:
    parallel = [{lang: versions[lang][part] for lang in LANGS} for versions in TOPICS.values() for part in (0, 1)]
    write_table(parallel, tmp_path / "table.jsonl")
    block = {"mode": "trag", "translator": {"backend": "table", "path": str(tmp_path / "table.jsonl")}}
    return build_translator(validated(Retrieval, block, "test").translator, needed_by="test")


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a scripted agent choose corpora and rewrite the query."""

    def chosen(asked: Asked) -> str:
        return plan("en", "de") if asked.role == "plan" else plan("ru", query=f"{asked.question} 1841")

    agent = ScriptedAgent(planner=chosen, sufficiency=lambda asked: enough(False, "more"))
    monkeypatch.setattr("mrag_eval.retrieval.sources._agents.agents_for", lambda block: Agents.of(block, agent, agent))


def wrapped(bench: Benchmark, told: str | None = "languages") -> Callable[..., Any]:
    """Return BM25 over the benchmark's passages as a function of a user's: told languages, one language, or none."""
    index = open_index(Retrieval(mode="all", kind="bm25"), bench.corpus)

    def found(query: str, k: int, languages: list[str] | None) -> list[Any]:
        return index.search([query], k, languages=languages)[0]

    def search(query: str, lang: str, k: int) -> list[Any]:
        return found(query, k, None)

    def in_languages(query: str, lang: str, k: int, languages: list[str] | None = None) -> list[Any]:
        return found(query, k, languages)

    def in_language(query: str, lang: str, k: int, *, language: str | None) -> list[Any]:
        return found(query, k, language and [language])

    return {None: search, "languages": in_languages, "language": in_language}[told]


def counted(search: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    @wraps(search)
    def counting(*asked: Any, **more: Any) -> Any:
        calls.append(1)
        return search(*asked, **more)

    return counting


def found_by(bench: Benchmark, translator: Translator | None, **block: Any) -> list[Retrieved]:
    """Return what a block retrieves for the rows that its mode serves, as a task retrieves it."""
    retrieval = validated(Retrieval, {"k": 2, "depth": 4, **block}, "retrieval")
    source = source_for(retrieval, bench, Agent(k=2, max_rounds=2), use_cache=False)
    docs = source.select(bench.docs).docs
    source.check(docs, Lacking())
    used = translator if retrieval.translates else None
    return as_shown(source.retrieve(docs, used), docs, retrieval, used, source)


def same(own: list[Retrieved], ours: list[Retrieved]) -> bool:
    """Return whether two retrievals are one, but for the sizes of languages, which a retriever does not tell."""
    return own == [replace(row, searchable={}) for row in ours]


def pool(mode: str) -> dict[str, Any]:
    return {"pool": LANGS} if mode in NEED_POOL else {}


@pytest.mark.parametrize("told", ["languages", "language"])
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in REFUSED])
def test_a_wrapped_search_has_the_numbers_of_the_search(
    mode: str, told: str, benchmark_: Benchmark, translator: Translator, agents: None
) -> None:
    ours = found_by(benchmark_, translator, mode=mode, kind="bm25", **pool(mode))
    own = found_by(benchmark_, translator, mode=mode, retriever=wrapped(benchmark_, told), **pool(mode))
    assert same(own, ours)
    assert any(row.ranking for row in own) is MODES[mode].searches
    assert any(row.queries for row in own) is (mode in ("trag", "translation"))


@pytest.mark.parametrize("translated", ["none", "en", "each"])
@pytest.mark.parametrize("languages", [["query", "en"], ["zh"], ["all"]])
@pytest.mark.parametrize("merge", [*get_args(Merge), None])
def test_merges_roles_and_translations_set_by_hand_have_the_numbers_of_the_search(
    merge: str | None, languages: list[str], translated: str, benchmark_: Benchmark, translator: Translator
) -> None:
    block = {"mode": "all", "merge": merge, "languages": languages, "query_translation": translated, "pool": LANGS}
    if merge in ("quota_documents", "quota_passages", "rank_norm"):
        with pytest.raises(ConfigError, match=f"cannot be combined with merge '{merge}': it goes by the size"):
            found_by(benchmark_, translator, retriever=wrapped(benchmark_), **block)
        return
    if merge in ("centered", "turns"):
        with pytest.raises(ConfigError, match=f"with merge '{merge}': a retriever gives scores, and no vectors"):
            found_by(benchmark_, translator, retriever=wrapped(benchmark_), **block)
        return
    own = found_by(benchmark_, translator, retriever=wrapped(benchmark_), **block)
    one_by_one = found_by(benchmark_, translator, retriever=wrapped(benchmark_, "language"), **block)
    if merge == "score":
        # BM25 refuses it; a retriever that is told all languages merges them itself
        assert [len(row.ranking) for row in own] == [len(row.ranking) for row in one_by_one]
        return
    ours = found_by(benchmark_, translator, kind="bm25", **block)
    assert same(own, ours)
    assert same(one_by_one, ours)


@pytest.mark.parametrize(
    "key",
    [pytest.param("rerank", marks=pytest.mark.slow), "unanswerable", "shuffle", "document_translation", "query_text"],
)
@pytest.mark.parametrize("mode", ["qlang+en", "balanced"])
def test_what_follows_a_search_has_its_numbers(
    mode: str, key: str, benchmark_: Benchmark, translator: Translator, tmp_path: Path
) -> None:
    values = {"unanswerable": 0.5, "shuffle": 3, "document_translation": "query", "query_text": "question"}
    value = str(bert_folder(tmp_path / "cross")) if key == "rerank" else values[key]
    block = {"mode": mode, key: value, **pool(mode)}
    ours = found_by(benchmark_, translator, kind="bm25", **block)
    own = found_by(benchmark_, translator, retriever=wrapped(benchmark_), **block)
    assert same(own, ours)
    assert own != found_by(benchmark_, translator, retriever=wrapped(benchmark_), mode=mode, **pool(mode)) or (
        key == "query_text"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_that_a_retriever_cannot_serve_is_refused_in_one_line(
    mode: str, benchmark_: Benchmark, translator: Translator, agents: None
) -> None:
    def refused(told: str | None, **more: Any) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            found_by(benchmark_, translator, mode=mode, retriever=wrapped(benchmark_, told), **more)
        assert f"mode '{mode}'" in caught.value.message
        assert "\n" not in caught.value.message
        return caught.value

    if mode in REFUSED:
        assert REFUSED[mode] in refused("languages").message
        return
    if mode in NEED_POOL:
        assert "needs 'pool'" in refused("languages").message
    if mode in ANY_LANGUAGE or not MODES[mode].searches:
        found_by(benchmark_, translator, mode=mode, retriever=wrapped(benchmark_, None))
        return
    error = refused(None, **pool(mode))
    assert "cannot be told which to search" in error.message
    assert "'languages' (a list of codes; None: all) or 'language'" in str(error.next_step)


@pytest.mark.parametrize("told", ["languages", "language"])
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in REFUSED])
def test_a_plan_counts_the_searches_of_a_run(
    mode: str, told: str, tasks: Path, benchmark_: Benchmark, translator: Translator, agents: None
) -> None:
    calls: list[int] = []
    found_by(benchmark_, translator, mode=mode, retriever=counted(wrapped(benchmark_, told), calls), **pool(mode))
    task_with(tasks, "!function mine.search", mode=mode, **pool(mode))
    settings = {"agent.k": 2, "agent.max_rounds": 2}
    found = {cost.role: cost for cost in plan_for(["own"], listed_in([tasks]), settings).costs}
    if not calls:
        assert "retriever" not in found
        return
    cost = found["retriever"]
    assert (cost.model, cost.money, cost.tokens_in, cost.of_model) == ("mine.search", None, 0, False)
    # how many relevant languages the rows name is not known before they are read
    assert cost.calls >= len(calls) or (mode, told) == ("rel_langs", "language")
    assert cost.basis != "exact" or cost.calls == len(calls)


@pytest.mark.parametrize(("told", "calls"), [("{languages}", 15), ("{language}", 75)])
def test_a_plan_knows_how_a_service_is_told_languages_and_whether_its_key_is_set(
    told: str, calls: int, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    service = {"url": "http://localhost:1/search", "name": "s 2", "body": {"q": "{query}", "in": told}}
    task_with(tasks, json.dumps(service | {"api_key_env": "SEARCH_KEY"}), pool=list(LANGS))
    plan = plan_for(["own"], listed_in([tasks]), {})
    (cost,) = [cost for cost in plan.costs if not cost.of_model]
    assert (cost.model, cost.calls, cost.basis) == ("s 2", calls, "exact")
    assert [(need.what, need.fix) for need in plan.missing] == [
        ("retriever s 2, SEARCH_KEY not set", "export SEARCH_KEY=...")
    ]
