"""The section on the agents' loop: its course in every task, and the agents' choices by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._planner_counts import NO_DECISION
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Chart, Listing, Section, each_task
from mrag_eval.report.page._shapes import bars, share_bars
from mrag_eval.report.page._spec import (
    Points,
    Spec,
    by_language,
    field,
    in_order,
    language,
)


def _loop_row(leaf: Leaf) -> list[Point]:
    """Return the agents' loop as one row: rounds, cost, questions without documents, faults."""
    loop = leaf.result.scores.loop
    if loop is None:
        return []
    return [
        {
            "task": leaf.label,
            "questions": loop.rows,
            "rounds": round(loop.mean_rounds, 2),
            "valid": round(loop.per_question.valid, 2),
            "calls": round(loop.per_question.calls, 1),
            "tokens": round(loop.per_question.tokens),
            "without": None if (bare := loop.without_documents.value) is None else round(100 * bare, 1),
            "stopped": ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in loop.stopped.items()),
            "faults": ", ".join(f"{fault} {n:,}" for fault, n in loop.faults.items()) or "none",
        }
    ]


def _planned(points: Points) -> Spec:
    return share_bars(
        points,
        "Languages that the planner searched, by round and language of the culture or question",
        language(points, "question", "asked about"),
        "times",
        by_language(points, "language", "searched in"),
        "run",
        yOffset=field("round", "ordinal"),
    )


def _planner_shown(points: Points) -> Spec:
    colour = by_language(points, "document", "document in")
    y = language(points, "question", "asked about")
    return share_bars(points, "Languages of the documents shown, by what was asked about", y, "n", colour, "run")


def _counts(points: Points, description: str, what: str, colours: Mapping[str, str]) -> Spec:
    scale = {"domain": list(colours), "range": list(colours.values())}
    encoding = {
        "y": field("round", "ordinal"),
        "x": field("n", "quantitative", "number"),
        "color": field(what, "nominal", "", scale=scale),
    }
    return bars(points, description, ("round", what, "n"), encoding, {"run": "run"})


def _selection(points: Points) -> Spec:
    colours = {"kept": "#009E73", "discarded": "#D55E00"}
    return _counts(points, "New documents that the critic kept and discarded, by round", "passages", colours)


def _relevance(points: Points) -> Spec:
    encoding = {
        "y": field("round", "ordinal"),
        "yOffset": field("criterion"),
        "x": field("value", "quantitative", "mean score, 1 to 5", scale={"domain": [0, 5]}),
        "color": field("criterion", "nominal", ""),
    }
    description = "The critic's mean scores of the documents found, from 1 to 5, by round"
    return bars(points, description, ("round", "criterion", "value", "n"), encoding, {"run": "run"}, step=18)


def _sufficiency(points: Points) -> Spec:
    ends = in_order([point["verdict"] for point in points if point["verdict"].startswith("ended")])
    greys = ("#7F7F7F", "#BBBBBB", "#56B4E9", "#CC79A7")
    colours = {"enough": "#009E73", "not enough": "#E69F00"} | {
        end: greys[i % len(greys)] for i, end in enumerate(ends)
    }
    if any(point["verdict"] == NO_DECISION for point in points):
        colours[NO_DECISION] = "#D55E00"
    return _counts(points, "Questions by what the critic said of the documents, by round", "verdict", colours)


def _chart(id: str, title: str, note: str, draw: Callable[[Points], Spec]) -> Chart:
    """Return the chart of what the planners' counts have under its id."""

    def points(data: PageData) -> list[Point]:
        return [point for planner in data.planners.values() for point in planner.points()[id]]

    return Chart(id, title, note, draw, points)


SECTION = Section(
    "agents",
    "Agents",
    blocks=(
        Listing(
            "The loop, means over questions",
            {"task": "task", "questions": "questions", "rounds": "rounds", "valid": "valid documents"}
            | {"calls": "calls", "tokens": "tokens", "without": "without documents (%)", "stopped": "ended"}
            | {"faults": "faults"},
            each_task(_loop_row),
            numbers=range(1, 7),
            folded="The loop, task by task",
            unfolded=8,
        ),
        _chart(
            "planned",
            "Languages the planner searched",
            "Bars from top to bottom are the rounds, the first at the top.",
            _planned,
        ),
        _chart(
            "planner_shown",
            "Languages of the documents shown",
            "After the loop, in their own language.",
            _planner_shown,
        ),
        _chart("selection", "What the critic kept", "New documents of each round.", _selection),
        _chart(
            "relevance", "How the critic scored", "New documents of each round; means of 1 (poor) to 5.", _relevance
        ),
        _chart(
            "sufficiency",
            "When there was enough",
            "What the critic said after each round, and how the others ended.",
            _sufficiency,
        ),
    ),
)
