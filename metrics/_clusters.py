"""Intervals of means over groups of rows: a jackknife variance, and the critical value for groups of such sizes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mrag_eval.metrics._bounded import Bounds, Means, score_limits
from mrag_eval.metrics._resampling import Array

# Frequencies of the inversion, on a logarithmic scale.
_FREQUENCIES = np.exp(np.linspace(np.log(1e-4), np.log(1e10), 560))
_STEPS = np.diff(np.log(_FREQUENCIES))
# Halvings of the interval that holds the quantile.
_HALVINGS = 20


def jackknife_variance(parts: Means) -> Array:
    """Return the variance (K,) of the means of K cells, by leaving out one unit at a time.

    With G units of n_g rows among N, (G - 1) / G times the sum of (m_(g) - m)^2, where m_(g) is the mean without unit g
    (CV3: MacKinnon, Nielsen & Webb 2023). Unlike the sum of squared residuals it is not too small where a unit holds
    many of the rows. A cell of a single unit has NaN.
    """
    present = parts.sizes > 0
    units, rows = present.sum(axis=0), parts.sizes.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(present, parts.residuals * rows / (rows - parts.sizes), 0.0)
        return np.asarray(np.where(units > 1, (units - 1) / units * (moved**2).sum(axis=0), np.nan))


def cluster_limits(parts: Means, bounds: Bounds | None, confidence: float) -> tuple[float, float]:
    """Return the limits of the mean of one cell over groups, whose rows are not all equal.

    Without finite ``bounds`` the mean plus and minus :func:`critical_value` jackknife standard errors. With them
    Wilson's interval, which keeps the range, for the number of independent rows that such a variance V is worth: n = p
    (1 - p) / V with p the mean on a scale of 0 to 1 (Korn & Graubard 1998), and the critical value in place of z.
    """
    mean, variance = parts.mean, jackknife_variance(parts)
    quantile = critical_value(parts.sizes[:, 0], parts.residuals[:, 0], confidence)
    if bounds is None or not np.isfinite(bounds).all():
        reach = quantile * np.sqrt(variance)
        return float(mean[0] - reach[0]), float(mean[0] + reach[0])
    low, high = score_limits(mean, variance, worth(mean, variance, bounds), bounds, quantile)
    return float(low[0]), float(high[0])


def worth(mean: Array, variance: Array, bounds: Bounds) -> Array:
    """Return how many independent values at the ends of the range have a mean of this variance; all are (K,)."""
    share = np.clip((mean - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0)
    spread = variance / (bounds[1] - bounds[0]) ** 2
    return np.asarray(np.maximum(share * (1 - share), 1e-12) / spread)


def critical_value(sizes: Array, residuals: Array, confidence: float) -> float:
    """Return how many jackknife standard errors an interval over groups reaches, from ``sizes`` and ``residuals`` (G,).

    The larger of two. One holds for any sizes: see :func:`_normal_groups`. The other is the t quantile with
    Satterthwaite's degrees of freedom for the kurtosis of the residuals, min(G - 1, 2 G / (kurtosis - 1)), which are
    few if the spread is that of a few groups. Residuals count in units of what their size makes expected.
    """
    from scipy.special import stdtrit

    there = sizes > 0
    sizes, residuals = sizes[there], residuals[there]
    count = len(sizes)
    scaled = residuals / (sizes * (1 - sizes / sizes.sum()))
    square = (scaled / np.abs(scaled).max()) ** 2
    uneven = float((square**2).sum() / square.sum() ** 2 - 1 / count)
    freedom = min(count - 1.0, 2 / uneven) if uneven > 0 else count - 1.0
    distinct, counts = np.unique(sizes, return_counts=True)
    alike = _normal_groups(tuple(distinct.tolist()), tuple(counts.tolist()), confidence)
    return max(alike, float(stdtrit(freedom, 0.5 + confidence / 2)))


@lru_cache(maxsize=4096)
def _normal_groups(sizes: tuple[float, ...], counts: tuple[int, ...], confidence: float) -> float:
    """Return the quantile of |mean| over its jackknife standard error, if every group has one normal effect.

    Groups of equal size: the t quantile with G - 1 degrees of freedom. Else the mean exceeds q standard errors if a
    quadratic form of normal variables is positive; the probability is found by inverting its characteristic function
    (Imhof 1961), with one variable for the mean of the groups of a size, and the others for their spread.

    Args:
        sizes: the distinct numbers of rows of the groups, and ``counts`` how many groups have each.
    """
    from scipy.special import stdtrit

    n, c = np.array(sizes), np.array(counts, dtype=np.float64)
    groups, rows = c.sum(), float((n * c).sum())
    least = float(stdtrit(groups - 1, 0.5 + confidence / 2))
    if len(n) == 1:
        return least
    weight = (groups - 1) / groups / (rows - n) ** 2
    root = n * np.sqrt(c)
    residual = np.diag(root / c) - np.outer(n, root) / rows
    mean, error = np.outer(root, root) / rows**2, (residual.T * (weight * c)) @ residual
    within, times = weight * n**2, np.concatenate([np.ones(len(n)), c - 1])

    def narrow(quantile: float) -> bool:
        """Return whether the mean is farther than that from 0 too often."""
        values = np.concatenate([np.linalg.eigvalsh(mean - quantile**2 * error), -(quantile**2) * within])
        turned = 2 * np.outer(_FREQUENCIES, values / np.abs(values).max())
        size = np.exp(-0.25 * np.log1p(turned**2) @ times)
        angle = 0.5 * np.arctan(turned) @ times
        height = np.sin(angle) * size
        # the trapezoidal rule
        area = float(np.sum(_STEPS * (height[1:] + height[:-1]) / 2.0))
        return 0.5 + area / np.pi > 1 - confidence

    if not narrow(least):
        return least
    most = 2 * least
    while narrow(most):
        least, most = most, 2 * most
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        least, most = (middle, most) if narrow(middle) else (least, middle)
    return most
