"""The parts of a report that stand in the results of single tasks, as rows of values (shares and scores in percent)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._samples import Sample, reply_text

Point = dict[str, Any]
# Metrics of which a task must have one for the language of its answers to be looked at.
_OF_LANGUAGE = {"correct_language", "answered_in_english", "language_check"}
TOO_SHORT = "too short to tell"


def percent(entry: Mapping[str, Any]) -> Point:
    """A score's value, interval and n, in percent."""
    keys = ("value", "low", "high")
    return {key: None if entry.get(key) is None else round(float(entry[key]) * 100, 2) for key in keys} | {
        "n": entry.get("n")
    }


def score_points(leaf: Leaf) -> list[Point]:
    """Every metric of a task."""
    base = {"task": leaf.label, "run": leaf.run, "mode": leaf.mode, "benchmark": leaf.benchmark}
    return [
        base | {"metric": name} | percent(entry)
        for name, entry in leaf.result.metrics.items()
        if entry.get("value") is not None
    ]


def pair_points(leaf: Leaf) -> list[Point]:
    """Scores by language of the question and of the relevant document."""
    out = []
    for name, entry in leaf.result.metrics.items():
        for pair, cell in ((entry.get("by") or {}).get("pair") or {}).items():
            query, _, document = pair.partition("->")
            if cell.get("value") is not None:
                point = {"task": leaf.label, "metric": name, "question": query, "document": document}
                out.append(point | percent(cell))
    return out


def stage_points(leaf: Leaf) -> list[Point]:
    """Where the errors come from, in rows."""
    found = ((leaf.result.config["scores"].get("attribution") or {}).get("overall") or {}).get("stages") or {}
    total = sum(found.values())
    return [
        {"task": leaf.label, "stage": stage, "rows": n, "share": round(100 * n / total, 1)}
        for stage, n in found.items()
        if n
    ]


def link_points(leaf: Leaf) -> list[Point]:
    """The chain from retrieval to the answer, each link given the one before (Cross-Lingual Cost, Tables 1 and 3)."""
    scores = leaf.result.config["scores"]
    chain = ((scores.get("attribution") or scores.get("selection") or {}).get("overall")) or {}
    names = {
        "retrieved": "retrieved",
        "kept_if_retrieved": "in the prompt, if retrieved",
        "correct_if_kept": "answered right, if in the prompt",
        "end_to_end": "answered right, of all",
        "correct_if_not_retrieved": "answered right, if not retrieved",
    }
    return [
        {"task": leaf.label, "link": said, **percent(chain[name])}
        for name, said in names.items()
        if isinstance(chain.get(name), Mapping) and chain[name].get("value") is not None
    ]


def retrieved_points(leaf: Leaf) -> list[Point]:
    """Passages of the rankings by language, and of the question."""
    found = (leaf.result.config["scores"].get("languages") or {}).get("retrieved") or {}
    return shares(found, {"task": leaf.label}, "question", "document", "passages")


def preference_points(leaf: Leaf) -> list[Point]:
    """By how much passages in the question's language are preferred over what the corpus would lead one to expect."""
    found = (leaf.result.config["scores"].get("languages") or {}).get("preference") or {}
    out = []
    for language, entry in found.items():
        ratio = entry.get("ratio") or {}
        if ratio.get("value") is not None:
            figures = {k: None if ratio.get(k) is None else round(float(ratio[k]), 3) for k in ("value", "low", "high")}
            out.append({"task": leaf.label, "language": language, **figures, "n": entry.get("n_queries")})
    return out


def citation_points(leaf: Leaf) -> list[Point]:
    """BordIRlines, Figure 4: of the documents in a prompt and of the citations, the share in each language."""
    out = []
    for source, found in (leaf.result.config["scores"].get("citations") or {}).items():
        for question, table in (found.get("by_query_language") or {}).items():
            for document, entry in table.items():
                for share, key in (("of the documents shown", "inclusion_mean"), ("of the citations", "citation_mean")):
                    if entry.get(key) is not None:
                        point = {"task": leaf.label, "source": source, "question": question, "document": document}
                        count = entry["documents" if key.startswith("inclusion") else "citations"]
                        out.append(point | {"share": share, "value": round(100 * entry[key], 2), "n": count})
    return out


def citation_rows(leaf: Leaf) -> list[Point]:
    """How many questions were answered with citations, and what could not be counted."""
    return [
        {"task": leaf.label, "source": source}
        | {key: found.get(key) for key in ("queries", "citing", "unanswered", "without_documents", "out_of_range")}
        for source, found in (leaf.result.config["scores"].get("citations") or {}).items()
    ]


def answer_languages(leaf: Leaf, rows: Sequence[Sample]) -> list[Point]:
    """The languages of replies, by language of the question; none where no metric of the task looks at them."""
    names = {name for s in rows for name in (*s["rows"].get("values", ()), *s["rows"].get("unscored", ()))}
    if not names & _OF_LANGUAGE:
        return []
    from mrag_eval.metrics import correct_language_rate

    asked = [str((s["rows"].get("cell") or {}).get("query_lang", "")) for s in rows]
    replies = [_said(s) for s in rows]
    found = correct_language_rate(replies, asked)
    counts: Counter[str] = Counter()
    for question, label, reason in zip(asked, found.detected, found.reasons, strict=True):
        counts[f"{question}->{_language(label, reason or '')}"] += 1
    return shares(counts, {"task": leaf.label}, "question", "answer", "replies")


def _said(sample: Sample) -> str:
    answer = sample["rows"].get("answer")
    text = answer.get("text") if isinstance(answer, Mapping) else None
    return str(text) if text is not None else reply_text(sample)


def _language(label: str | None, reason: str) -> str:
    from mrag_eval.core import is_language, normalize_language

    if label is None:
        return "unknown to the detector" if "does not know" in reason else TOO_SHORT
    return normalize_language(label) if is_language(label) else label


def shares(found: Mapping[str, int], base: Point, first: str, second: str, count: str) -> list[Point]:
    """``a->b`` counts as points, with the share of each within its ``a``."""
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
    """What has no score, and why."""
    return [
        {"task": leaf.label, "metric": metric, "reason": reason, "rows": n}
        for metric, reasons in leaf.result.unscored.items()
        for reason, n in reasons.items()
    ]
