"""Shapes that several of the report's charts have: bars, and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mrag_eval.core import decimal, rounded
from mrag_eval.report.page._spec import Points, Spec, choices, field, height, spec, tooltip
from mrag_eval.scoring import more_is_better, scale_of

# Cells above this shade are so dark that black figures on them are hard to read.
_DARK = 68
# Cells of metrics without a better side, or without a range.
_NO_SHADE = "#f1f3f5"
_BLUES = {"scheme": "blues", "domain": [0, 100]}


def bars(
    points: Points, description: str, columns: Sequence[str], encoding: Spec, by: Mapping[str, str], step: int = 26
) -> Spec:
    """Return bars of what ``encoding`` says, each ``step`` pixels high; ``by`` are lists to choose values by."""
    return spec(
        points,
        description,
        columns,
        height=height(points, *_rows(encoding), chosen=tuple(by), step=step),
        mark={"type": "bar"},
        encoding={**encoding, "tooltip": tooltip(*columns)},
        **choices(points, by),
    )


def share_bars(
    points: Points, description: str, y: Spec, count: str, colour: Spec, choose: str, **offset: Spec
) -> Spec:
    """Return bars of full length, divided by colour."""
    x = field(count, "quantitative", "share", stack="normalize", axis={"format": "%"})
    encoding = {"y": y, "x": x, "color": colour, **offset}
    columns = [*_rows(encoding), str(colour["field"]), count, "share"]
    return bars(points, description, columns, encoding, {choose: choose}, step=16 if offset else 26)


def _rows(encoding: Spec) -> list[str]:
    """Return the fields whose values have rows of their own."""
    return [str(encoding[name]["field"]) for name in ("y", "yOffset") if name in encoding]


def heat_map(points: Points, description: str, x: Spec, y: Spec, columns: Sequence[str], by: Mapping[str, str]) -> Spec:
    """Return a heat map with figures in its cells, the darker the better; every point names its metric.

    A point with a ``mark`` has a circle behind its figure.
    """
    points = [
        {**point, "shade": shade(point["metric"], point["value"])}
        | {"shown": decimal(point["value"]) + ("°" if point.get("mark") else "")}
        for point in points
    ]
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
                    "color": {
                        "condition": {
                            "test": "isValid(datum.shade)",
                            **field("shade", "quantitative", "worst to best (%)", scale=_BLUES),
                        },
                        "value": _NO_SHADE,
                    },
                    "tooltip": tooltip(*columns),
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11, "cursor": "pointer"},
                "encoding": {
                    "text": field("shown"),
                    "tooltip": tooltip(*columns),
                    "color": {"condition": {"test": f"datum.shade > {_DARK}", "value": "white"}, "value": "#111"},
                },
            },
        ],
        **choices(points, by),
    )


def shade(metric: str, value: float | None) -> float | None:
    """Return how far a value as printed is from the worst to the best of its metric's range, in percent.

    None for a metric without a better side, for one whose range has no such end, and without a value.
    """
    scale, more = scale_of(metric), more_is_better(metric)
    if value is None or more is None or scale.low is None or scale.high is None:
        return None
    share = (value / scale.factor - scale.low) / (scale.high - scale.low)
    return rounded(share if more else 1.0 - share, scale=100.0)
