"""The section on the languages of what was retrieved and of replies."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from mrag_eval.core import is_language, normalize_language, rounded
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.page._points import Point, shares
from mrag_eval.report.page._section import Chart, Listing, Section, each_task
from mrag_eval.report.page._shapes import share_bars
from mrag_eval.report.page._spec import Points, Spec, by_language, language

# A task needs one of these metrics for the language of its answers to be reported.
_OF_LANGUAGE = {"correct_language", "answered_in_english", "language_check"}
_TOO_SHORT = "too short to tell"
# What a reason says -> why no language is named.
_UNTOLD = {"does not know": "unknown to the detector", " recognises ": "the detector often misses it"}


def _answer_languages(leaf: Leaf, rows: Samples) -> list[Point]:
    """Return the languages of replies, by a known language of the question; empty if no metric depends on them."""
    names = {name for record in rows.records for name in (*record.values, *record.unscored)}
    if not names & _OF_LANGUAGE:
        return []
    from mrag_eval.metrics import correct_language_rate

    rule = leaf.result.config.judge.get("correct_language") or {}
    counts: Counter[str] = Counter()
    known = ((s.record.query_lang, s.answer) for s in rows if is_language(s.record.query_lang))
    while part := [*islice(known, 1000)]:
        asked = [question for question, _ in part]
        found = correct_language_rate(
            [answer for _, answer in part],
            asked,
            min_recognised=rule.get("min_recognised"),
            check_script=bool(rule.get("check_script")),
        )
        for question, label, reason in zip(asked, found.detected, found.reasons, strict=True):
            counts[f"{question}->{_name(label, reason or '')}"] += 1
    if all(pair.endswith(f"->{_TOO_SHORT}") for pair in counts):
        return []
    return shares(counts, {"task": leaf.label}, "question", "answer", "replies")


def _name(label: str | None, reason: str) -> str:
    if label is None:
        return next((name for part, name in _UNTOLD.items() if part in reason), _TOO_SHORT)
    return normalize_language(label) if is_language(label) else label


def _answers(points: Points) -> Spec:
    colour = by_language(points, "answer", "reply in")
    y = language(points, "question", "question in")
    return share_bars(points, "Languages of the replies by language of the question", y, "replies", colour, "task")


def _retrieved_points(leaf: Leaf) -> list[Point]:
    """Return passages of the rankings by language, and of the question."""
    table = leaf.result.scores.languages
    found = table.retrieved if table is not None else {}
    return shares(found, {"task": leaf.label}, "question", "document", "passages")


def _retrieved(points: Points) -> Spec:
    colour = by_language(points, "document", "passage in")
    y = language(points, "question", "question in")
    return share_bars(points, "Languages of the passages by language of the question", y, "passages", colour, "task")


def _preference_points(leaf: Leaf) -> list[Point]:
    """Return how much passages in the question's language are preferred over their share of the corpus."""
    table = leaf.result.scores.languages
    return [
        {"task": leaf.label, "language": language}
        | {key: rounded(getattr(found.ratio, key), 3) for key in ("value", "low", "high")}
        | {"n": found.n_queries, "searched": leaf.result.config.source.get("searchable") or "all passages searched"}
        for language, found in (table.preference if table is not None else {}).items()
        if found.ratio.value is not None
    ]


SECTION = Section(
    "generation",
    "Which languages do passages and replies have?",
    "Passages and replies",
    (
        Chart(
            "retrieved",
            "Languages of what was retrieved",
            "Of all passages in the rankings, not only those shown.",
            _retrieved,
            each_task(_retrieved_points),
        ),
        Listing(
            "Passages in the language of the question, over what the corpus leads one to expect (1: no preference)",
            {"task": "task", "language": "question in", "value": "ratio", "low": "95% from", "high": "95% to"}
            | {"n": "questions", "searched": "relative to"},
            each_task(_preference_points),
            numbers=range(2, 6),
            folded="Preference for the question's language",
        ),
        Chart(
            "answers",
            "Languages of the replies",
            "As a detector sees them; replies of 20 characters or fewer are too short. A reply in Malay counts as "
            "Indonesian and vice versa, and Serbian, Croatian and Bosnian count as one.",
            _answers,
            of_samples=_answer_languages,
        ),
    ),
)
