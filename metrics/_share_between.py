"""A mean score as a share between two other means over the same rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._intervals import Estimate, bootstrap_statistic, group_codes
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError


def share_between(
    scores: ArrayLike,
    ceilings: ArrayLike,
    floors: ArrayLike,
    groups: Sequence[Hashable],
    *,
    least_gap: float,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return (score - floor) / (ceiling - floor) of the means of N rows, with an interval over all three together.

    0 at the floor, 1 at the ceiling, and not clipped to them. Rows of one group are resampled together. A resample in
    which ceiling and floor meet or change places has no share.

    Args:
        scores, ceilings, floors: one number a row, (N,) each.
        groups: (N,); rows of a group of their own are resampled alone.
        least_gap: without a value, and with that reason, if ceiling and floor are less than this apart.

    Raises:
        MetricError: the arrays are not of one length, or hold something that is not finite.
    """
    table = np.stack([np.asarray(part, dtype=np.float64).ravel() for part in (scores, ceilings, floors)], axis=1)
    if not np.isfinite(table).all():
        raise MetricError("a score, a ceiling or a floor is not finite", "leave its row out")
    n = len(table)
    codes, n_groups = group_codes(groups, np.ones(n, dtype=bool))
    if not n:
        return Estimate(None, reason="no row has a score, a ceiling and a floor")
    _, ceiling, floor = table.mean(axis=0)
    gap = ceiling - floor
    if abs(gap) < least_gap:
        return Estimate(None, n=n, reason=f"withheld: ceiling and floor are less than {least_gap:g} apart")

    def statistic(totals: Array) -> Array:
        score, high, low = totals[:, 0], totals[:, 1], totals[:, 2]
        kept = (high - low) * gap > 0
        return np.where(kept, (score - low) / np.where(kept, high - low, 1.0), np.nan)

    sums = _resampling.per_unit_sums(table, codes, n_groups)
    return bootstrap_statistic(
        sums, statistic, n=n, units="rows" if n_groups == n else "clusters", n_resamples=n_resamples, seed=seed
    )
