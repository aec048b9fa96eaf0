"""Measures of rankings, retrieved and reranked: their names, and a value or a reason for every row."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.config import RANKING_MEASURE, RERANKED
from mrag_eval.core import Hit, Labels, RagDoc, Ranked, Scored, Value, document_of, is_relevant, way_to
from mrag_eval.scoring._reasons import NO_PASSAGES, NO_RELEVANT, NO_RERANKING, NOT_HELD, NOT_LABELLED, QUOTA

# The steps on the way to the measures of the retrieved list, of the reranked one, and of the passages shown.
RANKED, REORDERED = way_to("search", "label"), way_to("rerank", "label")
# Measures that depend on the order of the list at any depth; the others only at a depth below that of the list.
_ORDERED = ("mrr", "ndcg", "map")


def published_name(metric: str, quota_depth: int | None) -> str:
    """Return the name of a ranking measure; in a quota mode, an order-dependent one is marked as ordered by score.

    ``quota_depth`` is the length of a quota mode's list, None in a mode with one ranking. A hit in the whole list does
    not depend on the order; a hit in its first few places does.
    """
    found = RANKING_MEASURE.match(metric)
    if found is None or quota_depth is None:
        return metric
    ordered = found[1] in _ORDERED or int(found[2]) < quota_depth
    return f"{metric}_score_merged" if ordered else metric


def ranking_columns(rows: Sequence[Scored], measures: Sequence[str], quota_depth: int | None) -> dict[str, list[Value]]:
    measured = _measured(rows, [row.ranking for row in rows], measures)
    columns: dict[str, list[Value]] = {}
    for measure, values in measured.items():
        name = published_name(measure, quota_depth)
        columns[name] = values
        if name != measure:
            columns[measure] = [QUOTA] * len(rows)
    return columns


def rerank_columns(rows: Sequence[Scored], measures: Sequence[str]) -> dict[str, list[Value]]:
    lists = [row.reranked.ranking if row.reranked is not None else () for row in rows]
    faults = [row.reranked.fault if row.reranked is not None else NO_RERANKING for row in rows]
    measured = _measured(rows, lists, [measure.removeprefix(RERANKED) for measure in measures])
    return {
        f"{RERANKED}{measure}": [value if fault is None else fault for value, fault in zip(values, faults, strict=True)]
        for measure, values in measured.items()
    }


def unknown_relevance(doc: RagDoc, labels: Labels | None) -> str | None:
    """Return why it is not known which passages answer a row's question; None if it is known."""
    if labels is not None:
        return labels.fault
    if not doc.relevant_ids:
        return NO_RELEVANT
    return None if doc.findable else NOT_HELD


def _unknown(row: Scored) -> str | None:
    unknown = unknown_relevance(row.doc, row.labels)
    # nothing tells of the ids of what was searched
    return NO_PASSAGES if unknown == NOT_HELD and not row.passages and not row.ranking else unknown


def answers(place: Ranked | Hit, doc: RagDoc, labels: Labels | None) -> bool:
    """Return whether a passage answers the row's question, by its labels if it has any, else by its ids."""
    return is_relevant(place, doc) if labels is None else place.id in labels.relevant


def shown(rows: Sequence[Scored]) -> list[Value]:
    """Return 1 for a row with a relevant passage in its prompt, 0 for one without, or the reason for neither."""
    return [_shown(row) for row in rows]


def _shown(row: Scored) -> Value:
    unknown = _unknown(row)
    if unknown is not None:
        return unknown
    if any(answers(hit, row.doc, row.labels) for hit in row.passages):
        return 1.0
    unlabelled = row.labels is not None and not {hit.id for hit in row.passages} <= {*row.labels.judged}
    return NOT_LABELLED if unlabelled else 0.0


def _measured(
    rows: Sequence[Scored], rankings: Sequence[Sequence[Ranked]], measures: Sequence[str]
) -> dict[str, list[Value]]:
    """Return every measure's values on these rankings, one per row."""
    if not measures:
        return {}
    from mrag_eval.metrics import ranking_metrics

    judged = [_judgements(row) for row in rows]
    qrels = {str(i): grades for i, grades in enumerate(judged) if not isinstance(grades, str)}
    gains = {i: {**grades, **({} if rows[int(i)].labels else rows[int(i)].doc.grades)} for i, grades in qrels.items()}
    # each id once, at the rank of its best passage
    run = {
        i: list(dict.fromkeys(judged_ids(rows[int(i)].doc, rankings[int(i)], set(grades))))
        for i, grades in gains.items()
    }
    values: dict[str, dict[str, float]] = {i: {} for i in qrels}
    for graded, grades_of in ((False, qrels), (True, gains)):
        # gains are those of the grades; what is relevant is so from a grade on
        named = tuple(measure for measure in measures if measure.startswith("ndcg") == graded)
        for i, found in (ranking_metrics(grades_of, run, measures=named) if qrels and named else {}).items():
            values[i] |= found
    return {
        measure: [grades if isinstance(grades, str) else values[str(i)][measure] for i, grades in enumerate(judged)]
        for measure in measures
    }


def _judgements(row: Scored) -> dict[str, int] | str:
    """Return the row's judgements by id, or the reason why there are none."""
    unknown = _unknown(row)
    if unknown is not None:
        return unknown
    if row.labels is None:
        return dict.fromkeys(row.doc.relevant_ids, 1)
    # an empty ranking scores 0; it is not unscored
    return row.labels.grades or {"": 0}


def judged_ids(doc: RagDoc, ranking: Sequence[Ranked], relevant: set[str]) -> list[str]:
    """Return the id of each rank in the qrels' terms: passages if these are judged by passage, else documents.

    If a row names both, a passage of a document that it names counts as that document.
    """
    by_passage = not doc.relevant_documents and any(place.id in relevant for place in ranking)

    def name(place: Ranked) -> str:
        document = document_of(place, doc)
        if by_passage and (place.id in relevant or document not in relevant):
            return place.id
        # a passage without a document is its own; if only documents count it must not match another
        return document or (f"passage {place.id}" if doc.relevant_documents else place.id)

    return list(map(name, ranking))
