"""Numbers as text: scores with their intervals, points, and p-values."""

from __future__ import annotations


def decimal(value: float, digits: int = 1, *, scale: float = 1.0, sign: str = "") -> str:
    """Return ``scale * value`` rounded to ``digits`` decimals; ``sign`` as in a format (``+``)."""
    return f"{scale * value:{sign}.{digits}f}"


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


def points(value: float | None, sign: str = "") -> str:
    """Return a share in points (x 100) with one decimal, or "" without one; ``sign`` as in a format (``+``)."""
    return "" if value is None else decimal(value, scale=100.0, sign=sign)


def interval_text(low: float | None, high: float | None) -> str:
    """Return the interval of a difference in points, such as ``[+1.0, +3.5]``, or "" without one."""
    return "" if low is None or high is None else f"[{points(low, '+')}, {points(high, '+')}]"


def p_text(p: float | None) -> str:
    """Return a p-value with three decimals, four if it is small, never as 0; "" without one."""
    if p is None:
        return ""
    if p < 0.0001:
        return "< .0001"
    return decimal(p, 4 if p < 0.01 else 3).removeprefix("0")
