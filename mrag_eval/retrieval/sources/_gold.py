"""Gold passages (mode ``oracle``): the passages of a system whose retrieval never fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mrag_eval import models
from mrag_eval.config import GivenChoice, Retrieval
from mrag_eval.core import Kept, Passage, RagDoc, Ranked, Retrieved, Searched, normalize_language
from mrag_eval.datasets import Held
from mrag_eval.platform import DataError
from mrag_eval.retrieval._own_index import OwnIndex
from mrag_eval.retrieval._plan import RowPlan, Selection, query_text, scope_of
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrieval.sources._given import given_passages
from mrag_eval.retrieval.sources._index import IndexSearch
from mrag_eval.retrieval.sources._source import Lacking, Setup

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index


class GoldPassages(IndexSearch):
    """Return the passages that support the answer: those of the row, else those of its relevant documents."""

    def select(self, docs: Sequence[RagDoc]) -> Selection:
        """Return the rows with a known relevant document."""
        kept = [doc for doc in docs if doc.relevant_ids or _brings_gold(doc)]
        there = {doc.id for doc in kept}
        return Selection(kept, [doc for doc in docs if doc.id not in there], "no relevant document is known")

    def repeatable(self, docs: Sequence[RagDoc]) -> bool:
        """Return whether all rows come with their passages."""
        return all(map(_brings_gold, docs))

    def check(self, docs: Sequence[RagDoc], missing: Lacking) -> None:
        """Raise if there is no corpus for the rows that come without their passages."""
        others = [doc for doc in docs if not _brings_gold(doc)]
        if others:
            super().check(others, missing)

    def held(self, docs: Sequence[RagDoc]) -> Held:
        """Return the corpus of the rows that come without their passages; the others have theirs."""
        others = [doc for doc in docs if not _brings_gold(doc)]
        corpus = (super().held(others) if others else None) or Held.among("the rows' passages", ())
        return replace(corpus, holds=lambda doc, name: _brings_gold(doc) or corpus.holds(doc, name))

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Return the row's own gold passages, or those found among its relevant documents."""
        others = [doc for doc in docs if not _brings_gold(doc)]
        looked_up = iter(super().retrieve(others, translator) if others else ())
        # the first ``k`` supporting passages of the row are shown; all of them are the ranking, in its order
        gold = self._retrieval.model_copy(update={"given": GivenChoice(subset="gold")})
        out = []
        for doc in docs:
            hits = given_passages(doc, gold) if _brings_gold(doc) else ()
            ranking = tuple(Ranked(hit.id, hit.doc_id, hit.lang, hit.score) for hit in hits)
            out.append(Retrieved(hits[: gold.k], ranking) if _brings_gold(doc) else next(looked_up))
        return out

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the texts of the corpus, and of gold passages that come with the rows."""
        brought: dict[str, Passage] = {
            passage.id: passage for doc in self._benchmark.docs for passage in doc.given_passages if passage.is_gold
        }
        others = [pid for pid in ids if pid not in brought]
        found = dict(zip(others, super().passages(others), strict=True)) if others else {}
        return [brought.get(pid) or found[pid] for pid in ids]

    def _plans(self, docs: Sequence[RagDoc]) -> list[RowPlan]:
        return [_plan(doc, self._retrieval) for doc in docs]

    def _search(self, index: Index | OwnIndex, plans: Sequence[RowPlan]) -> list[Searched]:
        assert not isinstance(index, OwnIndex), "a rule of the mode"
        # an oracle is shown its documents: nothing is counted as searchable
        found = search_plans(index, plans, self._retrieval, use_cache=self._setup.use_cache, count_candidates=False)
        # a lexical search leaves out passages that share no word with the question: all of them between two languages
        named = index.passages_named({name for plan in plans for name in plan.candidates or ()})
        return [_with_rest(row, plan, index, self._retrieval, named) for row, plan in zip(found, plans, strict=True)]


def open_source(setup: Setup) -> GoldPassages:
    """Return the source of the mode ``oracle``."""
    return GoldPassages(setup)


def _brings_gold(doc: RagDoc) -> bool:
    """Return whether the row comes with its supporting passages, so that none need to be looked up."""
    return any(passage.is_gold for passage in doc.given_passages)


def _plan(doc: RagDoc, retrieval: Retrieval) -> RowPlan:
    """Return a search among the row's relevant documents alone, for the order of their passages."""
    if not doc.relevant_ids:
        raise DataError(
            f"row '{doc.id}' has no relevant_ids, which retrieval mode '{retrieval.mode}' needs",
            "add relevant_ids to the rows, or choose another retrieval.mode",
        )
    scope = None
    if retrieval.languages is not None:
        scope = scope_of(doc, retrieval.languages, retrieval.mode)
    elif doc.gold_doc_lang is not None:
        scope = (normalize_language(doc.gold_doc_lang),)
    return RowPlan(query_text(doc, retrieval), scope, doc.relevant_ids, row=doc.id, row_lang=doc.query_lang)


def _with_rest(
    row: Searched, plan: RowPlan, index: Index, retrieval: Retrieval, named: dict[str, list[Passage]]
) -> Searched:
    """Return the hits among a row's gold documents, followed by their other passages, in page order."""
    held = index.resolve(plan.languages)
    seen = {place.id for place in row.ranking}
    more = [
        Ranked(passage.id, passage.doc_id, passage.lang, 0.0)
        for name in plan.candidates or ()
        for passage in named[name]
        if passage.id not in seen and passage.lang in held
    ]
    room = retrieval.search_depth - len(row.ranking)
    if not more or room <= 0:
        return row
    ranking = (*row.ranking, *more[:room])
    return replace(row, ranking=ranking, kept=tuple(Kept(place.id, place.score) for place in ranking[: retrieval.k]))
