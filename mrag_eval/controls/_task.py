"""The controls of a task's rows: all that a run records, and on demand those that search or ask judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from mrag_eval.config import Retrieval, package_versions
from mrag_eval.controls._measured import ControlRule, reply_controls
from mrag_eval.controls._rankings import joined, passage_queries, ranking_controls, ranking_metrics_of, with_searched
from mrag_eval.controls._replies import ControlPool
from mrag_eval.controls._support import support_controls
from mrag_eval.core import RagDoc, Retrieved
from mrag_eval.datasets import Benchmark, english_answers, sha256_file
from mrag_eval.platform import cache_dir, content_key, from_json, shared_store, to_json
from mrag_eval.retrieval import Relevant, TaskRows
from mrag_eval.scoring import ControlRecord

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
