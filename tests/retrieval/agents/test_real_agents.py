"""A small real model as planner and critic on real questions: it makes mistakes, so repairs and counts are tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval.config import Agent, ModelSpec, Retrieval
from mrag_eval.datasets import load_benchmark
from mrag_eval.models import AuxModel
from mrag_eval.platform import Store
from mrag_eval.retrieval.agents._loop import retrieve_by_agents
from mrag_eval.retrieval.agents._seats import Agents
from mrag_eval.retrievers import build_index
from mrag_eval.scoring import RowRecord, loop_line
from mrag_eval.scoring._agents_table import loop_record, loop_table
from tests.models.test_serving import served, weights  # noqa: F401
from tests.retrieval.agents.culture import ARTICLES, passages

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.timeout(1800)]

QUESTIONS, ROUNDS = 3, 2


def test_questions_of_click_through_two_rounds(
    served: str,  # noqa: F811
    weights: Path,  # noqa: F811
    test_data: Path,
    tmp_path: Path,
) -> None:
    loaded = load_benchmark({"benchmark": "click", "path": str(test_data / "click"), "category": "tradition"})
    docs = loaded.docs[:QUESTIONS]
    index = tmp_path / "index"
    build_index(passages(), index, kind="bm25")
    retrieval = Retrieval(mode="coral", corpus=str(index), query_text="question")
    agent = Agent(max_rounds=ROUNDS, k=1, max_corpora=2, generation={"max_tokens": 64})
    spec = ModelSpec(
        model="local-chat-completions", model_args={"model": str(weights), "base_url": served}, timeout=300
    )
    store = Store(tmp_path / "models.sqlite")
    small = AuxModel(spec, name="small", cache=store)
    found = retrieve_by_agents(docs, retrieval, agent, Agents.of(agent, small, small), use_cache=False)

    assert len(found) == QUESTIONS
    traces = [row.trace for row in found if row.trace is not None]
    for row, trace in zip(found, traces, strict=True):
        assert trace.stopped in ("sufficient", "max_rounds")
        assert 1 <= len(trace.rounds) <= ROUNDS
        assert all(set(each.languages) <= set(ARTICLES) for each in trace.rounds)
        assert all(1 <= len(each.languages) <= 2 for each in trace.rounds)
        assert "ko" in trace.rounds[0].languages
        assert len(row.passages) <= 5
        assert all(hit.critic is not None and hit.critic["total"] >= 6 for hit in row.passages)
    assert small.ledger.failures == {}
    rows = [
        RowRecord(doc.id, {}, {}, loop=loop_record(doc, trace, row.passages))
        for doc, trace, row in zip(docs, traces, found, strict=True)
    ]
    table = loop_table(rows, ("acc",))
    assert table is not None
    print(loop_line(table))

    # a rerun is answered from the cache with the same result
    again = AuxModel(spec, name="small", cache=store)
    repeated = retrieve_by_agents(docs, retrieval, agent, Agents.of(agent, again, again), use_cache=False)
    assert again.ledger.calls == 0
    assert [row.passages for row in repeated] == [row.passages for row in found]
