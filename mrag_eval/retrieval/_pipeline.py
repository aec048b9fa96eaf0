"""Retrieval for rows: the source of the block's mode, and the steps that all modes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mrag_eval import models
from mrag_eval.config import Agent, Retrieval
from mrag_eval.core import Passage, RagDoc, Retrieved, same_language
from mrag_eval.datasets import Benchmark, Published
from mrag_eval.platform import content_key
from mrag_eval.retrieval._shown_translation import with_translated_passages
from mrag_eval.retrieval._texts import PassageSource
from mrag_eval.retrieval._withheld import check_withholding, with_withheld
from mrag_eval.retrieval.sources import source_for


def retrieve(
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    *,
    corpus: list[Passage] | None = None,
    siblings: Sequence[RagDoc] | None = None,
    published: Published | None = None,
    agent: Agent | None = None,
    translator: models.Translator | None = None,
    use_cache: bool = True,
) -> list[Retrieved]:
    """Retrieve for all rows in one batch; the result is aligned with ``docs``.

    ``corpus`` holds the benchmark's own passages (``retrieval.corpus: benchmark``); ``siblings`` all rows of the
    benchmark, among which ``swap_docs`` finds partners; ``published`` the search results that come with it
    (``retrieval.corpus: published``); ``agent`` is the block of a loop; ``translator`` translates where the mode does
    (default: the one that is configured).
    """
    benchmark = Benchmark("", list(siblings or docs), corpus, published=published)
    source = source_for(retrieval, benchmark, agent, use_cache=use_cache)
    if translator is None:
        translator = translator_for(retrieval, docs)
    check_withholding(docs, retrieval)
    return as_shown(source.retrieve(docs, translator), docs, retrieval, translator, source)


def as_shown(
    found: Sequence[Retrieved],
    docs: Sequence[RagDoc],
    retrieval: Retrieval,
    translator: models.Translator | None,
    source: PassageSource,
) -> list[Retrieved]:
    """Return the rows with their passages as the prompt contains them: withheld, translated and shuffled if the block
    says so.
    """
    found = with_withheld(found, docs, retrieval, source)
    if translator is not None and (retrieval.documents_in != "none" or translates_given(docs)):
        found = with_translated_passages(found, docs, retrieval, translator)
    return found if retrieval.shuffle is None else _shuffled(found, docs, retrieval.shuffle)


def _shuffled(found: Sequence[Retrieved], docs: Sequence[RagDoc], seed: int) -> list[Retrieved]:
    """Return the passages in another order; their ranks remain those of the search."""
    out = []
    for row, doc in zip(found, docs, strict=True):
        rng = np.random.default_rng(int(content_key("order", seed, doc.id)[:16], 16))
        out.append(replace(row, passages=tuple(row.passages[i] for i in rng.permutation(len(row.passages)))))
    return out


def translates_given(docs: Sequence[RagDoc]) -> bool:
    return any(passage.shown_in is not None for doc in docs for passage in doc.given_passages)


def translator_for(
    retrieval: Retrieval, docs: Sequence[RagDoc], parallel: Sequence[Mapping[str, str]] = ()
) -> models.Translator | None:
    """Return the translator of a block; None if it translates nothing, or only questions in English into English.

    ``parallel`` are the benchmark's own parallel texts. Raises ConfigError if no translator is configured.
    """
    if not retrieval.translates:
        if not translates_given(docs):
            return None
        needed_by = "data.english without a file of translations (data.translations)"
        return models.build_translator(retrieval.translator, needed_by=needed_by, parallel=parallel)
    into_english = retrieval.queries_in == "en" and retrieval.documents_in == "none"
    if docs and into_english and all(same_language(doc.query_lang, "en") for doc in docs):
        return None
    chosen = retrieval.query_translation or retrieval.document_translation
    what = "a choice of retrieval.query_translation or document_translation" if chosen else f"mode '{retrieval.mode}'"
    return models.build_translator(retrieval.translator, needed_by=what, parallel=parallel)
