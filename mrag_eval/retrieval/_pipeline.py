"""From rows to passages, stage by stage: plan, translate, search, rerank, the texts of what is kept, translate.

Every stage takes all rows at once and hands on one record a row, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mrag_eval.config import Retrieval
from mrag_eval.core import (
    ConfigError,
    DataError,
    Hit,
    Kept,
    Passage,
    RagDoc,
    Ranked,
    Retrieved,
    Searched,
    content_key,
    ranking_dict,
)
from mrag_eval.datasets import Published
from mrag_eval.models import Translator, build_translator
from mrag_eval.retrieval._corpora import (
    PassageSource,
    check_corpus,
    check_scope,
    corpus_path,
    open_index,
    open_passages,
    passages_by_id,
)
from mrag_eval.retrieval._plan import (
    Plan,
    askers,
    brings_gold,
    document_translation_of,
    plan_rows,
    query_translation_of,
    searches,
    translates,
)
from mrag_eval.retrieval._query_versions import translated_plans
from mrag_eval.retrieval._search import search_plans
from mrag_eval.retrieval._shown_translation import with_translated_passages
from mrag_eval.retrieval.rerank._rerank import open_reranker, rerank
from mrag_eval.retrieval.sources._given import given_passages
from mrag_eval.retrieval.sources._gold import brought, completed
from mrag_eval.retrieval.sources._published import published_hits
from mrag_eval.retrieval.sources._trec_run import from_run

__all__ = [
    "Ranked",
    "Retrieved",
    "check_corpus",
    "corpus_path",
    "open_index",
    "ranked_passages",
    "ranking_dict",
    "retrieve",
    "translator_for",
]


def retrieve(
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    *,
    corpus: Sequence[Passage] | None = None,
    siblings: Sequence[RagDoc] | None = None,
    published: Published | None = None,
    translator: Translator | None = None,
    use_cache: bool = True,
) -> list[Retrieved]:
    """Retrieve for all rows in one batch; the result is aligned with ``docs``.

    ``corpus`` holds the benchmark's own passages (``retrieval.corpus: benchmark``); ``siblings`` all rows of the
    benchmark, among which ``swap_docs`` finds partners; ``published`` the search results that come with it
    (``retrieval.corpus: published``); ``translator`` translates where the mode does (default: the one that is
    configured).
    """
    if not searches(retrieval) and retrieval.mode != "given":
        return [Retrieved()] * len(docs)
    if translator is None:
        translator = translator_for(retrieval)
    hits = published_hits(published, retrieval, siblings or docs)
    if hits is not None:
        ranked = hits.searched(docs)
        reranker = open_reranker(retrieval)
        if reranker is not None:
            plans = _plans(docs, retrieval, siblings)
            ranked = rerank(ranked, docs, plans, retrieval, reranker, hits, use_cache=use_cache)
        found = hits.labelled(docs, _with_texts(ranked, hits))
    elif retrieval.mode == "given":
        found = [Retrieved(given_passages(doc, retrieval)) for doc in docs]
    else:
        found = _searched(docs, retrieval, corpus, siblings, translator, use_cache)
    if translator is not None and document_translation_of(retrieval) != "none":
        found = with_translated_passages(found, docs, retrieval, translator)
    return found if retrieval.shuffle is None else _shuffled(found, docs, retrieval.shuffle)


def _shuffled(found: Sequence[Retrieved], docs: Sequence[RagDoc], seed: int) -> list[Retrieved]:
    """The passages in another order; their ranks stay those of the search."""
    out = []
    for row, doc in zip(found, docs, strict=True):
        rng = np.random.default_rng(int(content_key("order", seed, doc.id)[:16], 16))
        out.append(replace(row, passages=tuple(row.passages[i] for i in rng.permutation(len(row.passages)))))
    return out


def translator_for(retrieval: Retrieval, parallel: Sequence[Mapping[str, str]] = ()) -> Translator | None:
    """The translator of a block; None where nothing is translated, ConfigError where none is configured.

    ``parallel`` are the benchmark's own parallel texts.
    """
    if not translates(retrieval):
        return None
    chosen = retrieval.query_translation or retrieval.document_translation
    what = "a choice of retrieval.query_translation or document_translation" if chosen else f"mode '{retrieval.mode}'"
    return build_translator(retrieval.translator, needed_by=what, parallel=parallel)


def _searched(
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    corpus: Sequence[Passage] | None,
    siblings: Sequence[RagDoc] | None,
    translator: Translator | None,
    use_cache: bool,
) -> list[Retrieved]:
    if retrieval.mode == "oracle" and any(map(brings_gold, docs)):
        others = [doc for doc in docs if not brings_gold(doc)]
        looked_up = iter(_searched(others, retrieval, corpus, siblings, translator, use_cache) if others else ())
        return [brought(doc, retrieval) if brings_gold(doc) else next(looked_up) for doc in docs]
    if retrieval.mode == "coral":
        raise ConfigError(
            "retrieval mode 'coral' is run by agents", "mrag_eval.retrieval.agents._loop.retrieve_by_agents"
        )
    plans = _plans(docs, retrieval, siblings)
    reranker = open_reranker(retrieval)
    if retrieval.kind == "precomputed":
        source = open_passages(retrieval, corpus)
        found = from_run(docs, retrieval, source, source.counts)
        if reranker is not None:
            found = rerank(found, docs, plans, retrieval, reranker, source, use_cache=use_cache)
        return _with_texts(found, source)
    index = open_index(retrieval, corpus)
    check_scope(index.languages, docs, plans, retrieval)
    translated = translator is not None and query_translation_of(retrieval) != "none"
    if translator is not None and translated:
        asked = askers(docs, retrieval, siblings)
        plans = translated_plans(plans, asked, retrieval, index.languages, translator)
    found = search_plans(index, plans, retrieval, use_cache=use_cache)
    if retrieval.mode == "oracle":
        found = completed(found, plans, index, retrieval)
    if reranker is not None:
        found = rerank(found, docs, plans, retrieval, reranker, index, use_cache=use_cache)
    out = _with_texts(found, index)
    if not translated:
        return out
    return [replace(row, queries=(plan.text or "", *plan.versions)) for row, plan in zip(out, plans, strict=True)]


def _plans(docs: Sequence[RagDoc], retrieval: Retrieval, siblings: Sequence[RagDoc] | None) -> list[Plan]:
    plans = plan_rows(docs, retrieval, siblings)
    for doc, plan in zip(docs, plans, strict=True):
        if not (plan.text or "").strip():
            raise DataError(f"row '{doc.id}' has an empty query, which cannot be searched for", "mend or drop the row")
    return plans


def _with_texts(found: Sequence[Searched], source: PassageSource) -> list[Retrieved]:
    """What is kept becomes hits with texts; the rankings stay without."""
    texts = passages_by_id((kept.id for row in found for kept in row.kept), source)
    return [
        Retrieved(
            tuple(_hit(texts[kept.id], kept, rank) for rank, kept in enumerate(row.kept, 1)),
            row.ranking,
            row.searchable,
            reranked=row.reranked,
        )
        for row in found
    ]


def _hit(p: Passage, kept: Kept, rank: int) -> Hit:
    return Hit(p.id, p.lang, p.text, kept.score, rank, p.title, p.doc_id, kept.rerank_score)


def ranked_passages(
    found: Sequence[Retrieved],
    retrieval: Retrieval,
    *,
    corpus: Sequence[Passage] | None = None,
    published: Published | None = None,
) -> dict[str, Passage]:
    """The passages of every ranking (``depth`` deep), by id, each once: for whoever reads more than what is shown.

    ``retrieval``, ``corpus`` and ``published`` as :func:`retrieve` had them.
    """
    if not any(row.ranking for row in found):
        return {}
    source = published_hits(published, retrieval, ()) or open_passages(retrieval, corpus)
    return passages_by_id((place.id for row in found for place in row.ranking), source)
