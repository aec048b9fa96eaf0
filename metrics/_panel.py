"""Vote of a panel of judges, and the independence of its seats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mrag_eval.core import YES_NO, VerdictValue
from mrag_eval.platform import MetricError


@dataclass(frozen=True)
class PanelIndependence:
    """Effective number of independent judges of a panel.

    ``effective_size`` = m / (1 + (m - 1) ``error_correlation``) for a panel of ``size`` m; ``error_rates`` are each
    judge's share of errors against gold.
    """

    size: int
    effective_size: float | None
    error_correlation: float | None
    error_rates: tuple[float, ...]
    n: int
    reason: str | None = None


def majority_vote(verdicts: Sequence[bool | None], *, tie: bool | None = None) -> bool | None:
    """Return the verdict of more than half of the panel; None is unjudged.

    ``verdicts`` has one entry per seat, None for a judge that abstained or failed. The majority is strict and relative
    to the panel's SIZE: an abstention never shrinks the panel (two of three decide, one of three does not). An even
    split is ``tie`` only if every judge voted; an abstention would have decided it. Anything else is None. Raises
    MetricError for an empty panel or a verdict that is not True, False or None.
    """
    if not verdicts:
        raise MetricError("a vote without a panel", "give one verdict per seat, None for an abstention")
    for seat, verdict in enumerate(verdicts):
        if verdict is not None and not isinstance(verdict, (bool, np.bool_)):
            raise MetricError(f"verdicts[{seat}] is {verdict!r}, not True, False or None")
    decided, outcome = YES_NO.vote([None if verdict is None else bool(verdict) for verdict in verdicts])
    return tie if outcome == "tie" else None if decided is None else bool(decided)


def effective_panel_size(
    verdicts: Sequence[Sequence[VerdictValue | None]], gold: Sequence[VerdictValue | None]
) -> PanelIndependence:
    """Return the number of independent judges that a panel equals, from the correlation of their errors against gold.

    With e_j = 1 if judge j errs, the error correlation r is the mean covariance of two judges' errors over the mean
    variance of one's. The effective size m / (1 + (m - 1) r) is the number of independent judges whose mean error
    varies as much as the panel's (Kish 1965, the design effect). With r = 1 the panel equals one judge; with r < 0,
    judges that complement each other, it equals more than m.

    Args:
        verdicts: (N rows, m judges); gold: (N,). Rows with a None anywhere are left out; ``n`` counts the rest.

    Undefined, with a reason: fewer than two rows or judges, no judge ever errs (or all always do), errors that cancel
    out exactly. Raises MetricError on unequal lengths.
    """
    if len(verdicts) != len(gold):
        raise MetricError(f"{len(verdicts)} rows of verdicts but {len(gold)} gold labels")
    size = len(verdicts[0]) if verdicts else 0
    if any(len(row) != size for row in verdicts):
        raise MetricError("rows of verdicts of unequal length: one entry per judge, None for an abstention")
    complete = [
        [vote != label for vote in row]
        for row, label in zip(verdicts, gold, strict=True)
        if label is not None and all(vote is not None for vote in row)
    ]
    errors = np.array(complete, dtype=np.float64).reshape(len(complete), size)
    rates = tuple(float(rate) for rate in errors.mean(axis=0)) if len(errors) else ()
    if len(errors) < 2 or size < 2:
        reason = "fewer than two complete rows" if size > 1 else "fewer than two judges"
        return PanelIndependence(size, None, None, rates, len(errors), reason)
    covariance = np.cov(errors.T)
    variance = float(np.trace(covariance)) / size
    if variance <= 0:
        return PanelIndependence(size, None, None, rates, len(errors), "the judges' errors never vary")
    correlation = (float(covariance.sum()) - size * variance) / (size * (size - 1) * variance)
    inflation = 1 + (size - 1) * correlation
    if inflation < 1e-12:
        return PanelIndependence(size, None, correlation, rates, len(errors), "the judges' errors cancel out exactly")
    return PanelIndependence(size, size / inflation, correlation, rates, len(errors))
