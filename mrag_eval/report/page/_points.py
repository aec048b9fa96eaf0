"""Values of the report as rows: shares in percent, other scores in their unit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from mrag_eval.core import rounded
from mrag_eval.metrics import Estimate
from mrag_eval.report.files._scores import Score
from mrag_eval.scoring import scale_of

Point = dict[str, Any]


def percent(score: Estimate | Score, metric: str = "") -> Point:
    """Return a score's value, interval and n as they are printed: in percent, or in the unit of ``metric``."""
    factor = scale_of(metric).factor
    ends = {"value": score.value, "low": score.low, "high": score.high}
    return {key: rounded(end, scale=factor) for key, end in ends.items()} | {"n": score.n or None}


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
