"""Numbers as text: scores with their intervals, points, and p-values."""

from __future__ import annotations

from mrag_eval.metrics import Estimate


def estimate_text(estimate: Estimate, scale: float = 100.0, digits: int = 1, *, undefined: str = "-") -> str:
    """Return ``45.6 [40.1, 50.2]``, the value alone where it has no interval, and ``undefined`` without a value."""
    if estimate.value is None:
        return undefined
    text = f"{scale * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"


def points(value: float | None, sign: str = "") -> str:
    """Return a share in points (x 100) with one decimal, empty without one; ``sign`` as in a format (``+``)."""
    return "" if value is None else f"{value * 100:{sign}.1f}"


def interval_text(low: float | None, high: float | None) -> str:
    """Return the interval of a difference, ``[+1.0, +3.5]`` in points; empty if it has no ends."""
    return "" if low is None or high is None else f"[{points(low, '+')}, {points(high, '+')}]"


def p_text(p: float | None) -> str:
    """Return a p-value with three decimals, four where it is small, never as 0."""
    if p is None:
        return ""
    if p < 0.0001:
        return "< .0001"
    return (f"{p:.4f}" if p < 0.01 else f"{p:.3f}").removeprefix("0")
