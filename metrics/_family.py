"""Families of one-sided tests: corrected p-values, the bounds they imply, and the cells that can be rejected at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from mrag_eval.metrics._betting import BoundedMean
from mrag_eval.metrics._corrections import benjamini_hochberg, holm
from mrag_eval.metrics._joint_bootstrap import JointBootstrap, critical, exceedance
from mrag_eval.metrics._paired_shares import PairedShares
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
    bootstrap. At least one of them is there.
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
            own.append(exceedance(cell.deviate(drop), cell.resampled, np.abs(cell.resampled)) / (1 - _BETTING))
        if self.bounded is not None:
            own.append(self.bounded.p_value(drop) / _BETTING)
        return min(own)

    def lower(self, level: float, margin: float) -> float:
        """Return the one-sided lower bound of the drop; see :meth:`PairedShares.lower`."""
        cell = self.resampled
        passed = math.inf
        if cell is not None:
            passed = critical(cell.resampled, np.abs(cell.resampled), level * (1 - _BETTING))
        return self.above(passed, level, margin)

    def above(self, deviate: float, level: float, margin: float) -> float:
        """Return the higher of the bound at this deviate and that of betting at its share of ``level``."""
        bound = -math.inf if self.resampled is None else self.resampled.bound(deviate)
        if self.bounded is None:
            return bound
        level *= _BETTING
        start = max(bound, margin)
        if bound > margin and self.bounded.p_value(bound) > level:
            return bound
        return max(bound, self.bounded.lower(level, start))


Test = PairedShares | PairedMeans


def decided(
    tests: Sequence[Test], margins: Sequence[float], correction: Correction, alpha: float
) -> list[tuple[float, float]]:
    """Return the adjusted p-value of each test, and its lower bound at the level of the decision.

    The bound is above the margin if and only if the p-value is at most ``alpha``.
    """
    if correction == "holm":
        return _family_wise(tests, margins, alpha)
    p_values = [test.p_value(margin) for test, margin in zip(tests, margins, strict=True)]
    adjusted, level = p_values, alpha
    if correction == "bh" and tests:
        adjusted = _known(benjamini_hochberg(p_values))
        level = alpha * max(1, sum(p <= alpha for p in adjusted)) / len(tests)
    bounds = [test.lower(level, margin) for test, margin in zip(tests, margins, strict=True)]
    return list(zip(adjusted, bounds, strict=True))


def _known(p_values: Sequence[float | None]) -> list[float]:
    return [p for p in p_values if p is not None]


def _family_wise(tests: Sequence[Test], margins: Sequence[float], alpha: float) -> list[tuple[float, float]]:
    """Return the outcomes of two kinds of tests, each at half of alpha, and at all of it if the others all reject."""
    kinds = _kinds(tests)
    corrected = [_corrected([(tests[i], margins[i]) for i in places]) for places in kinds]
    out: dict[int, tuple[float, float]] = {}
    for places, own, other in zip(kinds, corrected, corrected[::-1], strict=True):
        most = max(other.p_values, default=0.0)
        # alone, a kind of tests has all of alpha
        share = alpha if not other.p_values or most <= alpha / 2 else alpha / 2
        bounds = own.bounds(share)
        for i, p, bound in zip(places, own.p_values, bounds, strict=True):
            out[i] = (min(1.0, max(p, min(2 * p, 2 * most)) if other.p_values else p), bound)
    return [out[i] for i in range(len(tests))]


def _kinds(tests: Sequence[Test]) -> tuple[list[int], list[int]]:
    """Return the places of the tests of shares, and of those of means."""
    shares = [i for i, test in enumerate(tests) if isinstance(test, PairedShares)]
    return shares, [i for i in range(len(tests)) if i not in set(shares)]


class _Corrected(NamedTuple):
    """Tests of one kind, their margins and adjusted p-values, and the steps of the largest deviate."""

    parts: Sequence[tuple[Test, float]]
    p_values: list[float]
    by_holm: list[float]
    steps: _Steps | None

    def bounds(self, level: float) -> list[float]:
        """Return the lower bounds at the level of the last decision."""
        if self.steps is None:
            own = level / max(1, sum(p > level for p in self.by_holm))
            return [test.lower(own, margin) for test, margin in self.parts]
        passed = self.steps.critical(level * (1 - _BETTING))
        own = level / max(1, sum(p / _BETTING > level for p in self.by_holm))
        return [test.above(passed, own, margin) for test, margin in self.parts if isinstance(test, PairedMeans)]


def _corrected(parts: Sequence[tuple[Test, float]]) -> _Corrected:
    means = [(test, margin) for test, margin in parts if isinstance(test, PairedMeans)]
    if not means:
        p_values = _known(holm([test.p_value(margin) for test, margin in parts]))
        return _Corrected(parts, p_values, p_values, None)
    steps = _Steps.of(means)
    bets = [1.0 if test.bounded is None else test.bounded.p_value(margin) for test, margin in means]
    by_holm = _known(holm(bets))
    both = zip(steps.p_values, by_holm, strict=True)
    return _Corrected(parts, [min(1.0, a / (1 - _BETTING), b / _BETTING) for a, b in both], by_holm, steps)


class _Steps(NamedTuple):
    """Step-down max-t: cells in order of their deviates, and the largest deviates of those left, (B, K).

    A cell without resamples has no deviate. It stays among those left, as a normal deviate of its own: otherwise the
    family would be smaller where few rows differ, which depends on the runs.
    """

    order: list[int]
    deviates: Array
    largest: Array
    size: Array

    @classmethod
    def of(cls, tests: Sequence[tuple[PairedMeans, float]]) -> _Steps:
        cells = [test.resampled for test, _ in tests]
        found = [-math.inf if c is None else c.deviate(m) for c, (_, m) in zip(cells, tests, strict=True)]
        order = sorted(range(len(tests)), key=lambda i: -found[i])
        size = next((len(cell.resampled) for cell in cells if cell is not None), 0)
        rng = np.random.default_rng(len(tests))
        columns = [rng.standard_normal(size) if cell is None else cell.resampled for cell in (cells[i] for i in order)]
        table = np.stack(columns, axis=1)[:, ::-1]
        largest, most = (np.maximum.accumulate(values, axis=1)[:, ::-1] for values in (table, np.abs(table)))
        return cls(order, np.array(found), largest, most)

    @property
    def p_values(self) -> list[float]:
        """Return the adjusted p-values in the order of the tests; 1 without a deviate."""
        steps = [
            1.0 if np.isneginf(self.deviates[i]) else exceedance(self.deviates[i], self.largest[:, k], self.size[:, k])
            for k, i in enumerate(self.order)
        ]
        found = dict(zip(self.order, np.maximum.accumulate(steps).tolist(), strict=True))
        return [found[i] for i in range(len(self.order))]

    def critical(self, level: float) -> float:
        """Return the deviate of the last step, which the cells left do not pass."""
        passed = math.inf
        for k, i in enumerate(self.order):
            if np.isneginf(self.deviates[i]):
                break
            passed = critical(self.largest[:, k], self.size[:, k], level)
            if self.deviates[i] <= passed:
                break
        return passed


def possible(
    tests: Mapping[int, Test], margins: Sequence[float], correction: Correction, alpha: float
) -> tuple[set[int], float]:
    """Return the most cells that can each be rejected in one family of them, and the level for one cell more.

    ``tests`` are those of the worst second run. Each has to be rejected in the first step, without help of the others.
    """
    alone = {i: test.p_value(margins[i]) for i, test in tests.items()}
    found = [i for i, p in alone.items() if p <= alpha]
    if correction != "holm":
        return set(found), alpha
    kept: set[int] = set()
    kinds = [[found[at] for at in places] for places in _kinds([tests[i] for i in found])]
    share = alpha / 2 if all(kinds) else alpha
    for places in kinds:
        p_values = _at_first([(tests[i], margins[i]) for i in places]) if places else []
        order = [i for _, _, i in sorted(zip(p_values, (alone[i] for i in places), places, strict=True))]
        # what a family rejects is rejected in a part of it, too
        low, high = 0, len(order)
        while low < high:
            middle = (low + high + 1) // 2
            all_of = max(_at_first([(tests[i], margins[i]) for i in order[:middle]])) <= share
            low, high = (middle, high) if all_of else (low, middle - 1)
        kept |= {*order[:low]}
    return kept, share / (1 + len(kept))


def _at_first(parts: Sequence[tuple[Test, float]]) -> list[float]:
    """Return the p-values corrected for all of one kind of tests, in a single step."""
    means = [(test, margin) for test, margin in parts if isinstance(test, PairedMeans)]
    if not means:
        return [len(parts) * test.p_value(margin) for test, margin in parts]
    steps, out = _Steps.of(means), []
    for deviate, (test, margin) in zip(steps.deviates, means, strict=True):
        p = 1.0 if np.isneginf(deviate) else exceedance(deviate, steps.largest[:, 0], steps.size[:, 0])
        bet = 1.0 if test.bounded is None else len(means) * test.bounded.p_value(margin)
        out.append(min(p / (1 - _BETTING), bet / _BETTING))
    return out


def needed(test: Test, margin: float, level: float, units: int) -> int | None:
    """Return about how many units would be rejected at ``level``: the square of a deviate grows with their number.

    None if no number would.
    """
    cell = test.resampled if isinstance(test, PairedMeans) else None
    found = _deviate(test.p_value(margin)) if cell is None else cell.deviate(margin)
    return math.ceil(units * (_deviate(level) / found) ** 2) if found > 0.1 else None


def _deviate(p_value: float) -> float:
    return -NormalDist().inv_cdf(min(max(p_value, 1e-300), 1 - 1e-16))
