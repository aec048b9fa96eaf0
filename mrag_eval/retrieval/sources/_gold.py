"""Gold passages (mode ``oracle``): what a system would be shown whose retrieval never fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mrag_eval.config import Given, Retrieval
from mrag_eval.core import Kept, Passage, RagDoc, Ranked, Retrieved, Searched
from mrag_eval.retrieval._plan import Plan
from mrag_eval.retrieval.sources._given import given_passages

if TYPE_CHECKING:
    from mrag_eval.retrievers import Searchable


def brought(doc: RagDoc, retrieval: Retrieval) -> Retrieved:
    """The supporting passages that come with the row itself, in the row's order; they are the ranking too."""
    gold = retrieval.model_copy(update={"given": Given(subset="gold")})
    hits = given_passages(doc, gold)
    return Retrieved(hits, tuple(Ranked(hit.id, hit.doc_id, hit.lang, hit.score) for hit in hits))


def completed(
    found: Sequence[Searched], plans: Sequence[Plan], index: Searchable, retrieval: Retrieval
) -> list[Searched]:
    """What was found among the gold documents, and behind it their passages that the search left out, in page order.

    A lexical search leaves out what shares no word with the question, and between two languages that is everything.
    """
    named = index.passages_named({name for plan in plans for name in plan.candidates or ()})
    return [_completed(row, plan, index, retrieval, named) for row, plan in zip(found, plans, strict=True)]


def _completed(
    row: Searched, plan: Plan, index: Searchable, retrieval: Retrieval, named: dict[str, list[Passage]]
) -> Searched:
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
