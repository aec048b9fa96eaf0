"""Shapes that several of the report's charts have: bars of shares, and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.report.page._spec import Points, Spec, choices, field, height, spec, tooltip

# Cells above this value are so dark that black figures on them are hard to read.
_DARK = 68


def share_bars(
    points: Points, description: str, y: Spec, count: str, colour: Spec, choose: str, **encoding: Any
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


def heat_map(points: Points, description: str, x: Spec, y: Spec, columns: Sequence[str], by: Mapping[str, str]) -> Spec:
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
                    "text": field("value", "quantitative", format=".1f"),
                    "tooltip": tooltip(*columns),
                    "color": {"condition": {"test": f"datum.value > {_DARK}", "value": "white"}, "value": "#111"},
                },
            },
        ],
        **choices(points, by),
    )
