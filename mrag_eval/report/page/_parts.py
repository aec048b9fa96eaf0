"""The parts of a report that come from single tasks' results, as rows of values (shares and scores in percent)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mrag_eval.metrics import Estimate
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._samples import Sample
from mrag_eval.report.files._scores import records

if TYPE_CHECKING:
    from pandas import DataFrame

Point = dict[str, Any]
# A task needs one of these metrics for the language of its answers to be reported.
_OF_LANGUAGE = {"correct_language", "answered_in_english", "language_check"}
TOO_SHORT = "too short to tell"


def percent(score: Estimate) -> Point:
    """Return a score's value, interval and n, in percent."""
    return _percent({"value": score.value, "low": score.low, "high": score.high, "n": score.n or None})


def _percent(row: Mapping[str, Any]) -> Point:
    ends = {key: None if row[key] is None else round(row[key] * 100, 2) for key in ("value", "low", "high")}
    return {**ends, "n": row["n"]}


def rounded(value: float | None) -> float | None:
    """Return a coefficient with the digits that the page shows."""
    return None if value is None else round(value, 3)


def score_points(frame: DataFrame) -> list[Point]:
    """Return every metric of every task that has a value; ``frame`` is the tidy table."""
    rows = records(frame[(frame.dimension == "") & frame.value.notna()])
    return [
        {"task": row["task"], "run": row["model"], "mode": row["mode"], "benchmark": row["benchmark"]}
        | {"metric": row["metric"], **_percent(row)}
        for row in rows
    ]


def pair_points(frame: DataFrame) -> list[Point]:
    """Return scores by language of the question and of the relevant document."""
    out = []
    for row in records(frame[(frame.dimension == "pair") & frame.value.notna()]):
        query, _, document = row["cell"].partition("->")
        point = {"task": row["task"], "metric": row["metric"], "question": query, "document": document}
        out.append(point | _percent(row))
    return out


def stage_points(leaf: Leaf) -> list[Point]:
    """Return where the errors come from, in rows."""
    table = leaf.result.scores.attribution
    found = table.overall.stages if table is not None else {}
    total = sum(found.values())
    return [
        {"task": leaf.label, "stage": stage, "rows": n, "share": round(100 * n / total, 1)}
        for stage, n in found.items()
        if n
    ]


# Links from retrieval to the answer, and their names on the page.
_LINKS = {
    "retrieved": "retrieved",
    "kept_if_retrieved": "in the prompt, if retrieved",
    "correct_if_kept": "answered right, if in the prompt",
    "end_to_end": "answered right, of all",
    "correct_if_not_retrieved": "answered right, if not retrieved",
}


def link_points(leaf: Leaf) -> list[Point]:
    """Return the chain from retrieval to the answer, each link given the one before.

    Source: Cross-Lingual Cost, Tables 1 and 3.
    """
    chain = "selection" if leaf.result.scores.attribution is None else "attribution"
    found = {said: leaf.result.score(f"{chain}.{name}") for name, said in _LINKS.items()}
    return [
        {"task": leaf.label, "link": said, **percent(score)}
        for said, score in found.items()
        if score is not None and score.value is not None
    ]


def retrieved_points(leaf: Leaf) -> list[Point]:
    """Return passages of the rankings by language, and of the question."""
    table = leaf.result.scores.languages
    found = table.retrieved if table is not None else {}
    return shares(found, {"task": leaf.label}, "question", "document", "passages")


def preference_points(leaf: Leaf) -> list[Point]:
    """Return how much passages in the question's language are preferred over their share of the corpus."""
    table = leaf.result.scores.languages
    return [
        {"task": leaf.label, "language": language}
        | {"value": rounded(found.ratio.value), "low": rounded(found.ratio.low), "high": rounded(found.ratio.high)}
        | {"n": found.n_queries}
        for language, found in (table.preference if table is not None else {}).items()
        if found.ratio.value is not None
    ]


def citation_points(leaf: Leaf) -> list[Point]:
    """Return the share of each language in the documents of a prompt, and in the citations (BordIRlines, Figure 4)."""
    out = []
    for source, table in (leaf.result.scores.citations or {}).items():
        for question, found in table.by_query_language.items():
            for document, entry in found.items():
                point = {"task": leaf.label, "source": source, "question": question, "document": document}
                for share, value, count in (
                    ("of the documents shown", entry.inclusion_mean, entry.documents),
                    ("of the citations", entry.citation_mean, entry.citations),
                ):
                    if value is not None:
                        out.append(point | {"share": share, "value": round(100 * value, 2), "n": count})
    return out


def citation_rows(leaf: Leaf) -> list[Point]:
    """Return how many questions were answered with citations, and how many could not be counted."""
    return [
        {"task": leaf.label, "source": source, "queries": found.queries, "citing": found.citing}
        | {"unanswered": found.unanswered, "without_documents": found.without_documents}
        | {"out_of_range": found.out_of_range}
        for source, found in (leaf.result.scores.citations or {}).items()
    ]


def answer_languages(leaf: Leaf, rows: Sequence[Sample]) -> list[Point]:
    """Return the languages of replies, by language of the question; empty if no metric of the task depends on them."""
    names = {name for s in rows for name in (*s.record.values, *s.record.unscored)}
    if not names & _OF_LANGUAGE:
        return []
    from mrag_eval.metrics import correct_language_rate

    asked = [s.record.query_lang for s in rows]
    found = correct_language_rate([s.answer for s in rows], asked)
    counts: Counter[str] = Counter()
    for question, label, reason in zip(asked, found.detected, found.reasons, strict=True):
        counts[f"{question}->{_language(label, reason or '')}"] += 1
    return shares(counts, {"task": leaf.label}, "question", "answer", "replies")


def _language(label: str | None, reason: str) -> str:
    from mrag_eval.core import is_language, normalize_language

    if label is None:
        return "unknown to the detector" if "does not know" in reason else TOO_SHORT
    return normalize_language(label) if is_language(label) else label


def shares(found: Mapping[str, int], base: Point, first: str, second: str, count: str) -> list[Point]:
    """Return ``a->b`` counts as points, with the share of each within its ``a``."""
    totals: dict[str, int] = defaultdict(int)
    for pair, n in found.items():
        totals[pair.partition("->")[0]] += n
    out = []
    for pair, n in found.items():
        a, _, b = pair.partition("->")
        if n:
            out.append(base | {first: a, second: b, count: n, "share": round(100 * n / totals[a], 1)})
    return out


def unscored_points(leaf: Leaf) -> Iterable[Point]:
    """Return the numbers of unscored rows by reason."""
    return [
        {"task": leaf.label, "metric": metric, "reason": reason, "rows": n}
        for metric, reasons in leaf.result.unscored.items()
        for reason, n in reasons.items()
    ]
