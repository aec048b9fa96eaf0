"""The one-sided bound that a test implies, by inversion of its p-values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

_NORMAL = NormalDist()
# Distance at which a bound is found, as a share of the range.
_EXACT_TO = 5e-6


def lower_bound(
    p_value: Callable[[float], float],
    level: float,
    margin: float,
    about: tuple[float, float],
    limits: tuple[float, float],
) -> float:
    """Return the drop at which ``p_value``, which rises with the drop, passes ``level``.

    It is above ``margin`` if and only if ``p_value(margin) <= level``: the search starts there and goes to that side
    only. ``about`` is the estimate with its standard error, near which the bound is looked for first. ``limits`` are
    the smallest and largest drop possible.
    """
    from scipy.optimize import brentq

    p_value = cache(p_value)
    above = p_value(margin) <= level
    end = limits[1] if above else limits[0]
    if (end - margin) * (1 if above else -1) <= 0:
        return math.nextafter(margin, math.inf) if above else margin

    def excess(drop: float) -> float:
        """Return how far the drop is from its bound, in standard errors: nearly linear."""
        p = min(max(p_value(drop), 1e-300), 1 - 1e-16)
        return _NORMAL.inv_cdf(level) - _NORMAL.inv_cdf(p)

    low, high = sorted((margin, end))
    guess = about[0] + _NORMAL.inv_cdf(level) * about[1]
    step = max(about[1], _EXACT_TO)
    # narrow the bracket around the guess; a half of it may already be on the other side
    for side in (guess - step / 4, guess + step / 4, guess - 2 * step, guess + 2 * step):
        if low < side < high:
            low, high = (side, high) if excess(side) >= 0 else (low, side)
        if high - low <= 4 * step:
            break
    if excess(high) >= 0:
        return high
    if excess(low) < 0:
        return low
    found = float(brentq(excess, low, high, xtol=_EXACT_TO * (limits[1] - limits[0])))
    # the search may end a little beyond the estimate
    found = min(found, max(about[0], limits[0]))
    return max(found, math.nextafter(margin, math.inf)) if above else min(found, margin)
