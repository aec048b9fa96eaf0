"""The section on replies: their languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mrag_eval.core import is_language, normalize_language
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.page._points import Point, shares
from mrag_eval.report.page._section import Chart, Section
from mrag_eval.report.page._shapes import share_bars
from mrag_eval.report.page._spec import Points, Spec, by_language, language

# A task needs one of these metrics for the language of its answers to be reported.
_OF_LANGUAGE = {"correct_language", "answered_in_english", "language_check"}
_TOO_SHORT = "too short to tell"
# What a reason says -> why no language is named.
_UNTOLD = {"does not know": "unknown to the detector", " recognises ": "the detector often misses it"}


def _answer_languages(leaf: Leaf, rows: Sequence[Sample]) -> list[Point]:
    """Return the languages of replies, by a known language of the question; empty if no metric depends on them."""
    names = {name for s in rows for name in (*s.record.values, *s.record.unscored)}
    if not names & _OF_LANGUAGE:
        return []
    from mrag_eval.metrics import correct_language_rate

    known = [s for s in rows if is_language(s.record.query_lang)]
    asked = [s.record.query_lang for s in known]
    rule = leaf.result.config.judge.get("correct_language") or {}
    found = correct_language_rate(
        [s.answer for s in known],
        asked,
        min_recognised=rule.get("min_recognised"),
        check_script=bool(rule.get("check_script")),
    )
    counts: Counter[str] = Counter()
    for question, label, reason in zip(asked, found.detected, found.reasons, strict=True):
        counts[f"{question}->{_name(label, reason or '')}"] += 1
    return shares(counts, {"task": leaf.label}, "question", "answer", "replies")


def _name(label: str | None, reason: str) -> str:
    if label is None:
        return next((name for part, name in _UNTOLD.items() if part in reason), _TOO_SHORT)
    return normalize_language(label) if is_language(label) else label


def _answers(points: Points) -> Spec:
    colour = by_language(points, "answer", "reply in")
    y = language(points, "question", "question in")
    return share_bars(points, "Languages of the replies by language of the question", y, "replies", colour, "task")


SECTION = Section(
    "generation",
    "Replies",
    blocks=(
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
