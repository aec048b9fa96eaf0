"""Numbers as text: units and ranges of measures, scores with their intervals, points, and p-values."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Printed times 100.
_IN_PERCENT = ("share", "ratio")


@dataclass(frozen=True, slots=True)
class Scale:
    """The unit of a measure and its range; None: the range has no such bound.

    ``unit`` is ``share``, ``ratio``, or the plural of what is counted (``countries``).
    """

    unit: str = "share"
    low: float | None = 0.0
    high: float | None = 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the range as two numbers, infinite where there is no bound."""
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    @property
    def differences(self) -> tuple[float, float]:
        """Return the range of the difference of two values."""
        low, high = self.bounds
        return low - high, high - low

    @property
    def percent(self) -> bool:
        """Return whether values are printed in percent."""
        return self.unit in _IN_PERCENT

    @property
    def note(self) -> str:
        """Return the unit as a remark on a column, such as `` (countries)``, or "" for percent."""
        return "" if self.percent else f" ({self.unit})"

    @property
    def factor(self) -> float:
        """Return the number that values are multiplied by in print."""
        return 100.0 if self.percent else 1.0


SHARE = Scale()


def decimal(value: float, digits: int = 1, *, scale: float = 1.0, sign: str = "") -> str:
    """Return ``scale * value`` rounded to ``digits`` decimals; ``sign`` as in a format (``+``)."""
    return f"{scale * value:{sign}.{digits}f}"


def rounded(value: float | None, digits: int = 1, *, scale: float = 1.0) -> float | None:
    """Return the number that :func:`decimal` prints, for pages and charts that print numbers themselves."""
    return None if value is None else float(decimal(value, digits, scale=scale))


def score_text(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    scale: float = 100.0,
    digits: int = 1,
    undefined: str = "-",
) -> str:
    """Return ``45.6 [40.1, 50.2]``, the value alone without an interval, and ``undefined`` without a value."""
    if value is None:
        return undefined
    text = decimal(value, digits, scale=scale)
    if low is None or high is None:
        return text
    return f"{text} [{decimal(low, digits, scale=scale)}, {decimal(high, digits, scale=scale)}]"


def points(value: float | None, sign: str = "", scale: Scale = SHARE) -> str:
    """Return a value with one decimal, a share in points (x 100); "" without one. ``sign`` as in a format (``+``)."""
    return "" if value is None else decimal(value, scale=scale.factor, sign=sign)


def interval_text(low: float | None, high: float | None, scale: Scale = SHARE) -> str:
    """Return the interval of a difference, such as ``[+1.0, +3.5]`` in points, or "" without one."""
    return "" if low is None or high is None else f"[{points(low, '+', scale)}, {points(high, '+', scale)}]"


def p_text(p: float | None) -> str:
    """Return a p-value with three decimals, four if it is small, never as 0; "" without one."""
    if p is None:
        return ""
    if p < 0.0001:
        return "< .0001"
    return decimal(p, 4 if p < 0.01 else 3).removeprefix("0")
