"""The report's charts as Vega-Lite specifications over rows of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Point = Mapping[str, Any]
Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Stages in the order of the pipeline, and colours that stay apart for colour-blind readers (Okabe and Ito).
STAGES = ("correct", "not retrieved", "lost in reranking", "not used", "wrong language")
_COLOURS = ("#009E73", "#D55E00", "#E69F00", "#56B4E9", "#CC79A7")
_WORDS = {"value": "score (%)", "low": "95% from", "high": "95% to", "n": "rows"}


def charts(data: Any) -> dict[str, Spec]:
    """Chart id -> specification, for every chart that the data fills."""
    made = {
        "scores": _scores(data.scores),
        "languages": _languages(data.languages),
        "pairs": _pairs(data.pairs),
        "stages": _stages(data.stages),
        "retrieved": _retrieved(data.retrieved),
    }
    return {name: spec for name, spec in made.items() if spec is not None}


def _spec(points: Sequence[Point], description: str, **rest: Any) -> Spec:
    return {
        "$schema": _SCHEMA,
        "description": description,
        "data": {"values": [dict(point) for point in points]},
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        **rest,
    }


def _height(points: Sequence[Point], field: str) -> int:
    """Pixels for a row of each value; a number, because Vega-Lite warns of steps where the width is the page's."""
    return 26 * max(2, len({point[field] for point in points}))


def _choice(name: str, values: Sequence[Any], label: str) -> Spec:
    options = list(dict.fromkeys(values))
    return {"name": name, "value": options[0], "bind": {"input": "select", "options": options, "name": f"{label}: "}}


def _field(name: str, kind: str, title: str | None = None, **rest: Any) -> Spec:
    return {"field": name, "type": kind, "title": title if title is not None else name, **rest}


def _tooltip(*names: str) -> list[Spec]:
    numbers = ("value", "low", "high", "n", "rows", "passages")
    return [_field(name, "quantitative" if name in numbers else "nominal", _WORDS.get(name, name)) for name in names]


_PERCENT = {"scale": {"domain": [0, 100]}}


def _scores(points: Sequence[Point]) -> Spec | None:
    """A dot with its interval for every task."""
    if not points:
        return None
    return _spec(
        points,
        "Scores of all tasks with their 95% intervals, by metric",
        params=[_choice("metric", [p["metric"] for p in points], "metric")],
        transform=[{"filter": "datum.metric == metric"}],
        height=_height(points, "task"),
        encoding={
            "y": _field("task", "nominal", "", axis={"labelLimit": 260}),
            "color": _field("mode", "nominal", "IR mode"),
        },
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6, "clip": True},
                "encoding": {
                    "x": _field("low", "quantitative", "score (%)", **_PERCENT),
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {
                    "x": _field("value", "quantitative", "score (%)", **_PERCENT),
                    "tooltip": _tooltip("task", "mode", "value", "low", "high", "n"),
                },
            },
        ],
    )


def _heat(points: Sequence[Point], description: str, x: Spec, y: Spec, tooltip: list[Spec], **rest: Any) -> Spec:
    """A heat map with its figures written into the cells."""
    dark = {"test": "datum.value > 60", "value": "white"}
    return _spec(
        points,
        description,
        height=_height(points, str(y["field"])),
        encoding={"x": x, "y": y},
        layer=[
            {
                "mark": {"type": "rect"},
                "encoding": {
                    "color": _field(
                        "value", "quantitative", "score (%)", scale={"scheme": "blues", "domain": [0, 100]}
                    ),
                    "tooltip": tooltip,
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "text": _field("value", "quantitative", format=".0f"),
                    "color": {"condition": dark, "value": "#111"},
                },
            },
        ],
        **rest,
    )


def _languages(points: Sequence[Point]) -> Spec | None:
    """Language of the question x IR mode, for one benchmark, metric and model."""
    if not points:
        return None
    params = [
        _choice("metric", [p["metric"] for p in points], "metric"),
        _choice("benchmark", [p["benchmark"] for p in points], "benchmark"),
        _choice("run", [p["run"] for p in points], "model"),
    ]
    chosen = "datum.metric == metric && datum.benchmark == benchmark && datum.run == run"
    return _heat(
        points,
        "Mean score by language of the question and IR mode",
        _field("mode", "nominal", "IR mode", axis={"labelAngle": 0}),
        _field("language", "nominal", "question in"),
        _tooltip("task", "language", "mode", "value", "n"),
        params=params,
        transform=[{"filter": chosen}],
    )


def _pairs(points: Sequence[Point]) -> Spec | None:
    """Language of the question x language of the relevant document."""
    if not points:
        return None
    return _heat(
        points,
        "Mean score by language of the question and of the relevant document",
        _field("document", "nominal", "relevant document in", axis={"labelAngle": 0}),
        _field("question", "nominal", "question in"),
        _tooltip("task", "question", "document", "value", "low", "high", "n"),
        params=[
            _choice("task", [p["task"] for p in points], "task"),
            _choice("metric", [p["metric"] for p in points], "metric"),
        ],
        transform=[{"filter": "datum.task == task && datum.metric == metric"}],
    )


def _stages(points: Sequence[Point]) -> Spec | None:
    """Where the errors come from: shares of the rows, in the order of the pipeline."""
    if not points:
        return None
    return _spec(
        [{**p, "order": STAGES.index(p["stage"]) if p["stage"] in STAGES else len(STAGES)} for p in points],
        "Where errors come from: shares of rows by stage of the pipeline",
        height=_height(points, "task"),
        mark={"type": "bar"},
        encoding={
            "y": _field("task", "nominal", "", axis={"labelLimit": 260}),
            "x": _field("rows", "quantitative", "share of rows", stack="normalize", axis={"format": "%"}),
            "color": _field("stage", "nominal", "", scale={"domain": list(STAGES), "range": list(_COLOURS)}),
            "order": _field("order", "ordinal"),
            "tooltip": _tooltip("task", "stage", "rows"),
        },
    )


def _retrieved(points: Sequence[Point]) -> Spec | None:
    """Languages of what was retrieved, by language of the question."""
    if not points:
        return None
    return _spec(
        points,
        "Languages of the retrieved passages by language of the question",
        params=[_choice("task", [p["task"] for p in points], "task")],
        transform=[{"filter": "datum.task == task"}],
        height=_height(points, "question"),
        mark={"type": "bar"},
        encoding={
            "y": _field("question", "nominal", "question in"),
            "x": _field("passages", "quantitative", "share of passages", stack="normalize", axis={"format": "%"}),
            "color": _field("document", "nominal", "passage in"),
            "tooltip": _tooltip("question", "document", "passages"),
        },
    )
