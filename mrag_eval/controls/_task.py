"""The controls of a task's rows: all that a run records, and on demand those that search or ask judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from mrag_eval import models
from mrag_eval.config import RANKING_MEASURE, RERANKED, SHOWN, Retrieval, package_versions
from mrag_eval.controls._measured import ControlRule, reply_controls
from mrag_eval.controls._replies import NO_REFERENCE, ControlPool, ControlReply, bare, other_answers
from mrag_eval.core import Hit, ModelReply, RagDoc, Retrieved, Scored, plain_name, same_language
from mrag_eval.datasets import Benchmark, english_answers, sha256_file
from mrag_eval.platform import cache_dir, content_key, from_json, shared_store, to_json
from mrag_eval.retrieval import Relevant, TaskRows
from mrag_eval.scoring import (
    ControlRecord,
    Given,
    Rules,
    control_of,
    measured_on,
    read,
    row_scores,
    value_names,
    with_grounding,
)
from mrag_eval.text import sentence_spans

Records = dict[str, ControlRecord]
_BY_MODELS = "its search asks a model, which may cost money"
# What the scores of the controls are computed by.
_CODE = ("metrics", "text", "scoring", "languages", "controls")


def row_controls(
    docs: Sequence[RagDoc],
    pool: ControlPool,
    rule: ControlRule,
    retrieval: Retrieval,
    found: Mapping[str, Retrieved],
    relevant: Relevant | None,
) -> Records:
    """Return the controls that a run records: nothing is searched, and no model asked."""
    rankings = ranking_controls(docs, found, relevant, rule.metrics, retrieval)
    return joined(reply_controls(docs, pool, rule), rankings)


def task_controls(supply: TaskRows, ids: Sequence[str], rule: ControlRule, detector: str) -> Records:
    """Return all controls of the rows ``ids`` of a task, by row id, cached by all that decides them.

    Sentences of relevant passages are searched for as the task searches, unless that asks a model. ``detector`` names
    what tells languages; with a panel (``rule.panel``) its own cache keeps the votes.
    """
    docs = [supply.docs[row] for row in ids]
    pool = control_pool(list(supply.docs.values()), supply.benchmark, supply.blocks.retrieval)
    key = _key(supply, docs, pool, rule, detector)
    store = shared_store(cache_dir() / "controls.sqlite") if rule.panel is None else None
    kept = {} if store is None else store.get_many([key], lambda value: isinstance(value, dict))
    if key in kept:
        return {row: from_json(ControlRecord, value, "the cache", "delete it") for row, value in kept[key].items()}
    records = _measured(supply, docs, pool, rule)
    if rule.checker is not None:
        parallel = supply.benchmark.parallel
        records = joined(records, support_controls(docs, supply.relevant(docs), parallel, pool, rule.checker))
    if store is not None:
        store.put_many({key: {row: to_json(record) for row, record in records.items()}})
    return records


def control_pool(docs: Sequence[RagDoc], benchmark: Benchmark, retrieval: Retrieval) -> ControlPool:
    """Return what replies of other rows are drawn from: every row of a benchmark that a task has, whichever run."""
    return ControlPool(docs, english_answers(benchmark), retrieval.seed)


def _measured(supply: TaskRows, docs: Sequence[RagDoc], pool: ControlPool, rule: ControlRule) -> Records:
    retrieval = supply.blocks.retrieval
    metrics = ranking_metrics_of(rule.metrics, retrieval)
    relevant = supply.relevant(docs) if metrics else None
    if relevant is None or supply.instruments():
        why = "no index of this machine is searched" if relevant is None else _BY_MODELS
        unsearched = dict.fromkeys(("passage", "random"), why)
        records = row_controls(docs, pool, rule, retrieval, {}, None)
        return {
            row: replace(
                record, missing={name: unsearched.get(name, reason) for name, reason in record.missing.items()}
            )
            for row, record in records.items()
        }
    asked = passage_queries(docs, relevant)
    found = dict(zip(asked, supply.retrieved(list(asked.values())), strict=True))
    records = row_controls(docs, pool, rule, retrieval, found, relevant)
    return with_searched(records, {doc.id: doc for doc in docs}, found, metrics, retrieval)


def _key(supply: TaskRows, docs: Sequence[RagDoc], pool: ControlPool, rule: ControlRule, detector: str) -> str:
    """Return the hash of all that decides the controls: rows, rules, search, and the code of this version."""
    rows: list[Any] = [doc.to_dict() for doc in docs]
    others = [[doc.id, doc.query, doc.query_lang, doc.answers] for doc in pool.docs]
    search = supply.settings() if supply.blocks.retrieval.searches else None
    checker = None if rule.checker is None else dict(rule.checker.identity)
    decided = [list(rule.metrics), rule.form, detector, pool.seed, checker]
    return content_key("controls", rows, others, dict(pool.english), decided, search, package_versions(), _code())


@cache
def _code() -> str:
    """Return the hash of the modules and language files that decide a score."""
    folder = Path(__file__).resolve().parent.parent
    files = sorted(path for name in _CODE for path in (folder / name).rglob("*") if path.suffix in (".py", ".yaml"))
    return content_key([[path.name, sha256_file(path)] for path in files])


_METRIC = "grounded"
_NO_PASSAGE = "no relevant passage is known"


def support_controls(
    docs: Sequence[RagDoc],
    relevant: Relevant | None,
    parallel: Sequence[Mapping[str, str]],
    pool: ControlPool,
    checker: models.Checker,
) -> dict[str, ControlRecord]:
    """Return the support of a row's first reference, and of another row's answer, by row id.

    Each is shown a relevant passage, as the corpus has it, and in every language in which ``parallel`` has its text:
    the answers stay the same, and so does what the passage says, so that what differs is the classifier's.
    """
    rules, others = Rules([_METRIC]), other_answers(pool.docs, pool.seed)
    versions = {text: texts for texts in parallel for text in texts.values()}
    asked: list[tuple[str, str, Scored]] = []
    missing: dict[str, dict[str, str]] = {doc.id: {} for doc in docs}
    for doc in docs:
        own = next(iter(relevant.passages.get(doc.id, ())), None) if relevant is not None else None
        other = others.get(doc.id, ControlReply(None, NO_REFERENCE))
        for name, reply in (("beside", bare(doc)), ("aside", other)):
            if own is None or reply.text is None:
                missing[doc.id][name] = _NO_PASSAGE if own is None else reply.missing
                continue
            for lang, text in {"": own.text, **versions.get(own.text, {})}.items():
                shown = Retrieved((Hit(own.id, lang or own.lang, text, 1.0, 1),))
                row = read(Given(doc, shown, ModelReply(reply.text)), rules).row
                asked.append((doc.id, f"{name}, {lang}" if lang else name, row))
    values: dict[str, dict[str, dict[str, float]]] = {doc.id: {} for doc in docs}
    unscored: dict[str, dict[str, dict[str, str]]] = {doc.id: {} for doc in docs}
    scores = row_scores(with_grounding([row for *_, row in asked], checker), rules)
    for (doc_id, name, _), score in zip(asked, scores, strict=True):
        values[doc_id] |= {name: score.values} if score.values else {}
        unscored[doc_id] |= {name: score.unscored} if score.unscored else {}
    return {row: ControlRecord(values[row], unscored[row], why) for row, why in missing.items()}


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
