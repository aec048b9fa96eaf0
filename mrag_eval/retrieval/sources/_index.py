"""A search of our own in an index: plan, translate the queries, search, rerank, look up the texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mrag_eval import models
from mrag_eval.core import Passage, RagDoc, Retrieved, Searched
from mrag_eval.datasets import Held
from mrag_eval.retrieval import rerank
from mrag_eval.retrieval._corpora import (
    check_scope,
    held_by_index,
    held_languages,
    index_record,
    open_index,
    own_passages,
)
from mrag_eval.retrieval._merging import merge_version
from mrag_eval.retrieval._plan import (
    RowPlan,
    Selection,
    askers,
    plan_rows,
    refuse_empty,
    translated_plans,
    with_partner,
)
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrieval._texts import with_texts
from mrag_eval.retrieval.sources._source import Lacking, Relevant, Setup, Source

if TYPE_CHECKING:
    from mrag_eval.retrieval._own_index import OwnIndex
    from mrag_eval.retrievers import Index


class IndexSearch(Source):
    """Search the corpus that the block names, in the languages of its mode."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._retrieval, self._benchmark = setup, setup.retrieval, setup.benchmark
        self._index: dict[str, Any] | None = None

    def select(self, docs: Sequence[RagDoc]) -> Selection:
        """Return the rows that have a sibling, if the mode searches with its question; else all of them."""
        return with_partner(docs, self._retrieval)

    def check(self, docs: Sequence[RagDoc], missing: Lacking) -> None:
        """Raise if there is no corpus, or if it lacks a language that a row asks for.

        Reads only the index's manifest; for a benchmark's own passages only their languages.
        """
        with missing.allowed("corpus"):
            self._index = {**self._checked(docs), **merge_version(self._retrieval.merged_by)}

    def held(self, docs: Sequence[RagDoc]) -> Held | None:
        """Return the benchmark's passages, or the index."""
        if self._retrieval.corpus == "benchmark":
            return Held.among("the benchmark's corpus", self._benchmark.corpus or ())
        return held_by_index(open_index(self._retrieval), docs, self._retrieval.corpus)

    def relevant(self, docs: Sequence[RagDoc]) -> Relevant | None:
        """Return the passages of the index with, or of a document with, a relevant id."""
        ids = sorted({name for doc in docs for name in doc.relevant_ids})
        return Relevant.of(open_index(self._retrieval).passages_named(ids), docs, whole=False)

    def seats(self) -> dict[str, models.Seat]:
        """Return the seat of a listwise reranker."""
        return self._setup.seats()

    def check_models(self) -> None:
        """Raise ConfigError for a reranker, and CorpusError for an index's own model, that cannot be used."""
        retrieval = self._retrieval
        searched = self._index is not None and retrieval.corpus != "benchmark" and retrieval.retriever is None
        if searched and retrieval.query_vectors is None:
            open_index(retrieval).check_encoder()
        self._setup.check()

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Search for all rows at once."""
        retrieval = self._retrieval
        plans = self._plans(docs)
        refuse_empty(docs, plans)
        reranker = self._setup.reranker()
        index = self._opened(docs, plans)
        translated = translator is not None and retrieval.queries_in != "none"
        if translator is not None and translated:
            asked = askers(docs, retrieval, self._benchmark.docs)
            plans = translated_plans(plans, asked, retrieval, index.languages, translator)
        found = self._search(index, plans)
        if reranker is not None:
            found = rerank.rerank(found, docs, plans, retrieval, reranker, index, use_cache=self._setup.use_cache)
        out = with_texts(found, index)
        if not translated:
            return out
        return [
            replace(row, queries=(plan.text, *plan.versions), failures=(*plan.failures, *row.failures))
            for row, plan in zip(out, plans, strict=True)
        ]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the index's texts."""
        return open_index(self._retrieval, self._benchmark.corpus).passages(ids)

    def identity(self) -> dict[str, Any]:
        """Return the identity of the searched index, by its content, wherever that was read."""
        index = {key: value for key, value in (self._index or {}).items() if key not in ("recipe", "part")}
        return {"corpus": {**index, **own_passages(self._retrieval, self._benchmark)}}

    def record(self) -> dict[str, Any]:
        """Return the record of the searched index, for the results."""
        return {} if self._index is None else {"index": self._index}

    def documents(self) -> Mapping[str, str]:
        """Return the origin of the index's documents by language; empty for a benchmark's own passages."""
        if self._index is None or self._retrieval.corpus == "benchmark":
            return {}
        return open_index(self._retrieval).manifest.sources

    def _plans(self, docs: Sequence[RagDoc]) -> list[RowPlan]:
        return plan_rows(docs, self._retrieval, self._benchmark.docs)

    def _checked(self, docs: Sequence[RagDoc]) -> dict[str, Any]:
        """Return the record of what is searched; raise as :meth:`check` does."""
        held = held_languages(self._retrieval, self._benchmark.corpus)
        check_scope(held, docs, self._plans(docs), self._retrieval)
        return index_record(self._retrieval, held)

    def _opened(self, docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> Index | OwnIndex:
        """Return what is searched for these plans."""
        index = open_index(self._retrieval, self._benchmark.corpus)
        check_scope(index.languages, docs, plans, self._retrieval)
        return index

    def _search(self, index: Index | OwnIndex, plans: Sequence[RowPlan]) -> list[Searched]:
        return search_plans(index, plans, self._retrieval, use_cache=self._setup.use_cache)


def open_source(setup: Setup) -> IndexSearch:
    """Return the source of every mode that searches an index."""
    return IndexSearch(setup)
