"""A test of the mean of bounded differences that holds for any number of rows and any distribution, by betting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mrag_eval.metrics._inverted import lower_bound
from mrag_eval.metrics._paired_shares import share_found
from mrag_eval.metrics._resampling import Array

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
