"""Search results that come with a benchmark (``retrieval.corpus: published``) in place of a search of our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval.config import Retrieval
from mrag_eval.core import (
    ConfigError,
    Kept,
    Passage,
    RagDoc,
    Ranked,
    Retrieved,
    Searched,
    did_you_mean,
    matching_languages,
)
from mrag_eval.datasets import Published
from mrag_eval.retrieval._plan import plan_rows, searches, swap_partners

PUBLISHED = "published"
# Whose results a mode shows: those of this mode, for the row or for its sibling.
_SIBLINGS = {"swap_docs": "qlang"}


class PublishedHits:
    """The results of one benchmark in one mode; also where their texts are looked up."""

    def __init__(self, published: Published | None, retrieval: Retrieval, siblings: Sequence[RagDoc]) -> None:
        """Raises ConfigError for a mode without published results, and for settings that only a search has."""
        if published is None:
            raise ConfigError(
                f"retrieval.corpus is '{PUBLISHED}', but these rows come with no search results",
                "data.embedder chooses those of BordIRlines; or name a corpus: --metadata retrieval.corpus=...",
            )
        self._base = _SIBLINGS.get(retrieval.mode, retrieval.mode)
        if self._base not in published.runs:
            known = [*published.runs, *(mode for mode, base in _SIBLINGS.items() if base in published.runs)]
            raise ConfigError(
                f"retrieval.mode '{retrieval.mode}' has no published results{did_you_mean(retrieval.mode, known)}"
            )
        for key in ("languages", "merge", "kind", "embedder", "query_translation"):
            if getattr(retrieval, key) is not None:
                raise ConfigError(f"retrieval.{key} has no meaning for published results", "leave it out")
        self._published = published
        self._retrieval = retrieval
        self._swapped = retrieval.mode in _SIBLINGS
        self._siblings = siblings
        self._partners = swap_partners(siblings) if self._swapped else {}

    def covered(self, docs: Sequence[RagDoc]) -> list[RagDoc]:
        """The rows that there are results for."""
        run = self._published.runs[self._base]
        return [doc for doc in docs if doc.id in run and self._asker(doc) in run]

    def searched(self, docs: Sequence[RagDoc]) -> list[Searched]:
        """What was found for each row, as a search of our own would hand it on."""
        run = self._published.runs[self._base]
        plans = plan_rows(docs, self._retrieval, self._siblings)
        out = []
        for doc, plan in zip(docs, plans, strict=True):
            hits = run[self._asker(doc)][: self._retrieval.search_depth]
            ranking = tuple(Ranked(p, self._passage(p).doc_id, self._passage(p).lang, score) for p, score in hits)
            kept = tuple(Kept(passage, score) for passage, score in hits[: self._retrieval.k])
            pool = self._published.searchable.get(doc.id, {})
            scope = (
                set(pool)
                if plan.languages is None
                else {c for lang in plan.languages for c in matching_languages(lang, pool)}
            )
            out.append(Searched(ranking, kept, {lang: n for lang, n in pool.items() if lang in scope}))
        return out

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """The texts, as an index would give them."""
        return [self._passage(name) for name in ids]

    def labelled(self, docs: Sequence[RagDoc], found: Sequence[Retrieved]) -> list[Retrieved]:
        """The same with what annotators said of each passage."""
        labels = self._published.labels
        return [
            replace(
                row,
                passages=tuple(
                    replace(hit, labels=labels[pair]) if (pair := (self._asker(doc), hit.id)) in labels else hit
                    for hit in row.passages
                ),
            )
            for doc, row in zip(docs, found, strict=True)
        ]

    def _asker(self, doc: RagDoc) -> str:
        return self._partners[doc.id].id if doc.id in self._partners else doc.id

    def _passage(self, name: str) -> Passage:
        return self._published.passages[name]


def published_hits(
    published: Published | None, retrieval: Retrieval, siblings: Sequence[RagDoc]
) -> PublishedHits | None:
    """The published results where the block asks for them, None where it does not."""
    if retrieval.corpus != PUBLISHED or not searches(retrieval):
        return None
    return PublishedHits(published, retrieval, siblings)
