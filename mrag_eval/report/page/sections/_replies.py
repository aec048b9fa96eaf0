"""The section on replies: their languages, and those of the documents that they cite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._samples import Sample
from mrag_eval.report.page._points import Point, shares
from mrag_eval.report.page._section import Chart, Listing, Section, each_task
from mrag_eval.report.page._shapes import share_bars
from mrag_eval.report.page._spec import Points, Spec, by_language, choices, field, height, language, spec, tooltip

# A task needs one of these metrics for the language of its answers to be reported.
_OF_LANGUAGE = {"correct_language", "answered_in_english", "language_check"}
_TOO_SHORT = "too short to tell"


def _answer_languages(leaf: Leaf, rows: Sequence[Sample]) -> list[Point]:
    """Return the languages of replies, by language of the question; empty if no metric of the task depends on them."""
    names = {name for s in rows for name in (*s.record.values, *s.record.unscored)}
    if not names & _OF_LANGUAGE:
        return []
    from mrag_eval.metrics import correct_language_rate

    asked = [s.record.query_lang for s in rows]
    found = correct_language_rate([s.answer for s in rows], asked)
    counts: Counter[str] = Counter()
    for question, label, reason in zip(asked, found.detected, found.reasons, strict=True):
        counts[f"{question}->{_name(label, reason or '')}"] += 1
    return shares(counts, {"task": leaf.label}, "question", "answer", "replies")


def _name(label: str | None, reason: str) -> str:
    from mrag_eval.core import is_language, normalize_language

    if label is None:
        return "unknown to the detector" if "does not know" in reason else _TOO_SHORT
    return normalize_language(label) if is_language(label) else label


def _answers(points: Points) -> Spec:
    colour = by_language(points, "answer", "reply in")
    y = language(points, "question", "question in")
    return share_bars(points, "Languages of the replies by language of the question", y, "replies", colour, "task")


def _citation_points(leaf: Leaf) -> list[Point]:
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


def _cited(points: Points) -> Spec:
    """Return two bars for every language of questions: the documents shown and the citations, by language."""
    return spec(
        points,
        "Languages of the documents shown and of the documents cited, by language of the question",
        ("question", "share", "document", "value", "n"),
        height=height(points, "question", "share", chosen=("task", "source"), step=18),
        mark={"type": "bar"},
        encoding={
            "y": language(points, "question", "question in"),
            "yOffset": field("share", sort=["of the documents shown", "of the citations"]),
            "x": field("value", "quantitative", "mean share (%)", stack="zero", scale={"domain": [0, 100]}),
            "color": by_language(points, "document", "document in"),
            # the note above the chart explains the two bars
            "opacity": {"condition": {"test": "datum.share === 'of the citations'", "value": 1}, "value": 0.55},
            "tooltip": tooltip("question", "share", "document", "value", "n"),
        },
        **choices(points, {"task": "task", "source": "citations"}),
    )


def citation_rows(leaf: Leaf) -> list[Point]:
    """Return how many questions were answered with citations, and how many could not be counted."""
    return [
        {"task": leaf.label, "source": source, "queries": found.queries, "citing": found.citing}
        | {"unanswered": found.unanswered, "without_documents": found.without_documents}
        | {"out_of_range": found.out_of_range}
        for source, found in (leaf.result.scores.citations or {}).items()
    ]


SECTION = Section(
    "generation",
    "Replies",
    blocks=(
        Chart(
            "answers",
            "Languages of the replies",
            "As a detector sees them; replies of 20 characters or fewer are too short.",
            _answers,
            of_samples=_answer_languages,
        ),
        Chart(
            "cited",
            "Languages of what was cited",
            "Means over questions: of the documents in the prompt (upper bar) and of the citations (lower bar).",
            _cited,
            each_task(_citation_points),
        ),
        Listing(
            "Questions answered with citations",
            {"task": "task", "source": "citations", "queries": "questions with documents", "citing": "citing"}
            | {"unanswered": "without a reply", "without_documents": "without documents"}
            | {"out_of_range": "citations of no document"},
            each_task(citation_rows),
            numbers=range(2, 7),
        ),
    ),
)
