"""Values of the report as rows: shares and scores in percent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mrag_eval.metrics import Estimate
from mrag_eval.report.files._scores import records

if TYPE_CHECKING:
    from pandas import DataFrame

Point = dict[str, Any]


def percent(score: Estimate) -> Point:
    """Return a score's value, interval and n, in percent."""
    return in_percent({"value": score.value, "low": score.low, "high": score.high, "n": score.n or None})


def in_percent(row: Mapping[str, Any]) -> Point:
    """Return a row of the tidy table, in percent."""
    ends = {key: None if row[key] is None else round(row[key] * 100, 2) for key in ("value", "low", "high")}
    return {**ends, "n": row["n"]}


def rounded(value: float | None) -> float | None:
    """Return a coefficient with the digits that the page shows."""
    return None if value is None else round(value, 3)


def score_points(frame: DataFrame) -> list[Point]:
    """Return every metric of every task that has a value; ``frame`` is the tidy table."""
    rows = records(frame[(frame.dimension == "") & frame.value.notna()])
    return [
        {"task": row["task"], "run": row["model"], "mode": row["mode"], "benchmark": row["benchmark"]}
        | {"metric": row["metric"], **in_percent(row)}
        for row in rows
    ]


def shares(found: Mapping[str, int], base: Point, first: str, second: str, count: str) -> list[Point]:
    """Return ``a->b`` counts as points, with the share of each within its ``a``."""
    totals: dict[str, int] = defaultdict(int)
    for pair, n in found.items():
        totals[pair.partition("->")[0]] += n
    out = []
    for pair, n in found.items():
        a, _, b = pair.partition("->")
        if n:
            out.append(base | {first: a, second: b, count: n, "share": round(100 * n / totals[a], 1)})
    return out
