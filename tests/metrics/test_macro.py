"""Macro means and worst cells, and the limits of bounded scores that they are made of, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mrag_eval.core import MetricError
from mrag_eval.metrics import stratified_bootstrap, wilson, worst_cell
from mrag_eval.metrics._bounded import mover, score_limits
from tests.metrics.test_intervals import bounds


def test_a_macro_mean_of_rows_that_are_all_right_is_not_certain() -> None:
    # Wilson's limits of 4 of 4 and 12 of 12 are z^2 / (n + z^2) from 1; MOVER adds them as standard errors
    z2 = 1.959964**2
    reach = math.hypot(z2 / (4 + z2), z2 / (12 + z2)) / 2
    found = stratified_bootstrap([1.0] * 16, ["a"] * 4 + ["b"] * 12)
    assert (found.value, found.high, found.n) == (1.0, 1.0, 16)
    assert found.low == pytest.approx(1 - reach, abs=1e-6)
    # each group has a row in both cells, so they may vary together: four groups count as four
    together = stratified_bootstrap([0.0] * 8, ["a"] * 4 + ["b"] * 4, groups=[0, 1, 2, 3] * 2)
    assert together.high == pytest.approx(wilson(0, 4).high)


def test_small_languages_that_are_all_right_widen_a_macro_mean() -> None:
    values = [1.0] * 450 + [0.0] * 50 + [1.0] * 20
    cells = ["a"] * 500 + ["b"] * 5 + ["c"] * 5 + ["d"] * 5 + ["e"] * 5
    low, value, high = bounds(stratified_bootstrap(values, cells))
    assert value == pytest.approx(0.98)
    # by hand: 500 rows at .9 reach .0293 down (Wilson), five of five z^2 / (5 + z^2) = .4345, four times; all over 5
    assert low == pytest.approx(0.98 - math.sqrt(0.0293**2 + 4 * 0.4345**2) / 5, abs=1e-4)
    # the small languages cannot rise, so only the large one reaches up, as a bootstrap of it does
    assert high == pytest.approx(0.98 + 0.0234 / 5, abs=2e-3)


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
        low, high = score_limits(*arrays, (0.0, 1.0), 0.95)
        theirs = wilson(successes, n)
        assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_mover_of_two_shares_is_newcombes_interval() -> None:
    # 56 of 70 and 48 of 80: .0524 to .3339 by method 10 of Newcombe (1998, table II); p1 - p2 = p1 + (1 - p2) - 1
    first, second = wilson(56, 70), wilson(80 - 48, 80)
    low, high, value = (np.array([getattr(e, name) for e in (first, second)]) for name in ("low", "high", "value"))
    assert [2 * end - 1 for end in mover(low, high, value, np.eye(2))] == pytest.approx([0.0524, 0.3339], abs=5e-5)


def test_the_worst_language_has_limits_that_hold_for_all_languages_at_once() -> None:
    values = [1.0] * 90 + [0.0] * 10 + [1.0] * 40 + [0.0] * 10 + [1.0] * 4 + [0.0] + [None]
    cells = ["en"] * 100 + ["ha"] * 50 + ["ig"] * 5 + ["yo"]
    found = worst_cell(values, cells)
    each = 0.95 ** (1 / 4)
    assert found.cells["ha"] == wilson(40, 50, each)
    assert (found.cell, found.score.value) == ("ha", 0.8)
    # the lowest of the limits: Igbo's five rows could hide a lower score, and no language's upper limit is below ha's
    assert found.score.low == wilson(4, 5, each).low
    assert found.score.high == wilson(40, 50, each).high
    assert found.cells["yo"].value is None
    assert worst_cell(values, cells, lower_is_better=True).cell == "en"
    assert worst_cell([1.0, 1.0, 0.5], ["a", "a", "b"]).score.reason == "a cell has no interval"
    with pytest.raises(MetricError, match="no row is scored"):
        worst_cell([None], ["en"])
    with pytest.raises(MetricError, match="1 values but 2 cells"):
        worst_cell([1.0], ["en", "ha"])


def test_the_worst_score_is_no_higher_than_the_upper_limit_of_any_language() -> None:
    # two rows may be of a language with 90%, but sixty of a hundred are not: the lowest true score is below their limit
    values = [1.0, 0.0] + [1.0] * 60 + [0.0] * 40
    found = worst_cell(values, ["a"] * 2 + ["b"] * 100)
    assert found.cell == "a"
    assert (found.score.low, found.score.high) == (found.cells["a"].low, found.cells["b"].high)


def test_a_t_interval_of_a_few_rows_ends_at_the_range() -> None:
    # 5 of 6: t(2) standard errors of 1 / 6 reach up to 1.55
    assert stratified_bootstrap([1.0, 1.0, 0.0, 1.0, 1.0, 1.0], ["a"] * 3 + ["b"] * 3).high == 1.0
