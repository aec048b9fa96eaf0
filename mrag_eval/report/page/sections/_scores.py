"""Every score: each task and metric as a table, and plotted with intervals."""

from __future__ import annotations

from typing import Any

from mrag_eval.report.files._results import metrics_in_order
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point, percent
from mrag_eval.report.page._section import Chart, Markup, Section
from mrag_eval.report.page._spec import Points, Spec, by_system, choices, field, height, intervals, spec
from mrag_eval.scoring import direction_lines, scale_of


def _table(data: PageData) -> dict[str, Any]:
    """Return the cells by task and metric, headlines first; a cell without a score has a reason."""
    rows = [score for score in data.figures if not score.dimension]
    metrics = metrics_in_order(leaf.result for leaf in data.leaves)
    return {
        "leaves": data.leaves,
        "metrics": metrics,
        "directions": direction_lines(metrics),
        "units": {metric: scale_of(metric).note for metric in metrics},
        "cells": {(r.task, r.metric): percent(r, r.metric) | {"reason": r.unscored or r.reason} for r in rows},
    }


def _score_points(data: PageData) -> list[Point]:
    """Return the scores in percent, as the axis has no other unit; a board shows those of a benchmark of one task."""
    boards = {board.benchmark for board in data.boards}
    several = {name for name in boards if len({one.task for one in data.leaves if one.benchmark == name}) > 1}
    tasks = {leaf.label: {"label": leaf.label, "task": leaf.task} for leaf in data.leaves}
    known = (point for point in data.scores if point["low"] is not None or point["n"])
    told = (point for point in known if point["benchmark"] not in boards - several)
    return [point | tasks[point["task"]] for point in told if scale_of(point["metric"]).percent]


def _scores(points: Points) -> Spec:
    return spec(
        points,
        "Scores of all tasks with their 95% intervals, by metric",
        ("task", "system", "value", "low", "high", "n"),
        height=height(points, "task", "system", chosen=("benchmark", "metric"), step=20),
        **choices(points, {"benchmark": "benchmark", "metric": "metric"}),
        **intervals(
            points,
            {
                "y": field("task", "nominal", "", sort=None),
                "yOffset": field("system", sort=[*dict.fromkeys(point["system"] for point in points)]),
                "color": by_system(points),
            },
            ("task", "system", "value", "low", "high", "n"),
        ),
    )


SCORES = Chart(
    "scores",
    "Scores by task",
    "Means over the rows with 95% intervals; counts are only in the table of every score.",
    _scores,
    _score_points,
    opens={"task": "label"},
)
SECTION = Section("scores", "Every score", blocks=(Markup("scores.html.jinja", _table),), folded=True)
