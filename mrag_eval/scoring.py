"""From metric names in a task's YAML to per-row values, and from gathered rows to scores with intervals.

A value is a float, or None with a reason: never a silent 0 or NaN. All rows of a rank are scored in one batch.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.errors import ConfigError, did_you_mean
from mrag_eval.retrieve import Ranked
from mrag_eval.schema import RagDoc


@dataclass(frozen=True, slots=True)
class Scored:
    """What is scored of one row: the question, the answer read off the reply, the ranking (empty without a search)."""

    doc: RagDoc
    answer: str
    ranking: tuple[Ranked, ...] = ()


@dataclass
class RowScores:
    """Per-row outcome: a float where scored, else an entry in ``unscored`` with the reason."""

    values: dict[str, float] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)


Value = float | str  # a score, or the reason why there is none
Batch = Callable[[Sequence[Scored]], list[Value]]


@dataclass(frozen=True)
class Metric:
    """``total``: every row gets a value, whatever the reply (then the harness can average it itself)."""

    name: str
    score: Batch
    total: bool
    summary: str
    higher_is_better: bool = True


NO_ANSWERS = "the row has no reference answer"
NO_CHOICES = "the row has no choices"
NO_RELEVANT = "no relevant document is known"
# Resamples of every interval: 2,000 hold the ends of a 95% interval steady to about a fiftieth of its width.
_RESAMPLES = 2_000
QUOTA = "quota modes hand over a set of passages, not one ranking"


def _choice(rows: Sequence[Scored], value: Callable[[int | None, int], float]) -> list[Value]:
    from mrag_eval.metrics import extract_choice

    out: list[Value] = []
    for row in rows:
        choices, gold = row.doc.choices, row.doc.gold_choice
        if not choices or gold is None:
            out.append(NO_CHOICES)
            continue
        # Options that read the same are one option: a row may repeat its gold text under a second letter.
        picked = extract_choice(row.answer, len(choices), choices)
        if picked is not None and choices[picked].strip() == choices[gold].strip():
            picked = gold
        out.append(value(picked, gold))
    return out


def _accuracy(rows: Sequence[Scored]) -> list[Value]:
    return _choice(rows, lambda picked, gold: float(picked == gold))


def _parsed(rows: Sequence[Scored]) -> list[Value]:
    return _choice(rows, lambda picked, _: float(picked is not None))


def _lexical(batch: Callable[[list[str], list[list[str]]], Sequence[float]]) -> Batch:
    def score(rows: Sequence[Scored]) -> list[Value]:
        out: list[Value] = [NO_ANSWERS] * len(rows)
        where = [i for i, row in enumerate(rows) if row.doc.answers]
        if where:
            values = batch([rows[i].answer for i in where], [list(rows[i].doc.answers) for i in where])
            for i, value in zip(where, values, strict=True):
                out[i] = float(value)
        return out

    return score


def _each(name: str) -> Batch:
    def batch(predictions: list[str], answers: list[list[str]]) -> list[float]:
        from mrag_eval import metrics

        one = getattr(metrics, name)
        return [float(one(p, a)) for p, a in zip(predictions, answers, strict=True)]

    return _lexical(batch)


def _char_recall(predictions: list[str], answers: list[list[str]]) -> Sequence[float]:
    from mrag_eval.metrics import char_ngram_recall_batch

    values: Sequence[float] = char_ngram_recall_batch(predictions, answers).tolist()
    return values


def _correct_language(rows: Sequence[Scored]) -> list[Value]:
    from mrag_eval.metrics import correct_language_rate

    rate = correct_language_rate([r.answer for r in rows], [r.doc.query_lang for r in rows])
    return [
        str(reason) if correct is None else float(correct)
        for correct, reason in zip(rate.correct, rate.reasons, strict=True)
    ]


METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("acc", _accuracy, True, "the chosen option is the right one (a reply without a clear choice is wrong)"),
        Metric("acc_micro", _accuracy, True, "acc, for groups that also report the mean over rows"),
        Metric("choice_parsed", _parsed, True, "share of replies with exactly one readable choice"),
        Metric("char3gram_recall", _lexical(_char_recall), True, "character 3-gram recall, best over answers"),
        Metric("exact_match", _each("exact_match"), True, "normalised reply equals an answer"),
        Metric("match", _each("match"), True, "normalised answer is contained in the normalised reply"),
        Metric("f1", _each("word_f1"), True, "word F1, best over answers"),
        Metric("word_recall", _each("word_recall"), True, "word recall, best over answers"),
        Metric(
            "correct_language", _correct_language, False, "replies of more than 20 characters in the right language"
        ),
    )
}
RANKING_MEASURE = re.compile(r"(hit|recall|precision|mrr|ndcg|map)@([1-9]\d*)$")
# Measures that depend on the order of the list, not only on its members.
_ORDERED = ("mrr", "ndcg", "map")


def check_metrics(names: Sequence[str], where: str) -> None:
    """Raise ConfigError for a metric name that does not exist."""
    for metric in names:
        if metric not in METRICS and not RANKING_MEASURE.match(metric):
            known = [*METRICS, "hit@20", "recall@20", "precision@20", "mrr@20", "ndcg@20", "map@20"]
            raise ConfigError(f"{where}: unknown metric '{metric}'{did_you_mean(metric, known)}")


def ranking_measures(names: Sequence[str]) -> list[str]:
    """Those of the names that are measured on the retrieved list."""
    return [n for n in names if RANKING_MEASURE.match(n)]


def deepest_cutoff(names: Sequence[str]) -> int:
    """The largest k of the ranking measures; 0 without any."""
    return max((int(n.rpartition("@")[2]) for n in ranking_measures(names)), default=0)


def published_name(metric: str, single_ranking: bool) -> str:
    """Order-dependent measures of a quota mode go under a name that says their lists were merged by score."""
    ordered = metric.split("@")[0] in _ORDERED and RANKING_MEASURE.match(metric)
    return f"{metric}_score_merged" if ordered and not single_ranking else metric


def score_rows(
    rows: Sequence[Scored], names: Sequence[str], *, searched: bool, single_ranking: bool = True
) -> list[RowScores]:
    """Score every row by every metric named.

    ``searched`` says whether the mode searched a corpus: without a search there is nothing for the ranking measures to
    measure, and they are left out. ``single_ranking`` is False for quota modes.
    """
    out = [RowScores() for _ in rows]
    columns: dict[str, list[Value]] = {n: METRICS[n].score(rows) for n in names if n in METRICS}
    if searched:
        columns |= _ranking_columns(rows, ranking_measures(names), single_ranking)
    for metric, values in columns.items():
        for row, value in zip(out, values, strict=True):
            if isinstance(value, str):
                row.unscored[metric] = value
            else:
                row.values[metric] = value
    return out


def _ranking_columns(rows: Sequence[Scored], measures: Sequence[str], single: bool) -> dict[str, list[Value]]:
    if not measures:
        return {}
    from mrag_eval.metrics import ranking_metrics

    known = {i: set(row.doc.relevant_ids) for i, row in enumerate(rows) if row.doc.relevant_ids}
    qrels = {str(i): dict.fromkeys(relevant, 1) for i, relevant in known.items()}
    run = {str(i): _judged_order(rows[i].ranking, relevant) for i, relevant in known.items()}
    values = ranking_metrics(qrels, run, measures=tuple(measures)) if qrels else {}
    columns: dict[str, list[Value]] = {}
    for measure in measures:
        name = published_name(measure, single)
        columns[name] = [values[str(i)][measure] if i in known else NO_RELEVANT for i in range(len(rows))]
        if name != measure:
            columns[measure] = [QUOTA] * len(rows)
    return columns


def _judged_order(ranking: Sequence[Ranked], relevant: set[str]) -> list[str]:
    """Retrieved ids in the qrels' terms: relevance may be known by passage or by document; a document counts once."""
    return list(dict.fromkeys(r.id if r.id in relevant or r.doc_id not in relevant else r.doc_id for r in ranking))


def row_record(doc: RagDoc, scores: RowScores) -> dict[str, Any]:
    """What the aggregate needs of one row, and what its sample file line shows: identity, cell, values, reasons."""
    cell = {"query_lang": doc.query_lang}
    if doc.gold_doc_lang:
        cell["pair"] = f"{doc.query_lang}->{doc.gold_doc_lang}"
    cell |= {key: str(doc.extra[key]) for key in ("country", "category", "q_type") if doc.extra.get(key) is not None}
    record: dict[str, Any] = {"row": doc.id, "cell": cell, "values": scores.values}
    if doc.group_id is not None:
        record["group"] = doc.group_id
    if scores.unscored:
        record["unscored"] = scores.unscored
    return record


def summarize(records: Sequence[Mapping[str, Any]], seed: int = 0) -> dict[str, Any]:
    """Scores with intervals from gathered rows: overall, by cell, macro means over language pairs, unscored counts.

    Returns ``{"rows": n, "metrics": {name: {"value", "low", "high", "n", "method", "by": {...}}}, "unscored":
    {name: {reason: count}}}``. Groups of rows (versions of one question, questions on one document) are resampled
    together. A row that reached two ranks counts once.
    """
    rows = list({str(r["row"]): r for r in records}.values())
    names = list(dict.fromkeys(name for r in rows for name in r["values"]))
    unscored: dict[str, Counter[str]] = defaultdict(Counter)
    for r in rows:
        for name, reason in r.get("unscored", {}).items():
            unscored[name][reason] += 1
    return {
        "rows": len(rows),
        "metrics": {name: _metric_summary([r for r in rows if name in r["values"]], name, seed) for name in names},
        "unscored": {name: dict(reasons) for name, reasons in unscored.items()},
    }


def _metric_summary(rows: Sequence[Mapping[str, Any]], name: str, seed: int) -> dict[str, Any]:
    out = _estimate(rows, name, seed)
    dimensions = dict.fromkeys(d for r in rows for d in r["cell"])
    by: dict[str, dict[str, Any]] = {}
    for dimension in dimensions:
        cells: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for r in rows:
            if dimension in r["cell"]:
                cells[r["cell"][dimension]].append(r)
        if len(cells) > 1:
            by[dimension] = {cell: _estimate(members, name, seed) for cell, members in sorted(cells.items())}
    if by:
        out["by"] = by
    if "pair" in by:
        out["macro"] = _pair_macro(rows, name, seed)
    return out


def _pair_macro(rows: Sequence[Mapping[str, Any]], name: str, seed: int) -> dict[str, Any]:
    """Plain means over matching and over differing language pairs (Cross-Lingual Cost, Table 1)."""
    from mrag_eval.metrics import stratified_bootstrap

    out = {}
    for label, same in (("same_language", True), ("cross_language", False)):
        kept = [r for r in rows if "pair" in r["cell"] and (len(set(r["cell"]["pair"].split("->"))) == 1) == same]
        if not kept:
            continue
        groups = [r.get("group", r["row"]) for r in kept]
        estimate = stratified_bootstrap(
            [r["values"][name] for r in kept],
            [r["cell"]["pair"] for r in kept],
            groups=groups if len(set(groups)) < len(groups) else None,
            n_resamples=_RESAMPLES,
            seed=seed,
        )
        out[label] = estimate.as_dict() | {"pairs": len({r["cell"]["pair"] for r in kept})}
    return out


def _estimate(rows: Sequence[Mapping[str, Any]], name: str, seed: int) -> dict[str, Any]:
    from mrag_eval.metrics import interval_for

    groups = [r.get("group", r["row"]) for r in rows]
    return interval_for(
        [r["values"][name] for r in rows],
        groups=groups if len(set(groups)) < len(groups) else None,
        n_resamples=_RESAMPLES,
        seed=seed,
    ).as_dict()
