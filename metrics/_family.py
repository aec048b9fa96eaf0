"""Families of one-sided tests: tests of a mean, corrected p-values and the bounds they imply."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from mrag_eval.metrics._betting import BoundedMean
from mrag_eval.metrics._corrections import benjamini_hochberg
from mrag_eval.metrics._graph import Place, able, graphical, hierarchy
from mrag_eval.metrics._joint_bootstrap import JointBootstrap, critical, exceedance
from mrag_eval.metrics._paired_shares import POWER, PairedShares
from mrag_eval.metrics._resampling import Array

Correction = Literal["holm", "bh", "none"]

# Share of the level that goes to betting; the bootstrap has the rest.
_BETTING = 0.1


@dataclass(frozen=True)
class ResampledCell:
    """One cell of a joint bootstrap; ``sign`` -1 looks at it from the other side."""

    joint: JointBootstrap
    cell: int
    sign: int = 1

    @property
    def resampled(self) -> Array:
        """Return the deviates of the resamples, (B,)."""
        return self.sign * self.joint.resampled[:, self.cell]

    def deviate(self, drop: float) -> float:
        """Return how far the mean is above ``drop``."""
        return self.sign * self.joint.deviate(self.cell, self.sign * drop)

    def bound(self, deviate: float) -> float:
        """Return what the mean is ``deviate`` above."""
        return self.sign * self.joint.bound(self.cell, self.sign * deviate)


@dataclass(frozen=True)
class PairedMeans:
    """Test whether a mean dropped by more than a margin, by the bootstrap and by betting.

    The bootstrap has nine tenths of the level, betting one: it decides where there is too little variation for the
    bootstrap. At least one of them is there. The bootstrap knows nothing of units that the sample may lack, so that its
    bound is also that of :meth:`BoundedMean.unseen`.
    """

    resampled: ResampledCell | None
    bounded: BoundedMean | None

    @property
    def method(self) -> str:
        """Return the names of the tests."""
        return ", ".join(
            name
            for name, part in (("studentised bootstrap", self.resampled), ("betting on bounded values", self.bounded))
            if part is not None
        )

    @property
    def mirrored(self) -> PairedMeans:
        """Return the test of rises."""
        cell = self.resampled
        other = None if cell is None else ResampledCell(cell.joint, cell.cell, -cell.sign)
        return PairedMeans(other, None if self.bounded is None else self.bounded.mirrored)

    def p_value(self, drop: float) -> float:
        """Return the p-value of a drop larger than ``drop``."""
        own, cell = [1.0], self.resampled
        if cell is not None:
            resampled = exceedance(cell.deviate(drop), cell.resampled, np.abs(cell.resampled))
            unseen = 0.0 if self.bounded is None else self.bounded.unseen_p(drop)
            own.append(max(resampled, unseen) / (1 - _BETTING))
        if self.bounded is not None:
            own.append(self.bounded.p_value(drop) / _BETTING)
        return min(own)

    def lower(self, level: float, margin: float) -> float:
        """Return the one-sided lower bound of the drop; see :meth:`PairedShares.lower`."""
        bound = -math.inf
        if self.resampled is not None:
            bound = self.resampled.bound(self._passed(level))
        if self.bounded is None:
            return bound
        bound = min(bound, self.bounded.unseen(level * (1 - _BETTING)))
        if bound > margin and self.bounded.p_value(bound) > level * _BETTING:
            return bound
        return max(bound, self.bounded.lower(level * _BETTING, max(bound, margin)))

    def upper(self, level: float, margin: float) -> float:
        """Return the one-sided upper bound of the drop.

        The rows may contain none of those that lose most. So the bound is also that of t with one more unit, which lost
        everything, and betting is not asked (docs/statistics.md has how often it errs).
        """
        if self.bounded is None:
            return -self.mirrored.lower(level, -margin)
        bound = max(self.bounded.with_one_lost(level), -self.bounded.mirrored.unseen(level))
        cell = self.mirrored.resampled
        return bound if cell is None else max(bound, -cell.bound(self.mirrored._passed(level)))

    def enough(self, level: float, margin: float) -> int | None:
        """Return about how many units would show what the bootstrap shows at ``level``; None if it shows no drop."""
        if self.resampled is None or self.bounded is None or self.resampled.bound(self._passed(level)) <= margin:
            return None
        unseen = math.log(self.bounded.unseen_p(margin) / 2)
        return math.ceil(len(self.bounded.sums) * math.log(level * (1 - _BETTING) / 2) / unseen)

    def detectable(self, level: float, margin: float) -> float:
        """Return the drop beyond the margin that is found with 80% power at ``level``, infinite if none is."""
        found = [math.inf if self.bounded is None else self.bounded.detectable(level * _BETTING, margin)]
        if (cell := self.resampled) is not None:
            error = float(cell.joint.error[cell.cell])
            needed = cell.bound(0.0) - cell.bound(self._passed(level))
            if self.bounded is not None:
                left = (level * (1 - _BETTING) / 2) ** (1 / len(self.bounded.sums))
                needed = max(needed, (1 - left) / left * (self.bounded.reach + margin))
            found.append(needed + _deviate(1 - POWER) * error)
        return min(found)

    def _passed(self, level: float) -> float:
        """Return the deviate that the resamples pass at the bootstrap's share of ``level``."""
        cell = self.resampled
        return math.inf if cell is None else critical(cell.resampled, np.abs(cell.resampled), level * (1 - _BETTING))


@dataclass(frozen=True)
class Signs:
    """Test whether most of the differences (G,) are drops larger than a margin: for values without a range that hardly
    vary, of whose mean nothing else is known.
    """

    drops: Array

    method = "sign test"

    @property
    def mirrored(self) -> Signs:
        """Return the test of rises."""
        return Signs(-self.drops)

    def p_value(self, drop: float) -> float:
        """Return the p-value of drops larger than ``drop``: that so many are if half of them were."""
        from scipy.special import bdtrc

        larger = int((self.drops > drop).sum())
        return max(float(bdtrc(larger - 1, len(self.drops), 0.5)), 1e-300) if larger else 1.0

    def lower(self, level: float, margin: float) -> float:
        """Return the one-sided lower bound of the drop: that which enough differences exceed."""
        from scipy.special import bdtrc

        needed = np.flatnonzero(bdtrc(np.arange(len(self.drops)), len(self.drops), 0.5) <= level)
        return float(np.sort(self.drops)[::-1][needed[0]]) if len(needed) else -math.inf

    def upper(self, level: float, margin: float) -> float:
        """Return the one-sided upper bound of the mean: none, as a row may lose anything."""
        return math.inf

    def detectable(self, level: float, margin: float) -> float:
        """Return the smallest drop found: none, for the same reason."""
        return math.inf


Test = PairedShares | PairedMeans | Signs


def decided(
    tests: Sequence[Test], margins: Sequence[float], places: Sequence[Place], correction: Correction, alpha: float
) -> list[tuple[float, float, float]]:
    """Return the adjusted p-value of each test, its level, and its lower bound at this level.

    The bound is above the margin if and only if the adjusted p-value is at most ``alpha``.
    """
    p_values = [test.p_value(margin) for test, margin in zip(tests, margins, strict=True)]
    adjusted, levels = p_values, [alpha] * len(tests)
    if correction == "holm":
        adjusted, levels = graphical(p_values, *hierarchy(places), alpha)
    elif correction == "bh" and tests:
        adjusted = [p for p in benjamini_hochberg(p_values) if p is not None]
        levels = [alpha * max(1, sum(p <= alpha for p in adjusted)) / len(tests)] * len(tests)
    bounds = [test.lower(level, margin) for test, level, margin in zip(tests, levels, margins, strict=True)]
    return list(zip(adjusted, levels, bounds, strict=True))


def possible(
    tests: Mapping[int, Test | None],
    margins: Sequence[float],
    places: Sequence[Place],
    correction: Correction,
    alpha: float,
) -> tuple[set[int], float]:
    """Return the most cells that can each be rejected in one family of them, and the level for one cell more.

    ``tests`` are those of the worst second run, None where no run is the worst: such a cell is always there.
    """
    at_worst = {i: 0.0 if test is None else test.p_value(margins[i]) for i, test in tests.items()}
    if correction != "holm":
        return {i for i, p in at_worst.items() if p <= alpha}, alpha
    return able(at_worst, places, alpha)


def needed(test: Test, margin: float, level: float, units: int) -> int | None:
    """Return about how many units would be rejected at ``level``: the square of a deviate grows with their number.

    None if no number would.
    """
    cell = test.resampled if isinstance(test, PairedMeans) else None
    found = _deviate(test.p_value(margin)) if cell is None else cell.deviate(margin)
    return math.ceil(units * (_deviate(level) / found) ** 2) if found > 0.1 else None


def _deviate(p_value: float) -> float:
    return -NormalDist().inv_cdf(min(max(p_value, 1e-300), 1 - 1e-16))
