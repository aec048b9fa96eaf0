"""Corrections of p-values for many tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrag_eval.metrics._intervals import scored_rows
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's step-down adjusted p-values (1979), in the given order: they bound the chance of any false finding.

    The i-th smallest of m is multiplied by m - i + 1, made monotone and capped at 1. None (not tested) remains None and
    does not count into m. Raises MetricError for a value outside 0..1.
    """
    tested, kept = _p_values(p_values)
    order = np.argsort(tested, kind="stable")
    stepped = np.maximum.accumulate(tested[order] * np.arange(len(tested), 0, -1))
    adjusted = np.empty(len(tested))
    adjusted[order] = np.minimum(stepped, 1.0)
    return _with_untested(adjusted, kept)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Benjamini-Hochberg adjusted p-values (1995), by scipy: they bound the expected share of false findings.

    None (not tested) remains None and does not count. Raises MetricError for a value outside 0..1.
    """
    from scipy.stats import false_discovery_control

    tested, kept = _p_values(p_values)
    return _with_untested(false_discovery_control(tested) if len(tested) else tested, kept)


def _p_values(p_values: Sequence[float | None]) -> tuple[Array, Any]:
    tested, kept = scored_rows(p_values)
    if ((tested < 0) | (tested > 1)).any():
        raise MetricError("a p-value is outside 0..1")
    return tested, kept


def _with_untested(adjusted: Array, kept: Any) -> list[float | None]:
    values = iter(adjusted.tolist())
    return [next(values) if keep else None for keep in kept]
