"""Estimates as text, for the judge commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mrag_eval.core import VerdictScale, score_text

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate


def percent(estimate: Estimate, scale: float = 100.0, digits: int = 1) -> str:
    """Return an estimate with its interval in percent, or the reason why it is undefined."""
    reason = f"- ({estimate.reason or 'undefined'})"
    return score_text(estimate.value, estimate.low, estimate.high, scale=scale, digits=digits, undefined=reason)


def says(correct: Estimate, labels: Mapping[str, Estimate]) -> str:
    """Return the share of "correct" or the mean grade of a judge, or the share of each label."""
    return " · ".join(f"{label} {percent(share)}" for label, share in labels.items()) or percent(correct)


def says_what(scale: VerdictScale) -> str:
    """Return the title of a column of :func:`says`."""
    return {"yes/no": "says correct", "ordered": "mean grade", "labels": "says"}[scale.kind]


def number(estimate: Estimate) -> str:
    """Return an estimate with its interval, with two digits, or the reason why it is undefined."""
    return percent(estimate, 1.0, 2)
