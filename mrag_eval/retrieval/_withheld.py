"""Rows made unanswerable on purpose: their relevant passages are withheld (``retrieval.unanswerable``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval.config import Retrieval
from mrag_eval.core import Hit, Kept, RagDoc, Retrieved, is_relevant
from mrag_eval.platform import ConfigError, content_key
from mrag_eval.retrieval._texts import PassageSource, hit_of, passages_by_id

# A hash of 16 hex digits as a share.
_WHOLE = 16.0**16


def check_withholding(docs: Sequence[RagDoc], retrieval: Retrieval) -> None:
    """Raise ConfigError if passages are to be withheld, and no row says which are relevant."""
    if retrieval.unanswerable is not None and not any(doc.findable for doc in docs):
        raise ConfigError(
            "retrieval.unanswerable: no row says which passages are relevant, so that none can be withheld",
            "give the rows 'relevant_ids', or leave the key out",
        )


def with_withheld(
    found: Sequence[Retrieved], docs: Sequence[RagDoc], retrieval: Retrieval, source: PassageSource
) -> list[Retrieved]:
    """Return the rows, of which a share is shown no relevant passage.

    The places that become free are filled with the next passages of the row's ranking, as far as it goes, so that the
    number of passages does not tell such rows apart. Seed and id decide whether a row is drawn, not the other rows.
    Rows without a known relevant passage are not drawn, nor those of which nothing would be shown.
    """
    if retrieval.unanswerable is None:
        return list(found)
    kept = [_others(row, doc) if _drawn(doc, retrieval) else ((), ()) for row, doc in zip(found, docs, strict=True)]
    texts = passages_by_id((place.id for _, more in kept for place in more), source)
    out = []
    for row, (left, more) in zip(found, kept, strict=True):
        hits = [replace(hit, rank=rank) for rank, hit in enumerate(left, 1)]
        hits += [hit_of(texts[place.id], place, rank) for rank, place in enumerate(more, len(hits) + 1)]
        out.append(replace(row, passages=tuple(hits) or row.passages, withheld=bool(hits)))
    return out


def _drawn(doc: RagDoc, retrieval: Retrieval) -> bool:
    place = int(content_key("withheld", retrieval.seed, doc.id)[:16], 16) / _WHOLE
    return doc.findable and place < (retrieval.unanswerable or 0.0)


def _others(row: Retrieved, doc: RagDoc) -> tuple[Sequence[Hit], Sequence[Kept]]:
    """Return the passages shown that are not relevant, and those of the ranking that take the place of the others."""
    hits = [hit for hit in row.passages if not is_relevant(hit, doc)]
    scores = {place.id: place.score for place in row.ranking}
    second = {} if row.reranked is None else {place.id: place.score for place in row.reranked.ranking}
    order = (row.reranked.ranking if row.reranked is not None else ()) or row.ranking
    shown = {hit.id for hit in row.passages}
    more = [place for place in order if place.id not in shown and not is_relevant(place, doc)]
    free = len(row.passages) - len(hits)
    return hits, [Kept(place.id, scores[place.id], second.get(place.id)) for place in more[:free]]
