"""Rows of the table of ``python -m benchmarks``, written as JSON.

A benchmark takes ``--json FILE`` and passes its measurements to :func:`write_rows`:

    options = arguments(__doc__).parse_args()
    ...
    write_rows(options.json, [row("search 1M x 384", "bare FAISS flat", runs, at_most=1.05, judged=not options.quick)])

``runs`` are the ratios of single repetitions (our time over theirs, measured one right after the other). Their median
is the row's ratio; their range shows the noise of the machine.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def arguments(description: str | None, *, quick: str = "small numbers, to see that it runs") -> argparse.ArgumentParser:
    """Return a parser that knows ``--quick``, with that help, and ``--json FILE``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=Path, help="write the results to this file, for `python -m benchmarks`")
    return parser


def row(
    work: str,
    against: str,
    runs: float | Sequence[float],
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    judged: bool = True,
    holds: bool = True,
    unit: str = "×",
    figures: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One row of the table.

    Args:
        work: the work and its size ("search 1M x 384, 1k queries").
        against: the baseline ("bare FAISS flat").
        runs: the ratio of each repetition, or a single ratio.
        at_most, at_least: the required bound; with neither, the ratio is only reported.
        judged: False for small sizes, whose ratio says nothing: the bound is then shown but not applied.
        holds: a condition that must be true whatever the ratio (same results, high enough recall).
        unit: printed after the ratio; ``""`` if it has no unit.
        figures: times, bytes, recall: the numbers behind the ratio.
    """
    if at_most is not None and at_least is not None:
        raise ValueError("a row has one bound: at_most or at_least")
    ratios = [float(runs)] if isinstance(runs, int | float) else [float(one) for one in runs]
    ratio = statistics.median(ratios)
    met = (at_most is None or ratio <= at_most) and (at_least is None or ratio >= at_least)
    return {
        "work": work,
        "against": against,
        "ratio": ratio,
        "asked": _asked(at_most, at_least),
        "spread": [min(ratios), max(ratios)] if len(ratios) > 1 else None,
        "ok": holds and (met or not judged),
        "judged": judged,
        "unit": unit,
        "figures": dict(figures or {}),
    }


def _asked(at_most: float | None, at_least: float | None) -> str:
    if at_most is not None:
        return f"≤ {at_most:g}"
    return "reported" if at_least is None else f"≥ {at_least:g}"


def growth(
    work: str,
    points: Sequence[Mapping[str, float]],
    *,
    of: str = "seconds",
    below: float | None = None,
    judged: bool = True,
) -> dict[str, Any]:
    """One row of the growth table: how ``of`` grows with ``n``, as the exponent of a power law.

    Each point holds ``n``, ``seconds`` and ``peak_mb``. The exponent is the slope of the least-squares line through
    (log n, log of); ``below`` is the required bound. At least two points are needed.
    """
    exponent = fitted_exponent([point["n"] for point in points], [point[of] for point in points])
    return {
        "work": work,
        "points": [dict(point) for point in points],
        "of": of,
        "exponent": exponent,
        "asked": "reported" if below is None else f"< {below:g}",
        "ok": below is None or not judged or exponent < below,
        "judged": judged,
    }


def fitted_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of log ``values`` over log ``sizes``: 1 is linear, below 1 sublinear."""
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    return statistics.linear_regression(x, y).slope


def write_rows(path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of either table to a file; do nothing if no file was given."""
    if path is not None:
        path.write_text(json.dumps(list(rows), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
