"""Vega-Lite specifications of the report's charts, over rows of values.

``usermeta`` of a specification says how its values read as a table: ``columns`` (field -> head), and for a heat map
``pivot`` (the fields of its rows and columns). Parameters have the names of the fields that they choose by.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.core import is_language, language_name

Points = Sequence[Mapping[str, Any]]
Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# For languages: Okabe and Ito's again, then lighter and darker ones; order and table distinguish them as well.
_PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F", "#332288", "#88CCEE"),
    *("#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#661100", "#6699CC", "#BBBBBB"),
)
# For systems: distinct without colours of a traffic light, and dark enough on white.
SYSTEM_COLOURS = (
    *("#0072B2", "#C65200", "#008A64", "#B2568A", "#8A6D00", "#6F55A8", "#2E8FC4", "#707070", "#A8385D", "#5E8C00"),
    *("#7C7CF0", "#A0644B"),
)
HEADS = {"value": "score (%)", "low": "95% from", "high": "95% to", "n": "n", "share": "%", "run": "model"}
_NUMBERS = frozenset({"value", "low", "high", "n", "rows", "passages", "replies", "share", "times", "kappa"})
_PERCENT = {"scale": {"domain": [0, 100]}}


def spec(points: Points, description: str, columns: Sequence[str], **rest: Any) -> Spec:
    """Return a chart as wide as the page, with the description of its table."""
    meta = {"columns": {name: HEADS.get(name, name) for name in columns}} | rest.pop("usermeta", {})
    return {
        "$schema": _SCHEMA,
        "description": description,
        "data": {"values": [dict(point) for point in points]},
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "usermeta": meta,
        **rest,
    }


def height(points: Points, *fields: str, chosen: Sequence[str] = (), step: int = 26) -> int:
    """Return the height in pixels, ``step`` for each row. Vega-Lite warns of steps at full page width.

    If values are only shown while a parameter in ``chosen`` is set, the height fits the choice with most rows.
    """
    rows: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for point in points:
        rows.setdefault(tuple(point[name] for name in chosen), set()).add(tuple(point[name] for name in fields))
    return step * max(2, max(len(found) for found in rows.values()))


def choices(points: Points, names: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters with a list to choose from, by field -> label, and their filter."""
    params = []
    for name, label in names.items():
        options = list(dict.fromkeys(point[name] for point in points))
        bind = {"input": "select", "options": options, "name": f"{label} "}
        # a single option needs no list
        params.append({"name": name, "value": options[0], **({"bind": bind} if len(options) > 1 else {})})
    test = " && ".join(f"datum[{name!r}] === {name}" for name in names)
    return {"params": params, "transform": [{"filter": test}]}


def field(name: str, kind: str = "nominal", title: str | None = None, **rest: Any) -> Spec:
    """Return an encoding of a field, with its name as the heading; modes stay in the order of the points."""
    kept = {"sort": None} if name == "mode" else {}
    return {"field": name, "type": kind, "title": title if title is not None else HEADS.get(name, name), **kept, **rest}


def language(points: Points, name: str, title: str, kind: str = "axis", **rest: Any) -> Spec:
    """Return a field of language codes whose labels are names."""
    codes = sorted(code for code in {str(point[name]) for point in points} if is_language(code))
    names = json.dumps({code: language_name(code) for code in codes})
    label = {"labelExpr": f"({names})[datum.value] || datum.label"}
    return field(name, "nominal", title, **{kind: {**label, **rest.pop(kind, {})}}, **rest)


def tooltip(*names: str) -> list[Spec]:
    """Return the tooltip of a point."""
    return [field(name, "quantitative" if name in _NUMBERS else "nominal") for name in names]


def in_order(values: Sequence[str]) -> list[str]:
    """Return the distinct values, sorted."""
    return sorted(dict.fromkeys(values))


def by_language(points: Points, name: str, title: str) -> Spec:
    """Return a colour for each language, the same in every chart that has the same languages."""
    codes = in_order([str(point[name]) for point in points])
    colours = [_PALETTE[i % len(_PALETTE)] for i in range(len(codes))]
    return language(points, name, title, "legend", scale={"domain": codes, "range": colours})


def by_system(points: Points) -> Spec:
    """Return the colour that each system has on the whole page, with a legend if there are several."""
    colours = {str(point["system"]): point["colour"] for point in points}
    rest = {} if len(colours) > 1 else {"legend": None}
    return field("system", "nominal", "", scale={"domain": [*colours], "range": [*colours.values()]}, **rest)


def intervals(points: Points, encoding: Spec, shown: Sequence[str], title: str = "score (%)") -> Spec:
    """Return dots with their intervals."""
    scale = _PERCENT if all(0 <= float(p["value"]) <= 100 for p in points) else {}
    return {
        "encoding": encoding,
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6, "clip": True},
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "encoding": {"x": field("low", "quantitative", title, **scale), "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": field("value", "quantitative", title, **scale),
                    "tooltip": tooltip(*shown),
                    # shapes distinguish points without colours; not for the rules, which would get points as well
                    **({"shape": field("system", legend=None)} if "yOffset" in encoding else {}),
                },
            },
        ],
    }
