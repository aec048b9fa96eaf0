"""Estimates as text, for the judge commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrag_eval.core import score_text

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate


def percent(estimate: Estimate, scale: float = 100.0, digits: int = 1) -> str:
    """Return an estimate with its interval in percent, or the reason why it is undefined."""
    reason = f"- ({estimate.reason or 'undefined'})"
    return score_text(estimate.value, estimate.low, estimate.high, scale=scale, digits=digits, undefined=reason)


def number(estimate: Estimate) -> str:
    """Return an estimate with its interval, with two digits, or the reason why it is undefined."""
    return percent(estimate, 1.0, 2)
