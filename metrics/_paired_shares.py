"""An exact test of a drop between two paired shares, against any margin."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics._inverted import lower_bound
from mrag_eval.metrics._resampling import Array

# Shares of the nuisance parameter at which the p-value is computed, and again around the largest of them.
_GRID, _FINER = 33, 9
# Standard deviations of a binomial beyond which its outcomes count as if they were all in the rejection region.
_REACH = 10.0
# Power at which the smallest detectable drop is given.
POWER = 0.8


@dataclass(frozen=True)
class PairedShares:
    """Test whether a share dropped by more than a margin, exactly, for any number of rows.

    Of ``n`` rows of 0 and 1, ``lost`` fell and ``gained`` rose. Outcomes are ordered by the score statistic of Tango
    (1998, Statistics in Medicine 17, 891-908) at the drop tested. The p-value is the largest probability, over the
    unknown share of rows that rise, of an outcome at least as extreme (Suissa & Shuster 1991; Sidik 2003).
    """

    n: int
    lost: int
    gained: int

    method = "exact test of two paired shares"

    @property
    def mirrored(self) -> PairedShares:
        """Return the test of rises."""
        return PairedShares(self.n, self.gained, self.lost)

    def _fewest_losses(self, drop: float) -> NDArray[np.int64]:
        """Return for 0, 1, ... n rows that rise the fewest losses that are as extreme as those seen, (n + 1,)."""
        gained = np.arange(self.n + 1)
        seen = float(score(np.array([self.lost]), np.array([self.gained]), self.n, drop)[0])
        seen -= 1e-9 * max(1.0, abs(seen))
        low, high = np.full(self.n + 1, -1), self.n - gained + 1
        while (open_ := high - low > 1).any():
            middle = (low + high) // 2
            reached = score(np.maximum(middle, 0), gained, self.n, drop) >= seen
            high = np.where(open_ & reached, middle, high)
            low = np.where(open_ & ~reached, middle, low)
        return np.asarray(high)

    def p_value(self, drop: float) -> float:
        """Return the p-value of a drop larger than ``drop``; it rises with it, but for dips where outcomes tie."""
        if drop >= 1:
            return 1.0
        if drop < -1:
            # every drop is larger
            return sys.float_info.min
        low, high = max(0.0, -drop), (1 - drop) / 2
        # more points where the share is small, as there the probabilities change fastest
        shares = low + (high - low) * np.sin(np.linspace(0, np.pi / 2, _GRID)) ** 2
        fewest = self._fewest_losses(drop)
        found = self._probabilities(shares, drop, fewest)
        at = int(found.argmax())
        around = np.linspace(shares[max(at - 1, 0)], shares[min(at + 1, _GRID - 1)], _FINER)
        largest = float(max(found[at], self._probabilities(around, drop, fewest).max()))
        # thousands of losses are beyond the smallest number, but not impossible
        return min(1.0, max(largest, sys.float_info.min))

    def _probabilities(self, shares: Array, drop: float, needed: NDArray[np.int64]) -> Array:
        """Return the probability of the region if these shares of the rows rise, and ``drop`` more fall."""
        from scipy.special import bdtrc, xlog1py, xlogy

        spread = np.sqrt(self.n * shares * (1 - shares))
        first = np.maximum(np.floor(self.n * shares - _REACH * spread) - 30, 0).astype(np.int64)
        last = np.minimum(np.ceil(self.n * shares + _REACH * spread) + 30, self.n).astype(np.int64)
        sizes = last - first + 1
        of = np.repeat(np.arange(len(shares)), sizes)
        gained = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[of]
        rest = self.n - gained
        share = shares[of]
        weight = np.exp(_log_ways(self.n)[gained] + xlogy(gained, share) + xlog1py(rest, -share))
        fewest = needed[gained]
        falls = np.clip((share + drop) / np.maximum(1 - share, 1e-300), 0.0, 1.0)
        tail = np.where(fewest > rest, 0.0, np.where(fewest == 0, 1.0, bdtrc(fewest - 1, np.maximum(rest, 1), falls)))
        inside = np.bincount(of, weight * tail, minlength=len(shares))
        return np.asarray(inside + np.maximum(0.0, 1 - np.bincount(of, weight, minlength=len(shares)) - 1e-12))

    def lower(self, level: float, margin: float) -> float:
        """Return the one-sided lower bound of the drop: all smaller drops are excluded at ``level``.

        It is above ``margin`` if and only if the p-value there is at most ``level``.
        """
        drop = (self.lost - self.gained) / self.n
        changed = (self.lost + self.gained) / self.n
        error = (max(changed - drop**2, 1 / self.n) / self.n) ** 0.5
        return lower_bound(self.p_value, level, margin, (drop, error), (-1.0, 1.0))

    def upper(self, level: float, margin: float) -> float:
        """Return the one-sided upper bound of the drop."""
        return -self.mirrored.lower(level, -margin)

    def detectable(self, level: float, margin: float) -> float:
        """Return the drop beyond the margin that is found with 80% power at ``level``, infinite if none is.

        As many rows rise as did, and others fall.
        """
        low, high = -1, self.n - self.gained + 1
        while high - low > 1:
            middle = (low + high) // 2
            if PairedShares(self.n, middle, self.gained).p_value(margin) <= level:
                high = middle
            else:
                low = middle
        if high > self.n - self.gained:
            return math.inf
        return max(0.0, share_found(high, self.n) - self.gained / self.n - margin)


def share_found(needed: int, n: int) -> float:
    """Return the share of which n draws contain at least the ``needed`` number with 80% probability."""
    from scipy.special import betaincinv

    return float(betaincinv(needed, n - needed + 1, POWER)) if needed else 0.0


@lru_cache(maxsize=256)
def _log_ways(n: int) -> Array:
    """Return the logarithms of the binomial coefficients of n, (n + 1,)."""
    from scipy.special import gammaln

    k = np.arange(n + 1)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def score(lost: NDArray[np.int64], gained: NDArray[np.int64], n: int, margin: float) -> Array:
    """Return Tango's z of a drop above ``margin``, for arrays of outcomes.

    With d the margin, b rows lost and c gained: z = (b - c - n d) / sqrt(n (2 q + d (1 - d))), where q is the most
    likely share of gains if the drop is d: the larger root of 2 n q^2 + ((2 n - b + c) d - b - c) q = c d (1 - d). It
    is 0 where nothing changed and the margin is 0.
    """
    if margin < 0:
        return -score(gained, lost, n, -margin)
    d = min(margin, 1.0)
    b, c = lost.astype(np.float64), gained.astype(np.float64)
    linear = (2 * n - b + c) * d - b - c
    share = (np.sqrt(linear**2 + 8 * n * c * d * (1 - d)) - linear) / (4 * n)
    variance = n * (2 * share + d * (1 - d))
    above = b - c - n * d
    with np.errstate(divide="ignore", invalid="ignore"):
        z = above / np.sqrt(np.maximum(variance, 0.0))
    return np.where(np.abs(above) < 1e-9, 0.0, z)
