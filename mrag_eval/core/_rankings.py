"""Results of retrieval: places in a ranking, the passages shown for a row, and the queries searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrag_eval.core._failures import Failure
from mrag_eval.core._languages import same_language
from mrag_eval.core._passages import Hit, RagDoc

if TYPE_CHECKING:
    from mrag_eval.core._traces import Trace


@dataclass(frozen=True, slots=True)
class Ranked:
    """One place in a ranking: enough for the ranking measures, without the text."""

    id: str
    doc_id: str
    lang: str
    score: float


@dataclass(frozen=True, slots=True)
class Kept:
    """A passage chosen for the prompt, before its text is looked up. ``score`` is the search's."""

    id: str
    score: float
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True)
class Reranking:
    """Result of the second stage for one row.

    ``ranking`` holds the reranked hits, best first, with the reranker's scores. It is empty if there was nothing to
    rerank, or if the reranker failed: then ``fault`` is the reason, and the search's order is used. For listwise
    rerankers, ``windows`` counts the ordered lists, ``repaired`` those whose reply was not a permutation.
    """

    ranking: tuple[Ranked, ...] = ()
    fault: str | None = None
    windows: int = 0
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Searched:
    """Result of the search for one row: ``ranking`` (at most depth), of it ``kept`` (at most k, in prompt order).

    ``searchable``, ``reranked`` and ``failures`` as in :class:`Retrieved`.
    """

    ranking: tuple[Ranked, ...] = ()
    kept: tuple[Kept, ...] = ()
    searchable: Mapping[str, int] = field(default_factory=dict)
    reranked: Reranking | None = None
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Result of retrieval for one row: ``passages`` for the prompt (at most k), ``ranking`` for the measures (at most
    depth).

    ``searchable`` counts, by language, the passages searched (of the row's own candidates, if restricted to them); it
    is empty without a search, or for an oracle. ``queries`` are the query texts if they are translations or several.
    ``ranking`` is the search's own; ``reranked`` is that of the second stage, None without one. ``trace`` records how
    an agents' loop reached the passages. ``failures`` are those of its stages; passages and ranking are then what is
    there all the same, and nothing that a failed stage comes before is scored. ``withheld``: whether the relevant
    passages were left out on purpose (``retrieval.unanswerable``); None if those of no row are.
    """

    passages: tuple[Hit, ...] = ()
    ranking: tuple[Ranked, ...] = ()
    searchable: Mapping[str, int] = field(default_factory=dict)
    queries: tuple[str, ...] = ()
    reranked: Reranking | None = None
    trace: Trace | None = None
    failures: tuple[Failure, ...] = ()
    withheld: bool | None = None


def document_of(place: Ranked | Hit, doc: RagDoc) -> str:
    """Return the document of a place, in the terms of the row's ``relevant_ids``; empty if the place has none.

    Document ids are unique only within a language: page 12 of one Wikipedia is not page 12 of another. If the row knows
    the language of its relevant documents, the name of a document in another language includes that language, so it is
    never relevant. One in a language that is not known ("") is named by its id alone.
    """
    if not (place.doc_id and place.lang) or doc.gold_doc_lang is None or same_language(place.lang, doc.gold_doc_lang):
        return place.doc_id
    return f"{place.lang}:{place.doc_id}"


def is_relevant(place: Ranked | Hit, doc: RagDoc) -> bool:
    """Return whether the passage, or the document it was cut from, is known to answer the row's question."""
    by_passage = not doc.relevant_documents and place.id in doc.relevant_ids
    return by_passage or document_of(place, doc) in doc.relevant_ids


def ranking_dict(ranking: Sequence[Ranked]) -> dict[str, list[Any]]:
    """Return a ranking as columns, for sample files."""
    return {
        "ids": [place.id for place in ranking],
        "doc_ids": [place.doc_id for place in ranking],
        "langs": [place.lang for place in ranking],
        "scores": [round(place.score, 6) for place in ranking],
    }
