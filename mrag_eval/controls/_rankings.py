"""Controls of rankings: what the corpus holds, a ranking at random, and a query that any search should serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mrag_eval.config import RANKING_MEASURE, RERANKED, SHOWN, Retrieval
from mrag_eval.core import RagDoc, Retrieved, plain_name, same_language
from mrag_eval.retrieval import Relevant
from mrag_eval.scoring import ControlRecord, Given, Rules, control_of, measured_on, read, row_scores, value_names
from mrag_eval.text import sentence_spans

T = TypeVar("T", float, str)
_UNKNOWN = "no relevant document is known"
_UNLISTED = "not known: it cannot be listed"
_NOT_HERE = "mrag-eval controls measures it, a run does not"


def ranking_metrics_of(metrics: Sequence[str], retrieval: Retrieval) -> list[str]:
    """Return the names of a task's values that its controls of rankings are of."""
    names = value_names(metrics, **measured_on(retrieval))
    return [name for name in names if control_of(name).kind == "ranking"]


def ranking_controls(
    docs: Sequence[RagDoc],
    found: Mapping[str, Retrieved],
    relevant: Relevant | None,
    metrics: Sequence[str],
    retrieval: Retrieval,
) -> dict[str, ControlRecord]:
    """Return whether the corpus holds a row's relevant ids, and what a ranking at random scores, by row id.

    ``found`` says how many passages were searched; ``relevant`` is None if the corpus is not read for it.
    """
    names = ranking_metrics_of(metrics, retrieval)
    out: dict[str, ControlRecord] = {}
    for doc in docs if names else ():
        if not doc.relevant_ids:
            out[doc.id] = ControlRecord(missing=dict.fromkeys(control_of(names[0]).names, _UNKNOWN))
            continue
        values = {} if retrieval.unlisted else {"held": dict.fromkeys(names, float(doc.findable))}
        missing = {"passage": _NOT_HERE, **({"held": _UNLISTED} if retrieval.unlisted else {})}
        row = found.get(doc.id)
        if relevant is None or row is None:
            missing["random"] = _NOT_HERE
        elif drawn := _at_random(doc, row, relevant, names, retrieval):
            values["random"] = drawn
        else:
            missing["random"] = "its documents have several passages, or the search counts none"
        out[doc.id] = ControlRecord(values, missing=missing)
    return out


def _at_random(
    doc: RagDoc, found: Retrieved, relevant: Relevant, names: Sequence[str], retrieval: Retrieval
) -> dict[str, float]:
    from mrag_eval.metrics import random_ranking

    items = sum(found.searchable.values())
    if not items or not doc.findable:
        return {}
    own = relevant.passages.get(doc.id, ())
    ranked = sum(any(same_language(passage.lang, code) for code in found.searchable) for passage in own)
    merged = not relevant.whole and any(passage.id not in doc.relevant_ids for passage in own)
    out = {}
    for name in names:
        plain = plain_name(name)
        if plain == SHOWN:
            # of what is withheld nothing is shown, however it ranks
            there = 0 if found.withheld else ranked
            out[name] = random_ranking("hit", retrieval.k, items, there, max(there, 1))
        elif not merged and (measure := RANKING_MEASURE.match(plain.removeprefix(RERANKED))):
            known = max(len(doc.relevant_ids), ranked)
            out[name] = random_ranking(measure[1], int(measure[2]), items, ranked, known)
    return out


def passage_queries(docs: Sequence[RagDoc], relevant: Relevant) -> dict[str, RagDoc]:
    """Return the rows that ask with the longest sentence of a relevant passage, one in their language if there is one.

    A search that cannot find a passage by its own words cannot find it by a question.
    """
    out = {}
    for doc in docs:
        own = sorted(relevant.passages.get(doc.id, ()), key=lambda p: not same_language(p.lang, doc.query_lang))
        if own and doc.findable:
            text = own[0].text
            spans = list(sentence_spans(text, own[0].lang)) or [(0, len(text))]
            longest = max((text[start:end].strip() for start, end in spans), key=len)
            out[doc.id] = replace(doc, query=longest, choices=None)
    return out


def with_searched(
    records: Mapping[str, ControlRecord],
    docs: Mapping[str, RagDoc],
    found: Mapping[str, Retrieved],
    metrics: Sequence[str],
    retrieval: Retrieval,
) -> dict[str, ControlRecord]:
    """Return the records with what the search for sentences of passages scores; ``found``: row id -> its result."""
    names = [name for name in metrics if control_of(name).kind == "ranking"]
    rules = Rules(names, retrieval=retrieval)
    rows = [read(Given(docs[row], own), rules).row for row, own in found.items()]
    own = {
        row.doc.id: ControlRecord({"passage": score.values}, {"passage": score.unscored} if score.unscored else {})
        for row, score in zip(rows, row_scores(rows, rules), strict=True)
    }
    bare = {
        row: replace(kept, missing={control: why for control, why in kept.missing.items() if control != "passage"})
        for row, kept in records.items()
        if row in own
    }
    return {**records, **joined(bare, own)}


def joined(*parts: Mapping[str, ControlRecord]) -> dict[str, ControlRecord]:
    """Return several records of each row as one; they have no metric in common."""
    out: dict[str, ControlRecord] = {}
    for part in parts:
        for row, record in part.items():
            before = out.get(row, ControlRecord())
            out[row] = ControlRecord(
                _merged(before.values, record.values),
                _merged(before.unscored, record.unscored),
                {**before.missing, **record.missing},
            )
    return out


def _merged(first: Mapping[str, Mapping[str, T]], second: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
    names = dict.fromkeys((*first, *second))
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in names}
