"""The agents' loop as a way of retrieval, with the config file's models and a search of the task's corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mrag_eval.config import Agent, Retrieval
from mrag_eval.core import Failure, Hit, Passage, RagDoc, Ranked, Retrieved
from mrag_eval.platform import DataError, to_json
from mrag_eval.retrieval._corpora import check_pool, check_scope, open_index
from mrag_eval.retrieval._own_index import OwnIndex
from mrag_eval.retrieval._plan import RowPlan, query_text, scope_of
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrieval.agents._coral import Coral, Start
from mrag_eval.retrieval.agents._records import Candidate, LoopResult
from mrag_eval.retrieval.agents._seats import Agents

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index


def check_fixed_scope(retrieval: Retrieval, agent: Agent, docs: Sequence[RagDoc], held: Sequence[str]) -> None:
    """Raise CorpusError for a language of a row's fixed scope that the corpus does not hold.

    ``held`` are the corpus's languages.
    """
    if agent.corpora not in ("dynamic", "all"):
        plans = [RowPlan(doc.query, _fixed(doc, agent, ())) for doc in docs]
        check_scope(held, docs, plans, retrieval)


def retrieve_by_agents(
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    agent: Agent,
    agents: Agents,
    *,
    corpus: Sequence[Passage] | None = None,
    retriever: OwnIndex | None = None,
    use_cache: bool = True,
) -> list[Retrieved]:
    """Run the loop for all rows at once, over a ``retriever`` or an index; the result is aligned with ``docs``.

    A row's passages carry the critic's scores, its ``ranking`` is its valid documents, its ``searchable`` counts the
    corpora that were chosen in any round, and its ``trace`` records the loop.
    """
    for doc in docs:
        if not doc.query.strip():
            raise DataError(
                f"row '{doc.id}' has an empty query, which cannot be searched for", "correct the row, or leave it out"
            )
    index = open_index(retrieval, corpus) if retriever is None else retriever
    if retriever is None:
        check_pool(index.languages, retrieval)
    pool = retrieval.pool or tuple(index.languages)
    starts = [Start(doc, query_text(doc, retrieval), _fixed(doc, agent, pool)) for doc in docs]
    loop = Coral(agent, agents, _Searcher(index, retrieval, agent.k, use_cache), pool=pool, k=retrieval.k)
    names = agents.names
    return [_retrieved(outcome, index, pool, retrieval, names) for outcome in loop.run(starts)]


def _fixed(doc: RagDoc, agent: Agent, pool: tuple[str, ...]) -> tuple[str, ...]:
    """Return the scope of the IR mode that the block names; ``all`` is the whole pool."""
    if agent.corpora in ("dynamic", "all"):
        return pool
    roles = {"query": ("query",), "own": ("culture",), "own+en": ("culture", "en")}[agent.corpora]
    return scope_of(doc, roles, f"coral, agent.corpora={agent.corpora}") or pool


class _Searcher:
    """Search for the loop: one plan per request, merged as the index merges, cached on disk."""

    def __init__(self, index: Index | OwnIndex, retrieval: Retrieval, k: int, use_cache: bool) -> None:
        self._index, self._use_cache = index, use_cache
        self._retrieval = retrieval.model_copy(update={"k": k, "depth": None})
        self._passages: dict[str, Passage] = {}

    def __call__(self, requests: Sequence[tuple[str, tuple[str, ...], str]]) -> list[list[Hit] | Failure]:
        plans = [RowPlan(text, languages, langs=(lang,)) for text, languages, lang in requests]
        found = search_plans(self._index, plans, self._retrieval, use_cache=self._use_cache)
        wanted = dict.fromkeys(kept.id for row in found for kept in row.kept)
        new = [pid for pid in wanted if pid not in self._passages]
        self._passages |= dict(zip(new, self._index.passages(new), strict=True))
        return [
            row.failures[0]
            if row.failures
            else [self._hit(kept.id, kept.score, rank) for rank, kept in enumerate(row.kept, 1)]
            for row in found
        ]

    def _hit(self, pid: str, score: float, rank: int) -> Hit:
        p = self._passages[pid]
        return Hit(p.id, p.lang, p.text, score, rank, p.title, p.doc_id)


def _retrieved(
    outcome: LoopResult, index: Index | OwnIndex, pool: tuple[str, ...], retrieval: Retrieval, names: Mapping[str, str]
) -> Retrieved:
    chosen = tuple(dict.fromkeys(code for each in outcome.rounds for code in each.conditions.languages))
    ranking = outcome.valid[: retrieval.search_depth]
    return Retrieved(
        tuple(replace(c.hit, rank=rank, critic=to_json(c.scored())) for rank, c in enumerate(outcome.shown, 1)),
        tuple(Ranked(c.hit.id, c.hit.doc_id, c.hit.lang, _score(c)) for c in ranking),
        # if the planner failed at once, every corpus could have been chosen
        {lang: index.counts[lang] for lang in index.resolve(chosen or pool)},
        trace=replace(outcome.trace(), agents=names),
        failures=outcome.failures,
    )


def _score(candidate: Candidate) -> float:
    """Return the score that orders the ranking: the critic's total, or the retrieval score without a critic."""
    return candidate.hit.score if candidate.total is None else candidate.total
