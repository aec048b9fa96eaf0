"""Exact tests of a drop between paired rows, of shares and of bounded means, and the bounds that they imply."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

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


# Shares of the largest bet that a row cannot turn into a debt, of which the mean outcome counts.
_BETS = (np.arange(1, 21) / 20) ** 2


@dataclass(frozen=True)
class BoundedMean:
    """Test whether a mean dropped by more than a margin, from the sums and numbers of rows of each unit, (G,) each.

    ``reach`` is the largest difference possible. Somebody who bets on drops larger than the margin cannot expect to
    win: if K times the stake is won, the margin is excluded at level 1 / K (Waudby-Smith & Ramdas 2024, Journal of the
    Royal Statistical Society B 86, 1-27; here all bets are mixed, so that the order of rows does not matter). This
    needs no variation, and no large number of rows.
    """

    sums: Array
    sizes: Array
    reach: float

    method = "betting on bounded differences"

    @property
    def mirrored(self) -> BoundedMean:
        """Return the test of rises."""
        return BoundedMean(-self.sums, self.sizes, self.reach)

    def p_value(self, drop: float) -> float:
        """Return the p-value of a drop larger than ``drop``; it rises with the drop."""
        debt = (self.reach + drop) * float(self.sizes.max())
        if debt <= 0:
            return 0.0
        gains = (self.sums - drop * self.sizes) / debt
        with np.errstate(divide="ignore"):
            won = np.log1p(np.maximum(_BETS[:, None] * gains, -1.0)).sum(axis=1)
        return float(min(1.0, np.exp(min(0.0, np.log(len(_BETS)) - np.logaddexp.reduce(won)))))

    def lower(self, level: float, margin: float) -> float:
        """Return the one-sided lower bound of the drop; see :meth:`PairedShares.lower`."""
        mean = float(self.sums.sum() / self.sizes.sum())
        error = self.reach / len(self.sums) ** 0.5
        return lower_bound(self.p_value, level, margin, (mean, error), (-self.reach, self.reach))

    def unseen(self, level: float) -> float:
        """Return the mean of drops that is left if the sample holds none of the units that gained everything.

        Their share q has (1 - q)^G = level / 2: the other half is for what the sample holds.
        """
        left = (level / 2) ** (1 / len(self.sums))
        return left * float(self.sums.sum() / self.sizes.sum()) - (1 - left) * self.reach

    def unseen_p(self, drop: float) -> float:
        """Return the level at which :meth:`unseen` is ``drop``, 2 and more above the mean."""
        mean = float(self.sums.sum() / self.sizes.sum())
        return (
            2 * float(((self.reach + drop) / (self.reach + mean)) ** len(self.sums)) if self.reach + mean > 0 else 2.0
        )

    def with_one_lost(self, level: float) -> float:
        """Return the upper bound of the drop by t, with one more unit of the usual size that lost everything."""
        from scipy.special import stdtrit

        sizes = np.append(self.sizes, self.sizes.mean())
        sums = np.append(self.sums, self.reach * self.sizes.mean())
        mean = float(sums.sum() / sizes.sum())
        error = float(np.sqrt(((sums - sizes * mean) ** 2).sum()) / sizes.sum())
        return min(self.reach, mean + float(stdtrit(len(self.sums) - 1, 1 - level)) * error)

    def detectable(self, level: float, margin: float) -> float:
        """Return the drop beyond the margin found with 80% power if units lose everything or nothing."""
        count, size = len(self.sums), float(self.sizes.mean())
        for lost in range(1, count + 1):
            sums = np.where(np.arange(count) < lost, self.reach * size, 0.0)
            if BoundedMean(sums, np.full(count, size), self.reach).p_value(margin) <= level:
                return share_found(lost, count) * self.reach - margin
        return math.inf


_NORMAL = NormalDist()
# Distance at which a bound is found, as a share of the range.
_EXACT_TO = 5e-6


def lower_bound(
    p_value: Callable[[float], float],
    level: float,
    margin: float,
    about: tuple[float, float],
    limits: tuple[float, float],
) -> float:
    """Return the drop at which ``p_value``, which rises with the drop, passes ``level``.

    It is above ``margin`` if and only if ``p_value(margin) <= level``: the search starts there and goes to that side
    only. ``about`` is the estimate with its standard error, near which the bound is looked for first. ``limits`` are
    the smallest and largest drop possible.
    """
    from scipy.optimize import brentq

    p_value = cache(p_value)
    above = p_value(margin) <= level
    end = limits[1] if above else limits[0]
    if (end - margin) * (1 if above else -1) <= 0:
        return math.nextafter(margin, math.inf) if above else margin

    def excess(drop: float) -> float:
        """Return how far the drop is from its bound, in standard errors: nearly linear."""
        p = min(max(p_value(drop), 1e-300), 1 - 1e-16)
        return _NORMAL.inv_cdf(level) - _NORMAL.inv_cdf(p)

    low, high = sorted((margin, end))
    guess = about[0] + _NORMAL.inv_cdf(level) * about[1]
    step = max(about[1], _EXACT_TO)
    # narrow the bracket around the guess; a half of it may already be on the other side
    for side in (guess - step / 4, guess + step / 4, guess - 2 * step, guess + 2 * step):
        if low < side < high:
            low, high = (side, high) if excess(side) >= 0 else (low, side)
        if high - low <= 4 * step:
            break
    if excess(high) >= 0:
        return high
    if excess(low) < 0:
        return low
    found = float(brentq(excess, low, high, xtol=_EXACT_TO * (limits[1] - limits[0])))
    # the search may end a little beyond the estimate
    found = min(found, max(about[0], limits[0]))
    return max(found, math.nextafter(margin, math.inf)) if above else min(found, margin)
