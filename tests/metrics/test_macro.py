"""Macro means and worst cells, and the limits of bounded scores that they are made of, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlogy

from mrag_eval.metrics import interval_for, stratified_bootstrap, wilson
from mrag_eval.metrics._clusters import mover, score_limits
from mrag_eval.platform import MetricError
from tests.metrics.test_intervals import bounds


def most_likely(right: list[int], rows: list[int], mean: float) -> np.ndarray:
    """Return the most likely shares with such a mean, by general optimisation."""
    k, n = np.array(right), np.array(rows)

    def surprise(p: np.ndarray) -> float:
        return float(-(xlogy(k, p) + xlogy(n - k, 1 - p)).sum())

    fixed = {"type": "eq", "fun": lambda p: p.mean() - mean}
    start = np.clip(k / n + mean - (k / n).mean(), 0.01, 0.99)
    found = minimize(surprise, start, bounds=[(1e-9, 1 - 1e-9)] * len(n), constraints=[fixed], options={"ftol": 1e-14})
    return np.asarray(found.x)


@pytest.mark.parametrize(
    ("right", "rows"),
    [([450, 5, 5, 5, 5], [500, 5, 5, 5, 5]), ([6, 7], [20, 10]), ([72, 36, 20, 8], [80, 60, 40, 40]), ([2, 1], [2, 2])],
)
def test_the_limits_of_a_macro_mean_are_where_the_score_test_rejects(right: list[int], rows: list[int]) -> None:
    """At both limits the observed mean is 1.96 standard errors away, with the shares most likely under that mean."""
    values = [float(i < k) for k, n in zip(right, rows, strict=True) for i in range(n)]
    cells = [cell for cell, n in enumerate(rows) for _ in range(n)]
    low, value, high = bounds(stratified_bootstrap(values, cells))
    n = np.array(rows)
    for limit in (low, high):
        p = most_likely(right, rows, limit)
        variance = p * (1 - p) / n
        # without the freedom that the most likely shares have to follow the observed ones
        variance /= 1 - (1 - variance / variance.sum()) / n
        assert abs(value - limit) * len(n) == pytest.approx(1.959964 * math.sqrt(variance.sum()), rel=2e-3)


@pytest.mark.parametrize(("right", "rows"), [(0, 5), (5, 7), (40, 40), (300, 1190)])
def test_the_macro_mean_of_one_cell_has_wilsons_interval(right: int, rows: int) -> None:
    found = stratified_bootstrap([1.0] * right + [0.0] * (rows - right), ["en"] * rows)
    assert bounds(found) == pytest.approx(bounds(wilson(right, rows)), abs=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, 1.0])
def test_one_cell_of_equal_scores_has_the_interval_of_its_rows(value: float) -> None:
    """Equal scores between the ends reach p z^2 / (n + z^2) down, as :func:`interval_for` says, not as 0 and 1 do."""
    # a second cell of the same rows in the same groups adds nothing
    alone = interval_for([value] * 12, bounds=(0.0, 1.0), kind="bootstrap")
    found = stratified_bootstrap([value] * 24, ["a"] * 12 + ["b"] * 12, groups=[*range(12)] * 2)
    assert bounds(found) == pytest.approx(bounds(alone), abs=1e-6)


def test_a_macro_mean_of_rows_that_are_all_right_is_not_certain() -> None:
    """The likeliest way to fewer right answers is that the cell of four has them: Wilson's limit of 4 of 4, halved."""
    four = 4 / (4 + 1.959964**2)
    found = stratified_bootstrap([1.0] * 16, ["a"] * 4 + ["b"] * 12)
    assert (found.value, found.high, found.n) == (1.0, 1.0, 16)
    assert found.low == pytest.approx((four + 1) / 2, abs=1e-6)
    # each group has a row in both cells, so they may vary together: four groups count as four
    together = stratified_bootstrap([0.0] * 8, ["a"] * 4 + ["b"] * 4, groups=[0, 1, 2, 3] * 2)
    assert together.high == pytest.approx(1 - four, abs=1e-6)


def test_a_macro_mean_of_scores_has_the_variance_of_its_rows() -> None:
    """Two languages of four scores with mean 1/2 and variance .0001 and .0004 by n - 1, far from the ends of the range.

    The error of the mean is sqrt(.0001 / 4 + .0004 / 4) / 2. Satterthwaite's degrees of freedom: (1 + 4)^2 over
    (1^2 + 4^2) / 3 = 4.41, since these scores are less peaked than normal ones.
    """
    from scipy.stats import t

    a, b = (np.array([-1.0, -1.0, 1.0, 1.0]) * math.sqrt(0.75 * v) + 0.5 for v in (0.0001, 0.0004))
    low, value, high = bounds(stratified_bootstrap([*a, *b], ["a"] * 4 + ["b"] * 4))
    quantile = t.ppf(0.975, 75 / 17)
    assert value == pytest.approx(0.5)
    assert value - low == pytest.approx(high - value)
    assert high - value == pytest.approx(quantile * math.sqrt(0.000125) / 2, rel=0.002)


def test_a_range_without_an_end_has_a_bootstrap() -> None:
    rng = np.random.default_rng(2)
    found = stratified_bootstrap(rng.exponential(size=80), ["a"] * 40 + ["b"] * 40, bounds=(0.0, math.inf))
    assert found.method == "stratified bootstrap"
    assert found.low is not None


def test_a_macro_mean_with_a_cell_of_one_row_has_no_interval() -> None:
    found = stratified_bootstrap([1.0] * 99 + [0.0] + [1.0] * 2, ["en"] * 100 + ["ha", "ig"])
    assert (found.value, found.low, found.high) == (pytest.approx(0.99 / 3 + 2 / 3), None, None)
    assert found.reason == "no interval: a single row in cell ha, ig"


def test_a_macro_mean_without_a_range_needs_variation_in_every_cell() -> None:
    found = stratified_bootstrap([3.0, 5.0, 4.0, 7.0, 7.0], ["a"] * 3 + ["b"] * 2, bounds=None)
    assert (found.low, found.reason) == (None, "no interval: no variation in cell b")
    with pytest.raises(MetricError, match="the value 7 is outside 0 to 1"):
        stratified_bootstrap([3.0, 5.0, 4.0, 7.0, 7.0], ["a"] * 3 + ["b"] * 2)


def test_wilson_of_a_given_variance_is_wilsons_for_zeros_and_ones() -> None:
    for successes, n in ((0, 5), (1, 7), (30, 40), (40, 40)):
        share = successes / n
        arrays = (np.array([x]) for x in (share, share * (1 - share) / n, float(n)))
        low, high = score_limits(*arrays, (0.0, 1.0), 1.959963984540054)
        theirs = wilson(successes, n)
        assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_mover_of_two_shares_is_newcombes_interval() -> None:
    # 56 of 70 and 48 of 80: .0524 to .3339 by method 10 of Newcombe (1998, table II); p1 - p2 = p1 + (1 - p2) - 1
    first, second = wilson(56, 70), wilson(80 - 48, 80)
    low, high, value = (np.array([getattr(e, name) for e in (first, second)]) for name in ("low", "high", "value"))
    assert [2 * end - 1 for end in mover(low, high, value, np.eye(2))] == pytest.approx([0.0524, 0.3339], abs=5e-5)
