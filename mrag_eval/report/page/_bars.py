"""The report's bars: stages, languages of passages, replies and citations, and the agents' actions, as shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.report.page._spec import (
    Point,
    Spec,
    by_language,
    choices,
    field,
    height,
    in_order,
    intervals,
    language,
    spec,
    tooltip,
)

# Stages in the order of the pipeline, and colours that colour-blind readers can distinguish (Okabe and Ito).
STAGES = ("correct", "not retrieved", "lost in reranking", "not used", "wrong language")
_COLOURS = ("#009E73", "#D55E00", "#E69F00", "#56B4E9", "#CC79A7")


def _shares(
    points: Sequence[Point], description: str, y: Spec, count: str, colour: Spec, choose: str, **encoding: Any
) -> Spec:
    """Return bars of full length, divided by colour."""
    rows = [str(y["field"]), *([encoding["yOffset"]["field"]] if "yOffset" in encoding else [])]
    columns = [*rows, str(colour["field"]), count, "share"]
    return spec(
        points,
        description,
        columns,
        height=height(points, *rows, chosen=(choose,), step=26 if len(rows) == 1 else 16),
        mark={"type": "bar"},
        encoding={
            "y": y,
            "x": field(count, "quantitative", "share", stack="normalize", axis={"format": "%"}),
            "color": colour,
            "tooltip": tooltip(*columns),
            **encoding,
        },
        **choices(points, {choose: choose}),
    )


def stages(points: Sequence[Point]) -> Spec:
    """Return the sources of errors: shares of the rows, in the order of the pipeline."""
    ordered = [{**p, "order": STAGES.index(p["stage"]) if p["stage"] in STAGES else len(STAGES)} for p in points]
    return spec(
        ordered,
        "Where errors come from: shares of rows by stage of the pipeline",
        ("task", "stage", "rows", "share"),
        height=height(points, "task"),
        mark={"type": "bar"},
        encoding={
            "y": field("task", "nominal", "", axis={"labelLimit": 180}),
            "x": field("rows", "quantitative", "share of rows", stack="normalize", axis={"format": "%"}),
            "color": field("stage", "nominal", "", scale={"domain": list(STAGES), "range": list(_COLOURS)}),
            "order": field("order", "ordinal"),
            "tooltip": tooltip("task", "stage", "rows", "share"),
        },
    )


def links(points: Sequence[Point]) -> Spec:
    """Return the chain from retrieval to the answer, link by link."""
    names = list(dict.fromkeys(point["link"] for point in points))
    return spec(
        points,
        "How far questions get: retrieved, kept for the prompt, answered, each given the one before",
        ("task", "link", "value", "low", "high", "n"),
        height=height(points, "link", chosen=("task",)),
        **choices(points, {"task": "task"}),
        **intervals(
            points,
            {"y": field("link", "nominal", "", sort=names, axis={"labelLimit": 220})},
            ("task", "link", "value", "low", "high", "n"),
            "share (%)",
        ),
    )


def retrieved(points: Sequence[Point]) -> Spec:
    """Return the languages of the passages in the rankings."""
    colour = by_language(points, "document", "passage in")
    y = language(points, "question", "question in")
    return _shares(points, "Languages of the passages by language of the question", y, "passages", colour, "task")


def answers(points: Sequence[Point]) -> Spec:
    """Return the languages of the replies."""
    colour = by_language(points, "answer", "reply in")
    y = language(points, "question", "question in")
    return _shares(points, "Languages of the replies by language of the question", y, "replies", colour, "task")


def cited(points: Sequence[Point]) -> Spec:
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


def planned(points: Sequence[Point]) -> Spec:
    """Return the languages that the planner searched, one bar per round."""
    return _shares(
        points,
        "Languages that the planner searched, by round and language of the culture or question",
        language(points, "question", "asked about"),
        "times",
        by_language(points, "language", "searched in"),
        "run",
        yOffset=field("round", "ordinal"),
    )


def planner_shown(points: Sequence[Point]) -> Spec:
    """Return the languages of the documents shown after the loop."""
    colour = by_language(points, "document", "document in")
    y = language(points, "question", "asked about")
    return _shares(points, "Languages of the documents shown, by what was asked about", y, "n", colour, "run")


def _counts(points: Sequence[Point], description: str, what: str, colours: Mapping[str, str]) -> Spec:
    """Return counts by round."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return spec(
        points,
        description,
        ("round", what, "n"),
        height=height(points, "round", chosen=("run",)),
        mark={"type": "bar"},
        encoding={
            "y": field("round", "ordinal"),
            "x": field("n", "quantitative", "number"),
            "color": field(what, "nominal", "", scale=scale),
            "tooltip": tooltip("round", what, "n"),
        },
        **choices(points, {"run": "run"}),
    )


def selection(points: Sequence[Point]) -> Spec:
    """Return the documents that the critic kept and discarded."""
    colours = {"kept": "#009E73", "discarded": "#D55E00"}
    return _counts(points, "New documents that the critic kept and discarded, by round", "passages", colours)


def sufficiency(points: Sequence[Point]) -> Spec:
    """Return the planner's verdicts on the documents, and the reasons why loops ended."""
    ends = in_order([point["verdict"] for point in points if point["verdict"].startswith("ended")])
    greys = ("#7F7F7F", "#BBBBBB", "#56B4E9", "#CC79A7")
    colours = {"enough": "#009E73", "not enough": "#E69F00"} | {
        end: greys[i % len(greys)] for i, end in enumerate(ends)
    }
    return _counts(points, "Questions by what the planner said of the documents, by round", "verdict", colours)


def relevance(points: Sequence[Point]) -> Spec:
    """Return the critic's mean scores."""
    return spec(
        points,
        "The critic's mean scores of the documents found, from 1 to 5, by round",
        ("round", "criterion", "value", "n"),
        height=height(points, "round", "criterion", chosen=("run",), step=18),
        mark={"type": "bar"},
        encoding={
            "y": field("round", "ordinal"),
            "yOffset": field("criterion"),
            "x": field("value", "quantitative", "mean score, 1 to 5", scale={"domain": [0, 5]}),
            "color": field("criterion", "nominal", ""),
            "tooltip": tooltip("round", "criterion", "value", "n"),
        },
        **choices(points, {"run": "run"}),
    )
