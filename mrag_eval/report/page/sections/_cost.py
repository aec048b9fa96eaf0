"""The section on cost: calls, tokens and time of all auxiliary models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrag_eval.platform import to_json
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Listing, Section

_COUNTED = ("calls", "cached", "retries", "failures", "tokens_in", "tokens_out", "seconds")


def cost_points(data: PageData) -> list[Point]:
    """Return the cost of the models in every task's results."""
    return [
        {key: round(value, 1) if isinstance(value, float) else value for key, value in point.items()}
        for leaf in data.leaves
        for point in _of_task(leaf)
    ]


def _of_task(leaf: Leaf) -> list[Point]:
    """Return the cost of every auxiliary model that has a ledger in the results."""
    scores = leaf.result.scores
    paid = (
        ("judging answers", scores.judge.ledger if scores.judge is not None else None),
        ("judging passages", scores.sufficiency.ledger if scores.sufficiency is not None else None),
        ("judging claims", scores.claims.ledger if scores.claims is not None else None),
        ("labelling relevance", scores.relevance.ledger if scores.relevance is not None else None),
    )
    out = [_cost(leaf, about, model, to_json(cost)) for about, found in paid for model, cost in (found or {}).items()]
    translation = scores.translation
    if translation is not None and translation.cost is not None:
        out.append(_cost(leaf, "translating", translation.translator, translation.cost))
    about = {"task": leaf.label, "about": "all replies, kept ones among them"}
    seats = (leaf.result.config.outcome.get("seats") or {}).items()
    return [*out, *({**about, "model": seat, **came_back, "failures": None} for seat, came_back in seats)]


def _cost(leaf: Leaf, about: str, model: str, cost: Mapping[str, Any]) -> Point:
    failures = cost.get("failures")
    count = sum(failures.values()) if isinstance(failures, Mapping) else failures
    return {"task": leaf.label, "about": about, "model": model, **cost, "failures": count}


SECTION = Section(
    "cost",
    "Cost",
    folded=True,
    blocks=(
        Listing(
            "What auxiliary models were asked and took",
            {
                "task": "task",
                "about": "what for",
                "model": "model",
                **{name: name.replace("_", " ") for name in _COUNTED},
            },
            cost_points,
            numbers=range(3, 10),
        ),
    ),
)
