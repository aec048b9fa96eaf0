"""The report's charts: leaderboards, scores with intervals and heat maps, and the sources of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mrag_eval.report.page import _bars as bars
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._parts import percent
from mrag_eval.report.page._spec import Point, Spec, choices, field, height, intervals, language, spec, tooltip

# Cells above this value are so dark that black figures on them are hard to read.
_DARK = 68


def charts(data: PageData) -> dict[str, Spec]:
    """Return chart id -> specification, for every chart that has data."""
    made = {name: draw(points) for name, draw in _DRAWN.items() if (points := _points(data, name))}
    return {name: spec for name, spec in made.items() if spec is not None}


def _points(data: PageData, name: str) -> Sequence[Point]:
    return _board_points(data) if name == "board" else data.points.get(name, ())


def _board_points(data: PageData) -> list[Point]:
    """Return scores of the leaderboards' systems over everything, each tier and each language."""
    out: list[Point] = []
    for board in data.boards:
        for entry in board.entries:
            base = {"benchmark": board.benchmark, "metric": board.metric, "run": entry.run, "mode": entry.mode}
            for over, score in {"all": entry.score, **entry.parts}.items():
                if score.value is not None:
                    out.append({**base, "over": over, **percent(score)})
    order = {"all": 0, "low": 1, "mid": 2, "high": 3}
    return sorted(out, key=lambda point: (order.get(point["over"], 4), point["over"]))


def _board(points: Sequence[Point]) -> Spec:
    """Return each model's score in every IR mode (CORAL, Figure 2)."""
    keys = {"benchmark": "benchmark", "metric": "metric", "over": "over"}
    return spec(
        points,
        "Scores of each model by IR mode with their 95% intervals, over all languages, a tier or a language",
        ("run", "mode", "value", "low", "high", "n"),
        height=height(points, "run", "mode", chosen=("benchmark", "metric", "over"), step=20) + 20,
        **choices(points, keys),
        **intervals(
            points,
            {
                "y": field("run", "nominal", "", axis={"labelLimit": 200}),
                "yOffset": field("mode"),
                "color": field("mode", "nominal", "IR mode"),
            },
            ("run", "mode", "over", "value", "low", "high", "n"),
        ),
    )


def _scores(points: Sequence[Point]) -> Spec:
    """Return a dot with its interval for every task."""
    return spec(
        points,
        "Scores of all tasks with their 95% intervals, by metric",
        ("task", "mode", "value", "low", "high", "n"),
        height=height(points, "task", chosen=("benchmark", "metric")),
        **choices(points, {"benchmark": "benchmark", "metric": "metric"}),
        **intervals(
            points,
            {
                "y": field("task", "nominal", "", axis={"labelLimit": 220}),
                "color": field("mode", "nominal", "IR mode"),
            },
            ("task", "mode", "value", "low", "high", "n"),
        ),
    )


def _heat(
    points: Sequence[Point], description: str, x: Spec, y: Spec, columns: Sequence[str], by: Mapping[str, str]
) -> Spec:
    """Return a heat map with figures in its cells."""
    names = (str(y["field"]), str(x["field"]))
    return spec(
        points,
        description,
        columns,
        height=height(points, names[0], chosen=tuple(by)),
        encoding={"x": x, "y": y},
        usermeta={"pivot": list(names)},
        layer=[
            {
                "mark": {"type": "rect", "cursor": "pointer"},
                "encoding": {
                    "color": field("value", "quantitative", "score (%)", scale={"scheme": "blues", "domain": [0, 100]}),
                    "tooltip": tooltip(*columns),
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11, "cursor": "pointer"},
                "encoding": {
                    "text": field("value", "quantitative", format=".0f"),
                    "tooltip": tooltip(*columns),
                    "color": {"condition": {"test": f"datum.value > {_DARK}", "value": "white"}, "value": "#111"},
                },
            },
        ],
        **choices(points, by),
    )


_OF_A_MODEL = {"benchmark": "benchmark", "metric": "metric", "run": "model"}


def _languages(points: Sequence[Point]) -> Spec:
    return _heat(
        points,
        "Mean score by language and IR mode",
        field("mode", "nominal", "IR mode", axis={"labelAngle": -20, "labelLimit": 140}),
        language(points, "language", "language"),
        ("language", "mode", "value", "low", "high", "n"),
        _OF_A_MODEL,
    )


def _tiers(points: Sequence[Point]) -> Spec:
    return _heat(
        points,
        "Mean score by tier of languages and IR mode",
        field("mode", "nominal", "IR mode", axis={"labelAngle": -20, "labelLimit": 140}),
        field("tier", "nominal", "tier", sort=["low", "mid", "high"]),
        ("tier", "mode", "value", "low", "high", "n", "languages"),
        _OF_A_MODEL,
    )


def _pairs(points: Sequence[Point]) -> Spec:
    return _heat(
        points,
        "Mean score by language of the question and of the relevant document",
        language(points, "document", "relevant document in", axis={"labelAngle": -20}),
        language(points, "question", "question in"),
        ("question", "document", "value", "low", "high", "n"),
        {"task": "task", "metric": "metric"},
    )


_DRAWN: Mapping[str, Callable[[Sequence[Point]], Spec | None]] = {
    "board": _board,
    "scores": _scores,
    "languages": _languages,
    "stages": bars.stages,
    "tiers": _tiers,
    "pairs": _pairs,
    "links": bars.links,
    "retrieved": bars.retrieved,
    "answers": bars.answers,
    "cited": bars.cited,
    "planned": bars.planned,
    "planner_shown": bars.planner_shown,
    "selection": bars.selection,
    "relevance": bars.relevance,
    "sufficiency": bars.sufficiency,
}
