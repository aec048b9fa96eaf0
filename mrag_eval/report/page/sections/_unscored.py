"""The section on rows without a score: why they have none, what failed, and where the model gave no answer."""

from __future__ import annotations

from collections.abc import Iterator

from mrag_eval.core import points, score_text
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.findings._systems import few
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Listing, Section, each_task
from mrag_eval.scoring import scale_of


def _of_task(leaf: Leaf) -> list[Point]:
    """Return the numbers of unscored rows by metric and reason, and what they leave open of the score."""
    return [
        {"task": leaf.label, "metric": metric, "reason": reason, "rows": n} | _bounds(leaf, metric)
        for metric, reasons in leaf.result.unscored.items()
        for reason, n in reasons.items()
    ]


def _bounds(leaf: Leaf, metric: str) -> Point:
    score = leaf.result.metrics.get(metric)
    if score is None or score.bounds is None:
        return {}
    low, high = (points(end, scale=scale_of(metric)) for end in score.bounds)
    ends = f"{low} to {high}"
    why = leaf.result.no_headline(metric)
    return {"bounds": ends if why is None else f"{ends}; no headline: {why}"}


def _failures(leaf: Leaf) -> Iterator[Point]:
    """Yield the numbers of rows of which a step failed, or to which the model gave no answer, by language."""
    for language, part in leaf.result.scores.by_language.items():
        counts = [(step, reason, n) for step, reasons in part.failures.items() for reason, n in reasons.items()]
        counts += [("no answer", outcome, n) for outcome, n in part.outcomes.items()]
        share = score_text(part.failed.value, part.failed.low, part.failed.high) + (", many" if part.marked else "")
        for step, reason, n in counts:
            yield {
                "task": leaf.label,
                "language": language,
                "step": step,
                "reason": reason,
                "rows": n,
                "failed": share,
            }


def _unread(leaf: Leaf) -> Iterator[Point]:
    """Yield what unread choices leave open of an accuracy in each language, if their shares differ."""
    for metric, score in leaf.result.metrics.items():
        for language, (low, high) in score.unread.items():
            yield {
                "task": leaf.label,
                "metric": metric,
                "language": language,
                "unread": points(high - low),
                "bounds": f"{points(low)} to {points(high)}",
            }


def unscored_points(data: PageData) -> list[Point]:
    """Return what is missing of every task, in one line where metrics, and then where tasks, have it in common."""
    found = each_task(_of_task)(data)
    for joined in ("metric", "task"):
        alike: dict[str, list[Point]] = {}
        for point in found:
            alike.setdefault(repr({**point, joined: ""}), []).append(point)
        shown = ", ".join if joined == "metric" else few
        found = [same[0] | {joined: shown([point[joined] for point in same])} for same in alike.values()]
    return found


SECTION = Section(
    "unscored",
    "Unscored",
    folded=True,
    blocks=(
        Listing(
            "Scores that are missing, and why; bounds are the score with all failed rows wrong, and all right",
            {"task": "task", "metric": "metric", "reason": "reason", "rows": "rows", "bounds": "bounds"},
            unscored_points,
            numbers=(3,),
        ),
        Listing(
            "Rows of which a step failed, and rows to which the model gave no answer (they count as wrong)",
            {
                "task": "task",
                "language": "language",
                "step": "step",
                "reason": "reason",
                "rows": "rows",
                "failed": "failed, % of the language [95% interval]",
            },
            each_task(lambda leaf: list(_failures(leaf))),
            numbers=(4,),
        ),
        Listing(
            "Replies without a readable choice, which count as wrong, where their share differs between languages; "
            "bounds are the score with all of them wrong, and all right",
            {"task": "task", "metric": "metric", "language": "language", "unread": "unread, %", "bounds": "bounds"},
            each_task(lambda leaf: list(_unread(leaf))),
            numbers=(3,),
        ),
    ),
)
