"""Intervals over groups: the critical value against simulated groups, no step in the width, and coverage."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, t

from mrag_eval.metrics import cluster_interval, interval_for
from mrag_eval.metrics._clusters import Means, _normal_groups, critical_value, jackknife_variance

Array = NDArray[np.float64]


def alike(sizes: list[int], confidence: float = 0.95) -> float:
    distinct, counts = np.unique(np.array(sizes, dtype=float), return_counts=True)
    return _normal_groups(tuple(distinct.tolist()), tuple(counts.tolist()), confidence)


@pytest.mark.parametrize("groups", [2, 5, 20, 300])
def test_groups_of_equal_size_have_the_quantile_of_t(groups: int) -> None:
    assert alike([6] * groups) == pytest.approx(t.ppf(0.975, groups - 1), rel=1e-9)


@pytest.mark.parametrize("groups", [3, 10, 40])
def test_nearly_equal_groups_have_nearly_that(groups: int) -> None:
    """The general way, which inverts a characteristic function, meets the t distribution where sizes become equal."""
    assert alike([100_000] * (groups - 1) + [100_001]) == pytest.approx(t.ppf(0.975, groups - 1), rel=1e-3)


@pytest.mark.parametrize("sizes", [[6] * 9 + [27], [1, 2, 3, 50], [100, 1, 1], [100 // k for k in range(1, 21)]])
def test_the_critical_value_is_exceeded_as_often_as_it_says(sizes: list[int]) -> None:
    n, rng = np.array(sizes, dtype=float), np.random.default_rng(3)
    effects = rng.normal(size=(40_000, len(n)))
    mean = effects @ n / n.sum()
    moved = n * (effects - mean[:, None]) / (n.sum() - n)
    ratio = np.abs(mean) / np.sqrt((len(n) - 1) / len(n) * (moved**2).sum(axis=1))
    for confidence in (0.9, 0.95, 0.99):
        missed = float((ratio > alike(sizes, confidence)).mean())
        assert missed == pytest.approx(1 - confidence, abs=4 * math.sqrt(confidence * (1 - confidence) / 40_000))


def test_the_variance_is_that_of_leaving_out_one_group_after_the_other() -> None:
    values, groups = np.array([1.0, 0.2, 0.4, 0.9, 0.1, 0.6, 0.3]), np.array([0, 0, 0, 1, 1, 2, 3])
    left = np.array([values[groups != g].mean() for g in range(4)])
    sums = np.array([[values[groups == g].sum(), (groups == g).sum()] for g in range(4)])
    assert jackknife_variance(Means.of(sums))[0] == pytest.approx(3 / 4 * ((left - values.mean()) ** 2).sum())


def test_a_spread_that_comes_from_few_groups_has_few_degrees_of_freedom() -> None:
    sizes = np.full(30, 4.0)
    even = np.tile([1.0, -1.0], 15)
    lone = np.r_[29.0, np.full(29, -1.0)]
    assert critical_value(sizes, even, 0.95) == pytest.approx(t.ppf(0.975, 29))
    # 29^2 and 29 times 1: the sum of fourth powers over the square of that of squares
    share = (29**4 + 29) / (29**2 + 29) ** 2
    assert critical_value(sizes, lone, 0.95) == pytest.approx(t.ppf(0.975, 2 / (share - 1 / 30)))


def third(count: int) -> list[int]:
    """One group has a third of the rows."""
    return [3 * (count - 1)] + [6] * (count - 1)


@pytest.mark.parametrize("sizes", [lambda n: [6] * n, third])
@pytest.mark.parametrize("effects", [(2, 2), (6, 2), (9, 0.5)])
@pytest.mark.parametrize("unbounded", [False, True])
def test_the_width_falls_smoothly_with_the_number_of_groups(
    sizes: Callable[[int], list[int]], effects: tuple[float, float], unbounded: bool
) -> None:
    """No step at 20 groups or elsewhere: from group to group the width falls, and by no more than it did before."""
    seen = []
    for count in range(10, 41):
        # the same distribution of effects whatever their number, without chance
        quantiles = np.r_[0.7, (np.arange(count - 1) + 0.5) / (count - 1)]
        values = beta.ppf(quantiles, *effects).repeat(sizes(count))
        groups = np.arange(count).repeat(sizes(count)).tolist()
        found = cluster_interval(values, groups, bounds=None if unbounded else (0.0, 1.0))
        seen.append((found.high or 0.0) - (found.low or 0.0))
    falls = -np.diff(np.log(seen))
    assert (falls > 0).all()
    assert np.abs(np.diff(falls)).max() < 0.02


def normal(rng: np.random.Generator, sizes: Array) -> Array:
    return np.asarray(rng.normal(size=len(sizes)).repeat(sizes.astype(int)))


def shares(rng: np.random.Generator, sizes: Array) -> Array:
    effects = rng.random(len(sizes)).repeat(sizes.astype(int))
    return np.asarray((rng.random(len(effects)) < effects).astype(float))


@pytest.mark.parametrize("count", [10, 20, 30])
@pytest.mark.parametrize("sizes", [lambda n: [6] * n, third, lambda n: [1 + i % 7 for i in range(n)]])
@pytest.mark.parametrize(("draw", "truth"), [(normal, 0.0), (shares, 0.5)])
def test_symmetric_effects_are_covered_from_ten_groups_on(
    count: int, sizes: Callable[[int], list[int]], draw: Callable[[np.random.Generator, Array], Array], truth: float
) -> None:
    rows, rng = np.array(sizes(count)), np.random.default_rng(5)
    groups = np.arange(count).repeat(rows).tolist()
    held = 0
    for _ in range(400):
        found = cluster_interval(draw(rng, rows), groups, bounds=(0.0, 1.0) if truth else None)
        held += (found.low or 0.0) <= truth <= (found.high or 0.0)
    # .93 of many; 400 of them vary by .013
    assert held / 400 >= 0.93 - 0.013


def test_one_group_with_nearly_all_rows_leaves_a_wide_interval() -> None:
    values = [1.0] * 80 + [0.0] * 20 + [1.0, 0.0, 1.0, 1.0]
    groups = [0] * 100 + [1, 1, 2, 2]
    found = interval_for(values, groups=groups, bounds=(0.0, 1.0))
    assert (found.groups, found.low is not None) == (3, True)
    assert (found.high or 0) - (found.low or 0) > 0.5
