"""The section on rows without a score, and why they have none."""

from __future__ import annotations

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Listing, Section, each_task


def _of_task(leaf: Leaf) -> list[Point]:
    """Return the numbers of unscored rows by metric and reason."""
    return [
        {"task": leaf.label, "metric": metric, "reason": reason, "rows": n}
        for metric, reasons in leaf.result.unscored.items()
        for reason, n in reasons.items()
    ]


unscored_points = each_task(_of_task)

SECTION = Section(
    "unscored",
    "Unscored",
    blocks=(
        Listing(
            "Scores that are missing, and why",
            {"task": "task", "metric": "metric", "reason": "reason", "rows": "rows"},
            unscored_points,
            numbers=(3,),
        ),
    ),
)
