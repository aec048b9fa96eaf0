"""Intervals that keep the range of a score: Wilson's for any bounded value, and those of means of several."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError

Bounds = tuple[float, float]
# Halvings of the logarithm of a multiplier: enough for limits to 1e-12.
_HALVINGS = 60


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
    for _ in range(_HALVINGS):
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
