"""What the report's charts are made of: Vega-Lite specifications over rows of values.

``usermeta`` of a specification says how its values read as a table: ``columns`` (field -> head), and for a heat map
``pivot`` (the fields of its rows and columns). Parameters have the names of the fields that they choose by.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.config import CORRECT
from mrag_eval.core import is_language, language_name

Point = Mapping[str, Any]
Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# For languages: Okabe and Ito's again, then lighter and darker ones, told apart by their order and the table as well.
_PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F", "#332288", "#88CCEE"),
    *("#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499", "#661100", "#6699CC", "#BBBBBB"),
)
HEADS = {"value": "score (%)", "low": "95% from", "high": "95% to", "n": "n", "share": "%", "run": "model"}
_NUMBERS = frozenset({"value", "low", "high", "n", "rows", "passages", "replies", "share", "times", "kappa"})
_PERCENT = {"scale": {"domain": [0, 100]}}


def spec(points: Sequence[Point], description: str, columns: Sequence[str], **rest: Any) -> Spec:
    """A chart that is as wide as the page, with what its table needs."""
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


def height(points: Sequence[Point], *fields: str, chosen: Sequence[str] = (), step: int = 26) -> int:
    """Pixels for a row of each value; a number, because Vega-Lite warns of steps where the width is the page's.

    Of values that are shown only as a parameter in ``chosen`` is set, room for the choice that has most.
    """
    rows: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for point in points:
        rows.setdefault(tuple(point[name] for name in chosen), set()).add(tuple(point[name] for name in fields))
    return step * max(2, max(len(found) for found in rows.values()))


def choices(points: Sequence[Point], names: Mapping[str, str]) -> dict[str, Any]:
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


def field(name: str, kind: str = "nominal", title: str | None = None, **rest: Any) -> Spec:
    """An encoding of a field, headed by its word."""
    return {"field": name, "type": kind, "title": title if title is not None else HEADS.get(name, name), **rest}


def language(points: Sequence[Point], name: str, title: str, kind: str = "axis", **rest: Any) -> Spec:
    """A field of language codes whose labels are names."""
    codes = sorted(code for code in {str(point[name]) for point in points} if is_language(code))
    names = json.dumps({code: language_name(code) for code in codes})
    label = {"labelExpr": f"({names})[datum.value] || datum.label"}
    return field(name, "nominal", title, **{kind: {**label, **rest.pop(kind, {})}}, **rest)


def tooltip(*names: str) -> list[Spec]:
    """What is said of a point under the mouse."""
    return [field(name, "quantitative" if name in _NUMBERS else "nominal") for name in names]


def in_order(values: Sequence[str]) -> list[str]:
    """The values, each once, sorted."""
    return sorted(dict.fromkeys(values))


def by_language(points: Sequence[Point], name: str, title: str) -> Spec:
    """A colour for each language, the same in every chart that has the same languages."""
    codes = in_order([str(point[name]) for point in points])
    colours = [_PALETTE[i % len(_PALETTE)] for i in range(len(codes))]
    return language(points, name, title, "legend", scale={"domain": codes, "range": colours})


def intervals(points: Sequence[Point], encoding: Spec, shown: Sequence[str], title: str = "score (%)") -> Spec:
    """Dots with their intervals."""
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
                    # told apart without colours; not for the rules, which would get points of their own
                    **({"shape": field("mode", legend=None)} if "yOffset" in encoding else {}),
                },
            },
        ],
    }
