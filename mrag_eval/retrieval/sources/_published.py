"""Search results that come with a benchmark (``retrieval.corpus: published``) in place of a search of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mrag_eval import models
from mrag_eval.config import MODES, PUBLISHED, Mode, Retrieval
from mrag_eval.core import Passage, RagDoc, Retrieved, Searched, matching_languages
from mrag_eval.datasets import Published, passages_hash
from mrag_eval.platform import ConfigError, content_key, did_you_mean
from mrag_eval.retrieval._plan import RowPlan, Selection, swap_partners, with_partner
from mrag_eval.retrieval._texts import PassageSource
from mrag_eval.retrieval.sources._lists import Lists
from mrag_eval.retrieval.sources._source import Setup

# Keys that only a search of our own has.
_OF_A_SEARCH = ("languages", "merge", "kind", "embedder", "query_translation")


class PublishedLists(Lists):
    """Return the published results of one benchmark in one mode."""

    def __init__(self, setup: Setup, published: Published) -> None:
        """Raise ConfigError for a mode without published results, and for settings that only a search has."""
        super().__init__(setup)
        retrieval = setup.retrieval
        self._run = _run_shown(published, retrieval)
        changed = "flip" if published.flip else f"documents={published.kept}" if published.kept != "all" else None
        if changed is not None and retrieval.rerank is not None:
            raise ConfigError(
                f"data.{changed} changes the first {retrieval.k} hits, and retrieval.rerank would show others",
                "leave one of them out",
            )
        for key in _OF_A_SEARCH:
            if getattr(retrieval, key) is not None:
                raise ConfigError(f"retrieval: '{key}' cannot be combined with corpus 'published'", "leave it out")
        self._published = published
        self._partners = swap_partners(setup.benchmark.docs) if retrieval.preset.swaps else {}

    def select(self, docs: Sequence[RagDoc]) -> Selection:
        """Return the rows with published results; if the mode needs a sibling, only those that have one."""
        covered = [doc for doc in docs if doc.id in self._run and self._query_row_id(doc) in self._run]
        return replace(with_partner(covered, self._retrieval), without_documents=len(docs) - len(covered))

    def repeatable(self, docs: Sequence[RagDoc]) -> bool:
        """Return whether the lists are shown as they were published, without a reranker."""
        return self._retrieval.rerank is None

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Return the published lists, with the annotators' labels."""
        found = super().retrieve(docs, translator)
        return [self._labelled(doc, row) for doc, row in zip(docs, found, strict=True)]

    def _found(self, docs: Sequence[RagDoc], plans: Sequence[RowPlan]) -> tuple[list[Searched], PassageSource]:
        return [self._list(doc, plan.languages) for doc, plan in zip(docs, plans, strict=True)], self

    def _texts(self) -> PassageSource:
        return self

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the published texts."""
        return [self._published.passages[name] for name in ids]

    def identity(self) -> dict[str, Any]:
        """Return the hashes of the lists and of their texts; the hash of the rows covers neither."""
        texts = passages_hash(self._published.passages.values())
        shown = {mode: self._published.shown(mode, self._retrieval.k) for mode in self._published.runs}
        return {"corpus": {"content_hash": texts, "runs": content_key(shown)}}

    def _list(self, doc: RagDoc, languages: Sequence[str] | None) -> Searched:
        """Return a row's published results in the form of a search."""
        texts = self._published.passages
        hits = self._run[self._query_row_id(doc)][: self._retrieval.search_depth]
        pool = self._published.searchable.get(doc.id, {})
        scope = set(pool)
        if languages is not None:
            scope = {code for lang in languages for code in matching_languages(lang, pool)}
        return self._searched(
            ((texts[name], score) for name, score in hits), {lang: n for lang, n in pool.items() if lang in scope}
        )

    def _labelled(self, doc: RagDoc, row: Retrieved) -> Retrieved:
        """Return the row with the annotators' labels of each passage."""
        labels, asker = self._published.labels, self._query_row_id(doc)
        hits = (replace(hit, labels=labels.get((asker, hit.id), hit.labels)) for hit in row.passages)
        return replace(row, passages=tuple(hits))

    def _query_row_id(self, doc: RagDoc) -> str:
        return self._partners[doc.id].id if doc.id in self._partners else doc.id


def open_source(setup: Setup) -> PublishedLists:
    """Return the source of ``retrieval.corpus: published``. Raise ConfigError if the benchmark has no results."""
    published = setup.benchmark.published
    if published is None:
        raise ConfigError(
            f"retrieval.corpus is '{PUBLISHED}', but these rows come with no search results",
            "data.embedder chooses those of BordIRlines; or name a corpus: --metadata retrieval.corpus=...",
        )
    return PublishedLists(setup, published)


def _run_shown(published: Published, retrieval: Retrieval) -> Mapping[str, Sequence[tuple[str, float]]]:
    """Return the lists that the mode shows. Raise ConfigError if they do not exist."""
    swaps = [name for name, mode in MODES.items() if mode.swaps and _shown(name, mode) in published.runs]
    known = [*published.runs, *swaps]
    if retrieval.mode not in known:
        raise ConfigError(
            f"retrieval.mode '{retrieval.mode}' has no published results{did_you_mean(retrieval.mode, known)}"
        )
    return published.shown(_shown(retrieval.mode, retrieval.preset), retrieval.k)


def _shown(name: str, mode: Mode) -> str:
    """Return the name of the lists that a mode shows: its own, or the sibling's in the sibling's language."""
    return "qlang" if mode.swaps else name
