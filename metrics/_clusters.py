"""Intervals of means over groups of rows, and intervals that keep the range of a bounded score."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError

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
        area = (_STEPS * (height[1:] + height[:-1]) / 2).sum()
        return 0.5 + float(area) / np.pi > 1 - confidence

    if not narrow(least):
        return least
    most = 2 * least
    while narrow(most):
        least, most = most, 2 * most
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        least, most = (middle, most) if narrow(middle) else (least, middle)
    return most


Bounds = tuple[float, float]
# Halvings of the logarithm of a multiplier: enough for limits to 1e-12.
_BOUND_HALVINGS = 60


class Means(NamedTuple):
    """Means of K cells (K,), the variance of each, its effective number of units, and the residuals (G, K).

    ``sizes`` are the rows of each unit in each cell, (G, K).
    """

    mean: Array
    variance: Array
    units: Array
    residuals: Array
    sizes: Array

    @classmethod
    def of(cls, sums: Array) -> Means:
        """Return the means of unit sums (G, 2K): K columns of values, then K of row counts.

        The variance is the sum of the squared residuals (s_g - n_g mean) / n, which for single rows is that of Wilson's
        formula. Units of unequal size count as Kish's effective number (1965), (sum n_g)^2 / sum n_g^2.
        """
        n_cells = sums.shape[1] // 2
        totals, sizes = sums[:, :n_cells], sums[:, n_cells:]
        n = sizes.sum(axis=0)
        mean = totals.sum(axis=0) / n
        residuals = (totals - sizes * mean) / n
        # rounding must not count as variation
        residuals[np.abs(residuals) < 1e-12 / n] = 0.0
        return cls(mean, (residuals**2).sum(axis=0), n**2 / (sizes**2).sum(axis=0), residuals, sizes)

    def limits(self, bounds: Bounds, confidence: float) -> tuple[Array, Array]:
        """Return the limits (K,) of :func:`score_limits`, from independent units."""
        z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
        return score_limits(self.mean, self.variance, self.units, bounds, z)

    def correlation(self) -> Array:
        """Return the correlation (K, K) of the means. Means that share no unit are independent."""
        return correlations(self.residuals, self.sizes.T @ self.sizes > 0)


def check_range(values: Array, bounds: Bounds | None) -> None:
    """Raise MetricError for a value outside ``bounds``."""
    if bounds is None or not len(values):
        return
    slack = 1e-9 * (bounds[1] - bounds[0])
    if values.min() < bounds[0] - slack or values.max() > bounds[1] + slack:
        outside = values.min() if values.min() < bounds[0] else values.max()
        raise MetricError(
            f"the value {outside:g} is outside {bounds[0]:g} to {bounds[1]:g}", "name its range as bounds"
        )


def score_limits(mean: Array, variance: Array, units: Array, bounds: Bounds, z: float) -> tuple[Array, Array]:
    """Return limits (K,) of means (K,) of values within finite ``bounds``, from the variance of each mean.

    Wilson's score interval (1927) with the given variance V of the mean in place of p (1 - p) / n: with p the mean
    on a scale of 0 to 1, n the ``units`` and ``z`` the quantile of the normal distribution or of t,
    (p + z² / 2n ± z √(V + z² / 4n²)) / (1 + z² / n). For values of 0 and 1 it is Wilson's. Equal values do not collapse
    it: they get the width of n draws that show no spread.
    """
    span = bounds[1] - bounds[0]
    share, spread = np.clip((mean - bounds[0]) / span, 0.0, 1.0), variance / span**2
    weight = z * z / units
    centre = (share + weight / 2) / (1 + weight)
    reach = z * np.sqrt(spread + weight / (4 * units)) / (1 + weight)
    low, high = np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)
    # a limit at the end of the range is exact, and the mean is never outside its limits, despite rounding
    return bounds[0] + span * np.minimum(low, share), bounds[0] + span * np.maximum(high, share)


def mean_score_limits(share: Array, worth: Array, units: Array, correlation: Array, z: float) -> tuple[float, float]:
    """Return the score limits of the unweighted mean of K shares, a generalisation of Wilson's interval.

    A mean m of the true shares is inside if the observed mean is at most ``z`` standard errors away, where the standard
    errors are those of the most likely shares with that mean (Miettinen & Nurminen 1985 for two shares). These are the
    roots of l p² - (l + n) p + n s = 0 for a common multiplier l. So no cell needs a spread of its own: one that is all
    right may be less than all right in the population. For K = 1 it is Wilson's.

    Args:
        share: (K,) observed shares s.
        worth: (K,) how many independent values of 0 and 1 each share is worth: n; (2, K) if it differs for the limits.
        units: (K,) rows of each cell if all values are 0 or 1. The most likely shares follow the observed ones, which
            makes p (1 - p) too small by 1 / units; less so for a cell that most of the variance of the mean comes from.
            Infinite where ``worth`` comes from an unbiased variance.
        correlation: (K, K) of the shares.
        z: the normal quantile, or that of t.
    """
    side = np.array([[1.0], [-1.0]])
    # from the lower side wrong answers are added, from the upper one right ones
    lacking = np.where(side > 0, share, 1 - share)
    least, most = np.full((2, 1), math.log(worth.min()) - 35), np.full((2, 1), math.log(worth.max()) + 35)
    for _ in range(_BOUND_HALVINGS):
        middle = (least + most) / 2
        multiplier = np.exp(middle)
        total = multiplier + worth
        root = np.sqrt(np.maximum(total**2 - 4 * multiplier * worth * lacking, 0.0))
        moved = np.minimum(2 * worth * lacking / (total + root), 1.0)
        variance = moved * (1 - moved) / worth
        part = variance / np.maximum(variance.sum(axis=1, keepdims=True), 1e-300)
        error = np.sqrt(variance / (1 - (1 - part) / units))
        reach = z * np.sqrt(np.maximum(np.einsum("sk,kl,sl->s", error, correlation, error), 0.0)) / len(share)
        far = (lacking - moved).mean(axis=1) > reach
        least, most = np.where(far[:, None], least, middle), np.where(far[:, None], middle, most)
    low, high = moved.mean(axis=1)
    mean = float(share.mean())
    return min(float(low), mean), max(1 - float(high), mean)


def mover(low: Array, high: Array, value: Array, correlation: Array) -> tuple[float, float]:
    """Return limits of the mean of K estimates from their own limits (K,) and their correlation (K, K).

    MOVER, the method of variance estimates recovery (Zou & Donner 2008): the distances from each estimate to its lower
    limit are added as standard errors are, √(d' R d) / K, and likewise the distances to the upper ones.
    """
    below, above = value - low, high - value
    mean = float(value.mean())
    reach = [math.sqrt(max(0.0, float(d @ correlation @ d))) / len(value) for d in (below, above)]
    return mean - reach[0], mean + reach[1]


def correlations(residuals: Array, shared: NDArray[np.bool_]) -> Array:
    """Return the correlation (K, K) of K estimates from the residuals (G, K) of their units.

    An estimate without variation says nothing of its correlation: it counts as 1 with those that share a unit
    (``shared``, (K, K)), else as 0.
    """
    products = residuals.T @ residuals
    scale = np.sqrt(np.diag(products))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = products / np.outer(scale, scale)
    found = np.where(np.isfinite(found), np.clip(found, -1.0, 1.0), shared.astype(np.float64))
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)
