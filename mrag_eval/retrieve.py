"""From rows to passages, stage by stage: plan, search, and the texts of what is kept.

Every stage takes all rows at once and hands on one record a row, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from mrag_eval.config import Retrieval
from mrag_eval.corpora import check_corpus, check_scope, corpus_path, open_index
from mrag_eval.errors import DataError
from mrag_eval.given import given_passages
from mrag_eval.ir_modes import Plan, brings_gold, plan_rows, searches
from mrag_eval.oracle import brought, completed
from mrag_eval.ranked import Ranked, Retrieved, Searched, ranking_dict
from mrag_eval.schema import Hit, Passage, RagDoc
from mrag_eval.search import search_plans

__all__ = [
    "Ranked",
    "Retrieved",
    "check_corpus",
    "corpus_path",
    "open_index",
    "ranked_passages",
    "ranking_dict",
    "retrieve",
]


class PassageSource(Protocol):
    """Where texts are looked up: an index, or anything else that knows passages by id."""

    def passages(self, ids: Sequence[str]) -> list[Passage]: ...


def retrieve(
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    *,
    corpus: Sequence[Passage] | None = None,
    siblings: Sequence[RagDoc] | None = None,
    use_cache: bool = True,
) -> list[Retrieved]:
    """Retrieve for all rows in one batch; the result is aligned with ``docs``.

    ``corpus`` holds the benchmark's own passages (``retrieval.corpus: benchmark``); ``siblings`` all rows of the
    benchmark, among which ``swap_docs`` finds partners.
    """
    if retrieval.mode == "given":
        return [Retrieved(given_passages(doc, retrieval)) for doc in docs]
    if not searches(retrieval):
        return [Retrieved()] * len(docs)
    if retrieval.mode == "oracle" and any(map(brings_gold, docs)):
        others = [doc for doc in docs if not brings_gold(doc)]
        looked_up = iter(retrieve(others, retrieval, corpus=corpus, use_cache=use_cache) if others else ())
        return [brought(doc, retrieval) if brings_gold(doc) else next(looked_up) for doc in docs]
    plans = _plans(docs, retrieval, siblings)
    index = open_index(retrieval, corpus)
    check_scope(index.languages, docs, plans, retrieval)
    found = search_plans(index, plans, retrieval, use_cache=use_cache)
    if retrieval.mode == "oracle":
        found = completed(found, plans, index, retrieval)
    return _with_texts(found, index)


def _plans(docs: Sequence[RagDoc], retrieval: Retrieval, siblings: Sequence[RagDoc] | None) -> list[Plan]:
    plans = plan_rows(docs, retrieval, siblings)
    for doc, plan in zip(docs, plans, strict=True):
        if not (plan.text or "").strip():
            raise DataError(f"row '{doc.id}' has an empty query, which cannot be searched for", "mend or drop the row")
    return plans


def _with_texts(found: Sequence[Searched], source: PassageSource) -> list[Retrieved]:
    """What is kept becomes hits with texts; the rankings stay without."""
    texts = _texts((kept.id for row in found for kept in row.kept), source)
    shared = {pid: Hit(p.id, p.lang, p.text, 0.0, 0, p.title, p.doc_id) for pid, p in texts.items()}
    return [
        Retrieved(
            tuple(replace(shared[kept.id], score=kept.score, rank=rank) for rank, kept in enumerate(row.kept, 1)),
            row.ranking,
            row.searchable,
        )
        for row in found
    ]


def ranked_passages(
    found: Sequence[Retrieved], retrieval: Retrieval, *, corpus: Sequence[Passage] | None = None
) -> dict[str, Passage]:
    """The passages of every ranking (``depth`` deep), by id, each once: for whoever reads more than what is shown.

    ``retrieval`` and ``corpus`` as :func:`retrieve` had them.
    """
    if not any(row.ranking for row in found):
        return {}
    return _texts((place.id for row in found for place in row.ranking), open_index(retrieval, corpus))


def _texts(ids: Iterable[str], source: PassageSource) -> dict[str, Passage]:
    wanted = list(dict.fromkeys(ids))
    return dict(zip(wanted, source.passages(wanted), strict=True))
