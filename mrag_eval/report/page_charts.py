"""The report's charts as Vega-Lite specifications over rows of values.

``usermeta`` of a specification says how its values read as a table: ``columns`` (field -> head), and for a heat map
``pivot`` (the fields of its rows and columns). Parameters have the names of the fields that they choose by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mrag_eval.languages import LANGUAGES
from mrag_eval.report.page_data import PageData
from mrag_eval.report.page_parts import percent
from mrag_eval.report.samples import CORRECT

Point = Mapping[str, Any]
Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Stages in the order of the pipeline, and colours that stay apart for colour-blind readers (Okabe and Ito).
STAGES = ("correct", "not retrieved", "lost in reranking", "not used", "wrong language")
_COLOURS = ("#009E73", "#D55E00", "#E69F00", "#56B4E9", "#CC79A7")
# For languages: Okabe and Ito's again, then lighter and darker ones, told apart by their order and the table as well.
_PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F", "#332288", "#88CCEE"),
    *("#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#661100", "#6699CC", "#BBBBBB"),
)
_HEADS = {"value": "score (%)", "low": "95% from", "high": "95% to", "n": "n", "share": "%", "run": "model"}
_NUMBERS = frozenset({"value", "low", "high", "n", "rows", "passages", "replies", "share", "times", "kappa"})
_PERCENT = {"scale": {"domain": [0, 100]}}
# From here a cell is so dark that black figures on it are hard to read.
_DARK = 68


def charts(data: PageData) -> dict[str, Spec]:
    """Chart id -> specification, for every chart that the data fills."""
    made = {name: draw(points) for name, draw in _DRAWN.items() if (points := _points(data, name))}
    return {name: spec for name, spec in made.items() if spec is not None}


def _points(data: PageData, name: str) -> Sequence[Point]:
    return _board_points(data) if name == "board" else data.points.get(name, ())


def _spec(points: Sequence[Point], description: str, columns: Sequence[str], **rest: Any) -> Spec:
    meta = {"columns": {name: _HEADS.get(name, name) for name in columns}} | rest.pop("usermeta", {})
    return {
        "$schema": _SCHEMA,
        "description": description,
        "data": {"values": [dict(point) for point in points]},
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "usermeta": meta,
        **rest,
    }


def _height(points: Sequence[Point], *fields: str, chosen: Sequence[str] = (), step: int = 26) -> int:
    """Pixels for a row of each value; a number, because Vega-Lite warns of steps where the width is the page's.

    Of values that are shown only as a parameter in ``chosen`` is set, room for the choice that has most.
    """
    rows: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for point in points:
        rows.setdefault(tuple(point[name] for name in chosen), set()).add(tuple(point[name] for name in fields))
    return step * max(2, max(len(found) for found in rows.values()))


def _choices(points: Sequence[Point], names: Mapping[str, str]) -> dict[str, Any]:
    """Parameters with a list to choose from, by field -> label, and the filter that they make."""
    params = []
    for name, label in names.items():
        options = list(dict.fromkeys(point[name] for point in points))
        if name == "metric":
            # those that say whether an answer is right in front
            options.sort(key=lambda metric: CORRECT.index(metric) if metric in CORRECT else len(CORRECT))
        bind = {"input": "select", "options": options, "name": f"{label} "}
        # a choice of one is none
        params.append({"name": name, "value": options[0], **({"bind": bind} if len(options) > 1 else {})})
    test = " && ".join(f"datum[{name!r}] === {name}" for name in names)
    return {"params": params, "transform": [{"filter": test}]}


def _field(name: str, kind: str = "nominal", title: str | None = None, **rest: Any) -> Spec:
    return {"field": name, "type": kind, "title": title if title is not None else _HEADS.get(name, name), **rest}


def _language(points: Sequence[Point], name: str, title: str, kind: str = "axis", **rest: Any) -> Spec:
    """A field of language codes whose labels are names."""
    codes = sorted({str(point[name]) for point in points} & LANGUAGES.keys())
    names = json.dumps({code: LANGUAGES[code].name for code in codes})
    label = {"labelExpr": f"({names})[datum.value] || datum.label"}
    return _field(name, "nominal", title, **{kind: {**label, **rest.pop(kind, {})}}, **rest)


def _tooltip(*names: str) -> list[Spec]:
    return [_field(name, "quantitative" if name in _NUMBERS else "nominal") for name in names]


def _in_order(values: Sequence[str]) -> list[str]:
    return sorted(dict.fromkeys(values))


def _by_language(points: Sequence[Point], field: str, title: str) -> Spec:
    """A colour for each language, the same in every chart that has the same languages."""
    codes = _in_order([str(point[field]) for point in points])
    colours = [_PALETTE[i % len(_PALETTE)] for i in range(len(codes))]
    return _language(points, field, title, "legend", scale={"domain": codes, "range": colours})


def _intervals(points: Sequence[Point], encoding: Spec, tooltip: Sequence[str], title: str = "score (%)") -> Spec:
    """Dots with their intervals."""
    scale = _PERCENT if all(0 <= float(p["value"]) <= 100 for p in points) else {}
    return {
        "encoding": encoding,
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6, "clip": True},
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "encoding": {"x": _field("low", "quantitative", title, **scale), "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": _field("value", "quantitative", title, **scale),
                    "tooltip": _tooltip(*tooltip),
                    # told apart without colours; not for the rules, which would get points of their own
                    **({"shape": _field("mode", legend=None)} if "yOffset" in encoding else {}),
                },
            },
        ],
    }


# ----------------------------------------------------------------- scores


def _board_points(data: PageData) -> list[Point]:
    """Scores of the leaderboards' systems over everything, each tier and each language."""
    out: list[Point] = []
    for board in data.boards:
        for entry in board.entries:
            base = {"benchmark": board.benchmark, "metric": board.metric, "run": entry.run, "mode": entry.mode}
            for over, score in {"all": entry.score, **entry.parts}.items():
                if score.get("value") is not None:
                    out.append({**base, "over": over, **percent(score)})
    order = {"all": 0, "low": 1, "mid": 2, "high": 3}
    return sorted(out, key=lambda point: (order.get(point["over"], 4), point["over"]))


def _board(points: Sequence[Point]) -> Spec:
    """Each model's score in every IR mode (CORAL, Figure 2)."""
    keys = {"benchmark": "benchmark", "metric": "metric", "over": "over"}
    return _spec(
        points,
        "Scores of each model by IR mode with their 95% intervals, over all languages, a tier or a language",
        ("run", "mode", "value", "low", "high", "n"),
        height=_height(points, "run", "mode", chosen=("benchmark", "metric", "over"), step=20) + 20,
        **_choices(points, keys),
        **_intervals(
            points,
            {
                "y": _field("run", "nominal", "", axis={"labelLimit": 200}),
                "yOffset": _field("mode"),
                "color": _field("mode", "nominal", "IR mode"),
            },
            ("run", "mode", "over", "value", "low", "high", "n"),
        ),
    )


def _scores(points: Sequence[Point]) -> Spec:
    """A dot with its interval for every task."""
    return _spec(
        points,
        "Scores of all tasks with their 95% intervals, by metric",
        ("task", "mode", "value", "low", "high", "n"),
        height=_height(points, "task", chosen=("benchmark", "metric")),
        **_choices(points, {"benchmark": "benchmark", "metric": "metric"}),
        **_intervals(
            points,
            {
                "y": _field("task", "nominal", "", axis={"labelLimit": 220}),
                "color": _field("mode", "nominal", "IR mode"),
            },
            ("task", "mode", "value", "low", "high", "n"),
        ),
    )


def _heat(
    points: Sequence[Point], description: str, x: Spec, y: Spec, columns: Sequence[str], choices: Mapping[str, str]
) -> Spec:
    """A heat map with its figures written into the cells."""
    names = (str(y["field"]), str(x["field"]))
    return _spec(
        points,
        description,
        columns,
        height=_height(points, names[0], chosen=tuple(choices)),
        encoding={"x": x, "y": y},
        usermeta={"pivot": list(names)},
        layer=[
            {
                "mark": {"type": "rect", "cursor": "pointer"},
                "encoding": {
                    "color": _field(
                        "value", "quantitative", "score (%)", scale={"scheme": "blues", "domain": [0, 100]}
                    ),
                    "tooltip": _tooltip(*columns),
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11, "cursor": "pointer"},
                "encoding": {
                    "text": _field("value", "quantitative", format=".0f"),
                    "tooltip": _tooltip(*columns),
                    "color": {"condition": {"test": f"datum.value > {_DARK}", "value": "white"}, "value": "#111"},
                },
            },
        ],
        **_choices(points, choices),
    )


_OF_A_MODEL = {"benchmark": "benchmark", "metric": "metric", "run": "model"}


def _languages(points: Sequence[Point]) -> Spec:
    return _heat(
        points,
        "Mean score by language and IR mode",
        _field("mode", "nominal", "IR mode", axis={"labelAngle": -20, "labelLimit": 140}),
        _language(points, "language", "language"),
        ("language", "mode", "value", "low", "high", "n"),
        _OF_A_MODEL,
    )


def _tiers(points: Sequence[Point]) -> Spec:
    return _heat(
        points,
        "Mean score by tier of languages and IR mode",
        _field("mode", "nominal", "IR mode", axis={"labelAngle": -20, "labelLimit": 140}),
        _field("tier", "nominal", "tier", sort=["low", "mid", "high"]),
        ("tier", "mode", "value", "low", "high", "n", "languages"),
        _OF_A_MODEL,
    )


def _pairs(points: Sequence[Point]) -> Spec:
    return _heat(
        points,
        "Mean score by language of the question and of the relevant document",
        _language(points, "document", "relevant document in", axis={"labelAngle": -20}),
        _language(points, "question", "question in"),
        ("question", "document", "value", "low", "high", "n"),
        {"task": "task", "metric": "metric"},
    )


# ----------------------------------------------------------------- shares


def _shares(
    points: Sequence[Point], description: str, y: Spec, count: str, colour: Spec, choose: str, **encoding: Any
) -> Spec:
    """Bars that are as long as a whole, parted by colour."""
    rows = [str(y["field"]), *([encoding["yOffset"]["field"]] if "yOffset" in encoding else [])]
    columns = [*rows, str(colour["field"]), count, "share"]
    return _spec(
        points,
        description,
        columns,
        height=_height(points, *rows, chosen=(choose,), step=26 if len(rows) == 1 else 16),
        mark={"type": "bar"},
        encoding={
            "y": y,
            "x": _field(count, "quantitative", "share", stack="normalize", axis={"format": "%"}),
            "color": colour,
            "tooltip": _tooltip(*columns),
            **encoding,
        },
        **_choices(points, {choose: choose}),
    )


def _stages(points: Sequence[Point]) -> Spec:
    """Where the errors come from: shares of the rows, in the order of the pipeline."""
    ordered = [{**p, "order": STAGES.index(p["stage"]) if p["stage"] in STAGES else len(STAGES)} for p in points]
    return _spec(
        ordered,
        "Where errors come from: shares of rows by stage of the pipeline",
        ("task", "stage", "rows", "share"),
        height=_height(points, "task"),
        mark={"type": "bar"},
        encoding={
            "y": _field("task", "nominal", "", axis={"labelLimit": 180}),
            "x": _field("rows", "quantitative", "share of rows", stack="normalize", axis={"format": "%"}),
            "color": _field("stage", "nominal", "", scale={"domain": list(STAGES), "range": list(_COLOURS)}),
            "order": _field("order", "ordinal"),
            "tooltip": _tooltip("task", "stage", "rows", "share"),
        },
    )


def _links(points: Sequence[Point]) -> Spec:
    """The chain from retrieval to the answer, link by link."""
    names = list(dict.fromkeys(point["link"] for point in points))
    return _spec(
        points,
        "How far questions get: retrieved, kept for the prompt, answered, each given the one before",
        ("task", "link", "value", "low", "high", "n"),
        height=_height(points, "link", chosen=("task",)),
        **_choices(points, {"task": "task"}),
        **_intervals(
            points,
            {"y": _field("link", "nominal", "", sort=names, axis={"labelLimit": 220})},
            ("task", "link", "value", "low", "high", "n"),
            "share (%)",
        ),
    )


def _retrieved(points: Sequence[Point]) -> Spec:
    colour = _by_language(points, "document", "passage in")
    y = _language(points, "question", "question in")
    return _shares(points, "Languages of the passages by language of the question", y, "passages", colour, "task")


def _answers(points: Sequence[Point]) -> Spec:
    colour = _by_language(points, "answer", "reply in")
    y = _language(points, "question", "question in")
    return _shares(points, "Languages of the replies by language of the question", y, "replies", colour, "task")


def _cited(points: Sequence[Point]) -> Spec:
    """For every language of questions two bars: the documents shown and the citations, by language."""
    return _spec(
        points,
        "Languages of the documents shown and of the documents cited, by language of the question",
        ("question", "share", "document", "value", "n"),
        height=_height(points, "question", "share", chosen=("task", "source"), step=18),
        mark={"type": "bar"},
        encoding={
            "y": _language(points, "question", "question in"),
            "yOffset": _field("share", sort=["of the documents shown", "of the citations"]),
            "x": _field("value", "quantitative", "mean share (%)", stack="zero", scale={"domain": [0, 100]}),
            "color": _by_language(points, "document", "document in"),
            # the note above the chart says which bar is which
            "opacity": {"condition": {"test": "datum.share === 'of the citations'", "value": 1}, "value": 0.55},
            "tooltip": _tooltip("question", "share", "document", "value", "n"),
        },
        **_choices(points, {"task": "task", "source": "citations"}),
    )


# ----------------------------------------------------------------- agents


def _planned(points: Sequence[Point]) -> Spec:
    return _shares(
        points,
        "Languages that the planner searched, by round and language of the culture or question",
        _language(points, "question", "asked about"),
        "times",
        _by_language(points, "language", "searched in"),
        "run",
        yOffset=_field("round", "ordinal"),
    )


def _planner_shown(points: Sequence[Point]) -> Spec:
    colour = _by_language(points, "document", "document in")
    y = _language(points, "question", "asked about")
    return _shares(points, "Languages of the documents shown, by what was asked about", y, "n", colour, "run")


def _counts(points: Sequence[Point], description: str, what: str, colours: Mapping[str, str]) -> Spec:
    """Counts by round."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return _spec(
        points,
        description,
        ("round", what, "n"),
        height=_height(points, "round", chosen=("run",)),
        mark={"type": "bar"},
        encoding={
            "y": _field("round", "ordinal"),
            "x": _field("n", "quantitative", "number"),
            "color": _field(what, "nominal", "", scale=scale),
            "tooltip": _tooltip("round", what, "n"),
        },
        **_choices(points, {"run": "run"}),
    )


def _selection(points: Sequence[Point]) -> Spec:
    colours = {"kept": "#009E73", "discarded": "#D55E00"}
    return _counts(points, "New documents that the critic kept and discarded, by round", "passages", colours)


def _sufficiency(points: Sequence[Point]) -> Spec:
    ends = _in_order([point["verdict"] for point in points if point["verdict"].startswith("ended")])
    greys = ("#7F7F7F", "#BBBBBB", "#56B4E9", "#CC79A7")
    colours = {"enough": "#009E73", "not enough": "#E69F00"} | {
        end: greys[i % len(greys)] for i, end in enumerate(ends)
    }
    return _counts(points, "Questions by what the planner said of the documents, by round", "verdict", colours)


def _relevance(points: Sequence[Point]) -> Spec:
    return _spec(
        points,
        "The critic's mean scores of the documents found, from 1 to 5, by round",
        ("round", "criterion", "value", "n"),
        height=_height(points, "round", "criterion", chosen=("run",), step=18),
        mark={"type": "bar"},
        encoding={
            "y": _field("round", "ordinal"),
            "yOffset": _field("criterion"),
            "x": _field("value", "quantitative", "mean score, 1 to 5", scale={"domain": [0, 5]}),
            "color": _field("criterion", "nominal", ""),
            "tooltip": _tooltip("round", "criterion", "value", "n"),
        },
        **_choices(points, {"run": "run"}),
    )


_DRAWN: Mapping[str, Callable[[Sequence[Point]], Spec | None]] = {
    "board": _board,
    "scores": _scores,
    "languages": _languages,
    "stages": _stages,
    "tiers": _tiers,
    "pairs": _pairs,
    "links": _links,
    "retrieved": _retrieved,
    "answers": _answers,
    "cited": _cited,
    "planned": _planned,
    "planner_shown": _planner_shown,
    "selection": _selection,
    "relevance": _relevance,
    "sufficiency": _sufficiency,
}
