"""Passages and rankings of a run: against the corpus, against each other, and against what the mode leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from mrag_eval.config import PUBLISHED, Retrieval, mode_named
from mrag_eval.core import Hit, Passage, Trace, base_language, is_relevant
from mrag_eval.datasets import Held
from mrag_eval.platform import DataError, to_json
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._findings import Differing, Remark
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.retrieval import plan_rows

# Decimals of a score in a ranking.
_DECIMALS = 6


def passages(here: TaskHere, samples: Samples) -> Iterator[Remark]:
    """Compare passages and rankings that were searched with the texts of the corpus, and with each other.

    Those of a mode that searches nothing are compared with their rows as a whole. Those of a RAG system are its own.
    """
    leaf, rows = here.leaf, here.rows
    if rows is not None and rows.repeated is not None:
        selection = rows.repeated.selection
        left = {"skipped_by_mode": len(selection.skipped), "without_documents": selection.without_documents}
        if leaf.config.block("left_out") != left:
            yield Remark(leaf.task, "fault", f"left_out is {dict(leaf.config.block('left_out'))}, {left} by the rows")
        if rows.found is not None:
            return
    if mode_named(leaf.config.mode).asks_system:
        return
    of_corpus = Differing(leaf.task, len(samples), "by the corpus")
    of_ranking = Differing(leaf.task, len(samples), "by its ranking")
    of_trace = Differing(leaf.task, len(samples), "by its trace")
    retrieval = here.retrieval
    if here.retrieved_otherwise:
        retrieval = None
        why = f"rows retrieved under other settings, as permitted: {', '.join(here.retrieved_otherwise)}"
        yield Remark(leaf.task, "note", f"{why}; passages were not compared with the corpus here")
    texts = _texts(here, samples)
    _compare_absent(here, of_corpus, samples)
    with suppress(DataError):
        _compare_scopes(here, of_ranking, samples)
    for sample in samples:
        doc, row = sample.line.get("doc") or {}, sample.record.row
        given = {} if rows is None or row not in rows.docs else {p.id: p for p in rows.docs[row].given_passages}
        lists = {key: _places(doc.get(key)) for key in ("ranking", "reranked")}
        for place, passage in enumerate(doc.get("passages") or (), 1):
            known = given.get(passage["id"]) or texts.get(passage["id"])
            if known is not None:
                shown, lang = _as_found(passage), getattr(known, "original_lang", None) or known.lang
                kept = {"text": known.text, "title": known.title, "lang": lang, "doc_id": known.doc_id}
                of_corpus.compare(row, shown, {key: kept[key] for key in shown}, "doc.passages")
            elif texts or given:
                of_corpus.add(row, "doc.passages.id", passage["id"], None)
            if retrieval is not None and retrieval.shuffle is None and passage.get("rank") != place:
                of_ranking.add(row, "doc.passages.rank", passage.get("rank"), place)
            _compare_place(of_ranking, row, passage, lists, by_agents="trace" in doc)
            if doc.get("withheld") and is_relevant(Hit.from_dict(passage), sample.doc):
                of_ranking.add(row, "doc.passages.id", passage["id"], "withheld")
        for key, places in lists.items():
            for name, found in places.items():
                if name in texts:
                    wanted = {"doc_ids": texts[name].doc_id, "langs": texts[name].lang}
                    of_corpus.compare(row, {part: found[part] for part in wanted}, wanted, f"doc.{key}")
                elif texts:
                    of_corpus.add(row, f"doc.{key}.ids", name, None)
        _compare_order(retrieval, leaf.config.shows, of_ranking, row, doc, lists)
        if sample.trace is not None:
            _compare_trace(of_trace, row, doc, sample.trace)
    yield from of_corpus.findings()
    yield from of_ranking.findings()
    yield from of_trace.findings()


def _compare_scopes(here: TaskHere, of_mode: Differing, samples: Samples) -> None:
    """Compare the languages that were searched for each row with those of the task's mode.

    Raises DataError if a row lacks a field that the mode needs.
    """
    mode, retrieval = mode_named(here.leaf.config.mode), here.retrieval
    if retrieval is None or here.retrieved_otherwise or mode.source != "index" or mode.swaps:
        return
    if retrieval.corpus == PUBLISHED or retrieval.candidates == "row":
        return
    counted = {one.row: {*one.languages.searchable} for one in samples.records if one.languages}
    every = {base_language(code) for found in counted.values() for code in found}
    plans = plan_rows([one.doc for one in samples], retrieval)
    for row, plan in zip((one.row for one in samples.records), plans, strict=True):
        found = {base_language(code) for code in counted.get(row, ())}
        wanted = every if plan.languages is None else {base_language(code) for code in plan.languages}
        if found and (found - wanted or (plan.languages is None and found != wanted)):
            of_mode.add(row, "languages.searchable", ", ".join(sorted(found)), ", ".join(sorted(wanted)))


def _compare_absent(here: TaskHere, of_corpus: Differing, samples: Samples) -> None:
    """Compare the relevant ids that the corpus is said not to hold with the corpus."""
    if not here.leaf.config.searches or here.judge.relevance.labels != "ids" or here.passages(()) is None:
        return
    names = dict.fromkeys(name for sample in samples for name in sample.doc.relevant_ids)
    corpus = here.passages(list(names)) if names else None
    if corpus is None:
        return
    held = Held.among("", corpus.values())
    for doc in (sample.doc for sample in samples):
        own = here.rows.docs.get(doc.id, doc) if here.rows is not None else doc
        brought = any(passage.is_gold for passage in own.given_passages)
        absent = [] if brought else [name for name in doc.relevant_ids if not held.holds(own, name)]
        of_corpus.compare(doc.id, list(doc.absent_ids), absent, "doc.absent_ids")


def _texts(here: TaskHere, samples: Samples) -> Mapping[str, Passage]:
    ids: dict[str, None] = {}
    for sample in samples if here.passages(()) is not None else ():
        doc = sample.line.get("doc") or {}
        ids |= dict.fromkeys(str(passage["id"]) for passage in doc.get("passages") or ())
        for key in ("ranking", "reranked"):
            ids |= dict.fromkeys((doc.get(key) or {}).get("ids") or ())
    return (here.passages(list(ids)) if ids else None) or {}


def _as_found(passage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the passage as it was found, where it is shown translated."""
    translated = "original_text" in passage
    # of a translated title, the original is in no sample
    out = {"text": passage["original_text"]} if translated else {key: passage.get(key) for key in ("text", "title")}
    return out | {"lang": passage.get("original_lang") or passage.get("lang"), "doc_id": passage.get("doc_id")}


def _places(columns: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the places of a ranking by id."""
    if not columns:
        return {}
    parts = ("doc_ids", "langs", "scores")
    rows = zip(columns.get("ids") or (), *(columns.get(part) or () for part in parts), strict=False)
    return {name: dict(zip(parts, rest, strict=True)) for name, *rest in rows}


def _compare_place(
    differing: Differing, row: str, passage: Mapping[str, Any], lists: Mapping[str, Any], *, by_agents: bool
) -> None:
    """Compare a passage with its place in the ranking and in the reranked list; agents rank by scores of their own."""
    place = lists["ranking"].get(passage["id"])
    if not lists["ranking"]:
        return
    if place is None:
        differing.add(row, "doc.passages.id", passage["id"], None)
        return
    shown = {
        "doc_id": passage.get("doc_id"),
        "lang": passage.get("original_lang") or passage.get("lang"),
        "score": round(float(passage.get("score") or 0.0), _DECIMALS),
    }
    wanted = {"doc_id": place["doc_ids"], "lang": place["langs"], "score": place["scores"]}
    if by_agents:
        shown["score"] = place["scores"]
    second = lists["reranked"].get(passage["id"])
    if second is not None and passage.get("rerank_score") is not None:
        shown["rerank_score"] = round(float(passage["rerank_score"]), _DECIMALS)
        wanted["rerank_score"] = second["scores"]
    differing.compare(row, shown, wanted, "doc.passages")


def _compare_order(
    retrieval: Retrieval | None,
    shows: str,
    differing: Differing,
    row: str,
    doc: Mapping[str, Any],
    lists: Mapping[str, Any],
) -> None:
    """Compare the passages shown with the head of the list that they were taken from, and its order with its scores."""
    first = lists["reranked"] or lists["ranking"]
    if retrieval is None or not first or not retrieval.has_single_ranking or doc.get("withheld"):
        return
    shown = [passage["id"] for passage in doc.get("passages") or ()]
    head = list(first)[: retrieval.k]
    if (retrieval.shuffle is None and shown != head) or sorted(shown) != sorted(head):
        differing.add(row, "doc.passages", ", ".join(shown), ", ".join(head))
    scores = [place["scores"] for place in first.values()]
    if len(doc["ranking"]["ids"]) > retrieval.search_depth:
        differing.add(row, "doc.ranking", len(doc["ranking"]["ids"]), retrieval.search_depth)
    if shows != "gold" and any(a < b for a, b in pairwise(scores)):
        differing.add(row, "doc.ranking.scores", "not in order", "falling")


def _compare_trace(differing: Differing, row: str, doc: Mapping[str, Any], trace: Trace) -> None:
    """Compare the passages shown with those of the agents' loop, and what the critic said of them."""
    shown = [passage["id"] for passage in doc.get("passages") or ()]
    differing.compare(row, shown, list(trace.shown), "doc.passages.id")
    critics = {hit.id: hit.critic for each in trace.rounds for hit in each.hits if hit.critic is not None}
    for passage in doc.get("passages") or ():
        known = critics.get(passage["id"])
        if known is not None:
            differing.compare(row, passage.get("critic"), to_json(known), "doc.passages.critic")
    numbers = [each.round for each in trace.rounds]
    differing.compare(row, numbers, list(range(1, len(numbers) + 1)), "doc.trace.rounds.round")
