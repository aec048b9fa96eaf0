"""Rows made unanswerable on purpose: their relevant passages are withheld (``retrieval.unanswerable``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mrag_eval.config import Retrieval
from mrag_eval.core import Hit, Passage, RagDoc, Ranked, Retrieved, is_relevant
from mrag_eval.platform import ConfigError, content_key
from mrag_eval.retrieval._texts import PassageSource, passages_by_id

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
    kept = [_others(row, doc) if _drawn(doc, retrieval) else None for row, doc in zip(found, docs, strict=True)]
    texts = passages_by_id((place.id for own in kept if own is not None for place in own[1]), source)
    out = []
    for row, own in zip(found, kept, strict=True):
        hits = [] if own is None else [*own[0], *(_hit(row, place, texts) for place in own[1])]
        passages = tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)) or row.passages
        out.append(replace(row, passages=passages, withheld=bool(hits)))
    return out


def _drawn(doc: RagDoc, retrieval: Retrieval) -> bool:
    place = int(content_key("withheld", retrieval.seed, doc.id)[:16], 16) / _WHOLE
    return doc.findable and place < (retrieval.unanswerable or 0.0)


def _others(row: Retrieved, doc: RagDoc) -> tuple[list[Hit], list[Ranked]]:
    """Return the passages shown that are not relevant, and those of the ranking that take the place of the others."""
    hits = [hit for hit in row.passages if not is_relevant(hit, doc)]
    order = (row.reranked.ranking if row.reranked is not None else ()) or row.ranking
    shown = {hit.id for hit in row.passages}
    more = [place for place in order if place.id not in shown and not is_relevant(place, doc)]
    return hits, more[: len(row.passages) - len(hits)]


def _hit(row: Retrieved, place: Ranked, texts: Mapping[str, Passage]) -> Hit:
    passage = texts[place.id]
    found = {one.id: one.score for one in row.ranking}
    reranked = None if row.reranked is None or not row.reranked.ranking else place.score
    return Hit(
        passage.id,
        passage.lang,
        passage.text,
        found.get(place.id, place.score),
        0,
        passage.title,
        passage.doc_id,
        rerank_score=reranked,
    )
