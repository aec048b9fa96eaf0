"""Families of one-sided tests: tests of a mean, corrections of p-values, the graph that passes level on, and bounds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from mrag_eval.metrics._intervals import scored_rows
from mrag_eval.metrics._joint_bootstrap import JointBootstrap, critical, exceedance
from mrag_eval.metrics._paired_shares import POWER, BoundedMean, PairedShares
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError

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


# What a part of a hierarchy gets at first, and how much less a less preferred heir inherits.
_SHARES = {"whole": 2.0, "language": 2.0, "pair": 1.0}
_LATER = 1e-3


@dataclass(frozen=True)
class Place:
    """The place of a test in a hierarchy: all rows of what is tested (``of``), one ``language``, or a ``pair``.

    A pair of languages has the language of its questions too.
    """

    of: Hashable
    language: str = ""
    pair: str = ""

    @property
    def level(self) -> str:
        """Return the level of the hierarchy: ``whole``, ``language`` or ``pair``."""
        return "pair" if self.pair else "language" if self.language else "whole"


def graphical(p_values: Sequence[float], shares: Array, passes: Array, alpha: float) -> tuple[list[float], list[float]]:
    """Return adjusted p-values of m tests, and the level of each at its decision, if rejected tests pass theirs on.

    The sequentially rejective procedure of Bretz, Maurer, Brannath & Posch (2009, Statistics in Medicine 28, 586-604),
    which bounds the chance of any false rejection by ``alpha`` whatever the dependence. The test with the smallest p_i
    / w_i is rejected if that is at most alpha. Then w_j grows by w_i g_ij, and g_jk becomes (g_jk + g_ji g_ik) / (1 -
    g_ji g_ij). A test is rejected if and only if its p-value is at most its level.

    Args:
        shares: (m,) share w of alpha that each test has at first; their sum is at most 1.
        passes: (m, m) shares g of its level that a rejected test passes to each other one; rows sum to at most 1.
    """
    p, weight, graph = np.asarray(p_values, dtype=np.float64), shares.astype(np.float64), passes.astype(np.float64)
    adjusted, levels, left = np.ones(len(p)), np.full(len(p), -1.0), np.ones(len(p), dtype=bool)
    largest = 0.0
    while left.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(left & (weight > 0), p / weight, np.inf)
        i = int(ratios.argmin())
        rejected = bool(p[i] <= alpha * weight[i]) and largest <= alpha
        if not rejected and (levels[left] < 0).any():
            # no test is rejected from here on: these are the levels of the decision
            levels[left] = alpha * weight[left]
        largest = max(largest, float(ratios[i]))
        if largest >= 1:
            break
        # rounding does not separate a p-value from its level
        adjusted[i] = min(largest, alpha) if rejected else max(largest, math.nextafter(alpha, 1.0))
        levels[i] = alpha * weight[i] if rejected else levels[i]
        left[i] = False
        weight = weight + weight[i] * graph[i]
        loop = graph[:, i] * graph[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = (graph + np.outer(graph[:, i], graph[i])) / (1 - loop)[:, None]
        graph = np.where(left[:, None] & left & (loop < 1)[:, None], moved, 0.0)
        np.fill_diagonal(graph, 0.0)
    return adjusted.tolist(), levels.tolist()


def hierarchy(places: Sequence[Place]) -> tuple[Array, Array]:
    """Return shares (m,) and passes (m, m) of :func:`graphical` for tests at these places.

    Everything that is tested has the same share. Two fifths of it test the whole, two are shared by the languages, one
    by the pairs; a level without tests leaves its part to the others. A whole passes its share to the languages, a
    language to its pairs, a pair to the other pairs. What is left goes to the rest of the same hierarchy, then to the
    others. Tests that are alone in their hierarchies have Holm's procedure.
    """
    members: dict[Hashable, dict[str, list[int]]] = {}
    for i, place in enumerate(places):
        members.setdefault(place.of, {}).setdefault(place.level, []).append(i)
    shares, passes = np.zeros(len(places)), np.zeros((len(places), len(places)))
    for levels in members.values():
        for level, own in levels.items():
            part = _SHARES[level] / sum(_SHARES[name] for name in levels)
            shares[own] = part / len(own) / len(members)
    for i, place in enumerate(places):
        levels, left = members[place.of], 1.0
        pairs, languages = levels.get("pair", []), levels.get("language", [])
        below = [j for j in pairs if places[j].language == place.language] if place.level == "language" else pairs
        first = {"whole": [languages, pairs], "language": [below, languages, pairs], "pair": [pairs, languages]}
        inside = {j for own in levels.values() for j in own}
        outside = np.where([j in inside for j in range(len(places))], 0.0, shares)
        for heirs in (*first[place.level], sorted(inside)):
            weights = np.zeros(len(places))
            weights[[j for j in heirs if j != i]] = 1.0
            if weights.any():
                passes[i] += left * weights / weights.sum()
                left *= _LATER
        if outside.any():
            passes[i] += left * outside / outside.sum()
        if passes[i].any():
            passes[i] /= passes[i].sum()
    return shares, passes


def able(at_worst: Mapping[int, float], places: Sequence[Place], alpha: float) -> tuple[set[int], float]:
    """Return the most tests that the :func:`hierarchy` of them could reject at once, and the level for one more.

    ``at_worst`` are the p-values with the worst outcome there is. Each has to be rejected with its first share, without
    help of the others (Tarone 1990, Biometrics 46).
    """
    members: dict[Hashable, dict[str, list[int]]] = {}
    for i in at_worst:
        members.setdefault(places[i].of, {}).setdefault(places[i].level, []).append(i)
    least = {of: min(at_worst[i] for own in levels.values() for i in own) for of, levels in members.items()}
    order = sorted(least, key=lambda of: least[of])
    count = max((k for k, of in enumerate(order, 1) if least[of] * k <= alpha), default=0)
    kept: set[int] = set()
    for of in order[:count]:
        levels = dict(members[of])
        while levels:
            found = {}
            for level, own in levels.items():
                part = alpha / count * _SHARES[level] / sum(_SHARES[name] for name in levels)
                ordered = sorted(own, key=lambda i: at_worst[i])
                found[level] = ordered[
                    : max((k for k, i in enumerate(ordered, 1) if at_worst[i] * k <= part), default=0)
                ]
            empty = [level for level in ("pair", "language", "whole") if level in levels and not found[level]]
            if not empty:
                kept |= {i for own in found.values() for i in own}
                break
            del levels[empty[0]]
    return kept, alpha / (1 + len(kept))
