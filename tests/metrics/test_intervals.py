"""Intervals compared with scipy; degenerate data, clusters, strata, bad input."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import (
    Estimate,
    _resampling,
    bootstrap_mean,
    bootstrap_statistic,
    cluster_interval,
    interval_for,
    stratified_bootstrap,
    wilson,
)
from mrag_eval.platform import MetricError


def bounds(estimate: Estimate) -> tuple[float, float, float]:
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.value, estimate.high


@given(st.integers(0, 300), st.integers(1, 300), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_the_closed_form(successes: int, n: int, confidence: float) -> None:
    from statistics import NormalDist

    if successes > n:
        successes, n = n, successes
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    found = wilson(successes, n, confidence)
    assert found == Estimate(p, pytest.approx(centre - half), pytest.approx(centre + half), n, "Wilson")
    low, value, high = bounds(found)
    assert 0 <= low <= value <= high <= 1


def test_bca_is_scipys() -> None:
    from scipy.stats import bootstrap

    values = np.random.default_rng(1).exponential(size=150)
    theirs = bootstrap((values,), np.mean, n_resamples=40_000, random_state=np.random.default_rng(2), batch=2000)
    low, value, high = bounds(bootstrap_mean(values, n_resamples=40_000, seed=3, expand=False))
    assert value == pytest.approx(values.mean(), abs=1e-12)
    # two Monte Carlo quantiles of the same distribution
    assert low == pytest.approx(theirs.confidence_interval.low, abs=0.01)
    assert high == pytest.approx(theirs.confidence_interval.high, abs=0.01)


def test_expanded_interval_is_wider() -> None:
    values = np.random.default_rng(1).exponential(size=40)
    plain, wide = bounds(bootstrap_mean(values, expand=False)), bounds(bootstrap_mean(values))
    assert wide[0] < plain[0]
    assert wide[2] > plain[2]


def test_few_rows_get_a_t_interval() -> None:
    values = [0.2, 0.4, 0.1, 0.8, 0.5]
    found = bootstrap_mean(values)
    assert "jackknife t" in found.method
    # the jackknife standard error of a mean is s / sqrt(n); these values are less peaked than normal ones: df = 4
    from scipy.stats import t

    half = t.ppf(0.975, 4) * np.std(values, ddof=1) / math.sqrt(5)
    assert bounds(found) == pytest.approx((0.4 - half, 0.4, 0.4 + half))


def test_repeated_values_resample_as_single_rows_do() -> None:
    # few distinct values are drawn as multinomial counts, many as rows: the distribution is the same
    rng = np.random.default_rng(4)
    values = rng.integers(0, 4, size=400) / 3
    jittered = values + rng.normal(scale=1e-9, size=400)
    assert bounds(bootstrap_mean(values, n_resamples=40_000)) == pytest.approx(
        bounds(bootstrap_mean(jittered, n_resamples=40_000)), abs=0.002
    )


def test_many_rows_are_resampled_in_blocks() -> None:
    values = np.random.default_rng(5).exponential(size=40_000)
    low, value, high = bounds(bootstrap_mean(values, n_resamples=4000))
    error = 1.96 * values.std() / math.sqrt(len(values))
    assert value == pytest.approx(values.mean(), abs=1e-12)
    assert (value - low, high - value) == pytest.approx((error, error), rel=0.1)


def test_clusters_widen_the_interval_and_keep_the_plain_mean() -> None:
    rng = np.random.default_rng(6)
    values = np.repeat(rng.normal(size=60), 5)  # each cluster repeats one value five times
    groups = np.repeat(np.arange(60), 5).tolist()
    rows, clusters = bounds(bootstrap_mean(values)), bounds(cluster_interval(values, groups))
    assert rows[1] == pytest.approx(clusters[1], abs=1e-12)
    ratio = (clusters[2] - clusters[0]) / (rows[2] - rows[0])
    assert ratio == pytest.approx(math.sqrt(5), rel=0.1)


def test_unequal_clusters_weigh_by_their_rows() -> None:
    values, groups = [1.0, 0.0, 0.0, 0.0], ["a", "b", "b", "b"]
    assert cluster_interval(values, groups).value == 0.25


def test_macro_mean_weighs_cells_equally() -> None:
    values = [1.0] * 90 + [0.0] * 5 + [1.0] * 5
    cells = ["big"] * 90 + ["small"] * 10
    low, value, high = bounds(stratified_bootstrap(values, cells))
    assert value == pytest.approx(0.75)
    # all the uncertainty comes from the small cell: Wilson's interval of 5 of 10, halved by the average
    small = bounds(wilson(5, 10))
    assert high == pytest.approx(0.5 + small[2] / 2, rel=0.01)
    assert low == pytest.approx(0.5 + small[0] / 2, rel=0.03)


def test_macro_mean_over_groups_that_reach_over_cells() -> None:
    rng = np.random.default_rng(7)
    base = rng.normal(size=100)
    # one question asked in three languages, always with the same outcome
    values, cells = np.repeat(base, 3), ["de", "en", "zh"] * 100
    groups = np.repeat(np.arange(100), 3).tolist()
    low, value, high = bounds(stratified_bootstrap(values, cells, groups=groups, bounds=None))
    assert value == pytest.approx(base.mean())
    assert high - low == pytest.approx(2 * 1.984 * base.std(ddof=1) / 10, rel=0.1)
    rows = bounds(stratified_bootstrap(values, cells, bounds=None))
    assert rows[2] - rows[0] < 0.7 * (high - low)


def test_groups_within_cells_stay_in_their_cell() -> None:
    rng = np.random.default_rng(8)
    found = stratified_bootstrap(
        rng.random(120), ["a"] * 60 + ["b"] * 60, groups=np.repeat(np.arange(40), 3).tolist(), n_resamples=500
    )
    assert found.method == "stratified cluster score"
    assert found.reason is None


def test_degenerate_data() -> None:
    assert bootstrap_mean([]) == Estimate(None, None, None, 0, "BCa bootstrap", "no scored rows")
    assert wilson(0, 0).reason == "no scored rows"
    one = bootstrap_mean([0.4])
    assert (one.value, one.low, one.high) == (0.4, None, None)
    assert one.reason == "no interval from 1 row"
    same = bootstrap_mean([0.1] * 30)
    assert (same.low, same.high, same.value) == (None, None, pytest.approx(0.1))
    assert same.reason == "no interval: the rows show no variation"
    lone = cluster_interval([0.0, 1.0, 1.0], ["g", "g", "g"])
    assert (lone.value, lone.low) == (pytest.approx(2 / 3), None)
    assert lone.reason == "no interval from 1 cluster"


def test_unscored_rows_are_left_out_and_named_where_a_cell_is_empty() -> None:
    assert bootstrap_mean([None, 0.5, 0.7, None]).n == 2
    found = stratified_bootstrap([1.0, 0.0, None], ["a", "a", "b"])
    assert (found.value, found.reason) == (None, "no scored row in cell b")
    pairs = [("ar", "en"), ("zh", "en"), ("en", "ar"), ("en", "zh")]
    found = stratified_bootstrap([1.0, None, 0.0, None], pairs)
    assert found.reason == "no scored row in cell en->zh, zh->en"
    lonely = stratified_bootstrap([1.0, 0.0, 0.5], ["a", "a", "b"])
    assert "single row" in (lonely.reason or "")


def test_a_statistic_undefined_in_many_resamples_has_no_interval() -> None:
    def ratio(totals: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(totals[:, 1] > 0, totals[:, 0] / totals[:, 1], np.nan)

    sums = np.zeros((40, 2))
    sums[:, 0] = 1
    sums[0, 1] = 1  # a resample without the only row that carries the denominator cannot be scored
    found = bootstrap_statistic(sums, ratio, n=40)
    assert found.value == 40
    assert found.low is None
    assert "undefined in" in (found.reason or "")


def test_a_statistic_undefined_without_one_unit_has_no_interval() -> None:
    def ratio(totals: Any) -> Any:
        return np.where(totals[:, 1] > 1.5, totals[:, 0], np.nan)

    found = bootstrap_statistic(np.array([[1.0, 1.0]] * 2 + [[2.0, 0.0]] * 4), ratio, n=6)
    assert (found.value, found.low, found.high) == (10, None, None)
    assert found.reason == "no interval from 6 rows"


def test_tiny_values_do_not_underflow() -> None:
    small = bootstrap_mean([v * 1e-90 for v in (0.0, 1.0, 3.0, 2.0) * 5])
    assert small.value == pytest.approx(1.5e-90)
    # a spread below any resolution counts as none, but does not crash
    assert small.reason == "no interval: the rows show no variation"


def test_the_interval_is_chosen_by_the_values() -> None:
    assert interval_for([1, 0, 1, None]) == wilson(2, 3)
    assert interval_for([True, False]).method == "Wilson"
    assert interval_for([0.5, 0.2, 1.0] * 10).method == "BCa bootstrap"
    assert interval_for([1, 0, 1] * 20, groups=[i // 2 for i in range(60)]).method == "jackknife over groups, Wilson"
    free = interval_for([1, 0, 1] * 20, groups=[i // 2 for i in range(60)], bounds=(0.0, math.inf))
    assert free.method == "jackknife over groups, t"
    assert interval_for([1, 0, 1], groups=["a", "b", "c"]).method == "Wilson"
    assert interval_for([1, 0, 1] * 9, kind="bootstrap").method == "BCa bootstrap"


def test_zeros_and_ones_are_shares_only_in_the_range_of_shares() -> None:
    """A number of countries and a difference may be 0 or 1 wherever they were measured, and are no shares."""
    countries = interval_for([1, 1, 1], bounds=(0.0, math.inf))
    assert (countries.value, countries.low, countries.high) == (1.0, None, None)
    assert countries.reason == "no interval: the rows show no variation"
    assert interval_for([1, 0, 1] * 10, bounds=(0.0, math.inf)).method == "BCa bootstrap"
    difference = interval_for([0, 0, 0], bounds=(-1.0, 1.0))
    assert difference.low is not None
    assert difference.low == pytest.approx(-(difference.high or 0))
    assert difference.method == "Wilson, range -1 to 1"


VALUES = st.lists(st.floats(0, 1), min_size=2, max_size=40)


@given(VALUES)
def test_limits_enclose_the_mean_and_stay_in_the_range_of_the_data(values: list[float]) -> None:
    for found in (bootstrap_mean(values, n_resamples=200, bounds=(0.0, 1.0)), bootstrap_mean(values, n_resamples=200)):
        assert found.value == pytest.approx(sum(values) / len(values), abs=1e-12)
        assert (found.low is None) == (found.reason == "no interval: the rows show no variation")
    low, value, high = bounds(bootstrap_mean(values, n_resamples=200, bounds=(0.0, 1.0)))
    assert 0.0 <= low <= value + 1e-12
    assert 1.0 >= high >= value - 1e-12
    assert high - low > 0.05
    if found.method == "BCa bootstrap" and found.low is not None:
        low, _, high = bounds(found)
        assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12


@given(VALUES, st.randoms(use_true_random=False))
def test_the_value_does_not_depend_on_the_order(values: list[float], rng: Any) -> None:
    groups = [i % 3 for i in range(len(values))]
    order = list(range(len(values)))
    rng.shuffle(order)
    before = cluster_interval(values, groups)
    after = cluster_interval([values[i] for i in order], [groups[i] for i in order])
    assert after.value == pytest.approx(before.value, abs=1e-12)
    if before.low is not None:
        assert (after.low, after.high) == (pytest.approx(before.low, abs=1e-9), pytest.approx(before.high, abs=1e-9))


def test_one_seed_one_interval() -> None:
    values = np.random.default_rng(0).random(50)
    assert bootstrap_mean(values, seed=5) == bootstrap_mean(values, seed=5)
    assert bootstrap_mean(values, seed=5) != bootstrap_mean(values, seed=6)
    assert bootstrap_mean(values, seed=np.random.default_rng(5)) == bootstrap_mean(values, seed=5)


def test_resampled_totals_are_unbiased() -> None:
    sums = np.random.default_rng(0).random((50, 2))
    totals = _resampling.resampled_totals(sums, 20_000, np.random.default_rng(1))
    assert totals.mean(axis=0) == pytest.approx(sums.sum(axis=0), rel=0.01)
    assert totals.var(axis=0) == pytest.approx(50 * sums.var(axis=0), rel=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_resampled_totals_are_those_of_the_rows_drawn(seed: int) -> None:
    # the numbers of published intervals: one draw for each unit of each resample, in order, whatever the blocks
    sums = np.random.default_rng(seed).random((30 + 150 * seed, 1 + 9 * seed))
    drawn = np.random.default_rng(seed).integers(0, len(sums), size=(300, len(sums)))
    plain = np.array([sums[rows].sum(axis=0) for rows in drawn])
    found = _resampling.resampled_totals(sums, 300, np.random.default_rng(seed))
    assert np.allclose(found, plain, rtol=1e-12, atol=0)


def test_resampled_totals_of_few_distinct_rows_are_those_of_their_counts() -> None:
    kinds, numbers = np.array([[3.0, 1.0], [0.25, 2.0], [7.0, 5.0]]), np.array([200, 130, 70])
    sums = np.random.default_rng(4).permutation(np.repeat(kinds, numbers, axis=0))
    place = np.argsort(kinds @ np.random.default_rng(0).random(2))
    counts = np.random.default_rng(5).multinomial(400, numbers[place] / 400, size=90_000)
    found = _resampling.resampled_totals(sums, 90_000, np.random.default_rng(5))
    assert np.allclose(found, counts @ kinds[place], rtol=1e-12, atol=0)


def test_sums_of_units_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(2)
    columns, groups = rng.random((200, 5)), np.r_[np.arange(40), rng.integers(0, 40, 160)]
    plain = np.zeros((40, 5))
    for row, group in zip(columns, groups, strict=True):
        plain[group] += row
    assert np.array_equal(_resampling.per_unit_sums(columns, groups, 40), plain)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: bootstrap_mean([0.1, math.nan]), r"values\[1\] is nan"),
        (lambda: bootstrap_mean([None, math.inf]), r"values\[1\] is inf"),
        (lambda: bootstrap_mean(np.array([0.1, np.nan])), r"values\[1\] is nan"),
        (lambda: bootstrap_mean(["a"]), "not a number"),  # type: ignore[list-item]
        (lambda: bootstrap_mean([[1.0], [2.0]]), "one number per row"),
        (lambda: bootstrap_mean([0.1, 0.2], confidence=95), "not between 0 and 1"),
        (lambda: bootstrap_mean([0.1, 0.2], n_resamples=10), "too few"),
        (lambda: cluster_interval([0.1, 0.2], ["a"]), "2 values but 1 groups"),
        (lambda: stratified_bootstrap([0.1, 0.2], ["a"]), "2 values but 1 cells"),
        (lambda: stratified_bootstrap([0.1, 0.2], ["a", "a"], groups=["g"]), "1 groups"),
        (lambda: wilson(3, 2), "3 successes in 2"),
        (lambda: wilson(0.5, 2), "whole numbers"),  # type: ignore[arg-type]
        (lambda: interval_for([0.5, 1], kind="wilson"), "0 and 1"),
        (lambda: interval_for([0.5, 1], kind="cluster"), "needs groups"),
        (lambda: interval_for([0.5, 1], kind="wilsen"), "did you mean 'wilson'"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        call()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rows_that_are_all_right_or_all_wrong_do_not_prove_it(value: float) -> None:
    """20 equal rows of 5 groups have the interval of 5 independent rows, by hand 5 / (5 + 1.96^2) = .566 from
    the end.
    """
    found = interval_for([value] * 20, groups=[i % 5 for i in range(20)])
    assert (found.value, found.n, found.method) == (value, 20, "Wilson over clusters")
    width = 1 - 5 / (5 + 1.959964**2)
    assert (found.low, found.high) == pytest.approx((0, width) if value == 0 else (1 - width, 1), abs=1e-6)


def test_the_interval_of_a_share_from_few_clusters_stays_a_share() -> None:
    """Three clusters of two with shares 1, 1 and 1/2: mean 5/6, and leaving one out gives 3/4, 3/4 and 1.

    2/3 of the squares of -1/12, -1/12 and 1/6 is V = 1/36; t(2) = 4.3027 standard errors reach beyond 1. The variance
    is that of 5/6 x 1/6 / V = 5 independent rows, whose Wilson interval with t in place of z ends at .9931. The degrees
    of freedom are G - 1 = 2: the squares are 1, 1 and 4 of 6, and 2 / (18/36 - 1/3) = 12 is more.
    """
    values, groups = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0], ["a", "a", "b", "b", "c", "c"]
    free = cluster_interval(values, groups)
    assert bounds(free) == pytest.approx((5 / 6 - 4.302653 / 6, 5 / 6, 5 / 6 + 4.302653 / 6), abs=1e-6)
    t2 = 4.302653**2
    centre, reach = 5 / 6 + t2 / 10, 4.302653 * math.sqrt(1 / 36 + t2 / 100)
    wanted = ((centre - reach) / (1 + t2 / 5), 5 / 6, (centre + reach) / (1 + t2 / 5))
    for found in (interval_for(values, groups=groups), interval_for(values, groups=groups, bounds=(0.0, 1.0))):
        assert bounds(found) == pytest.approx(wanted, abs=1e-6)
    assert wanted[2] < 1


def test_an_estimate_without_limits_has_none_within_bounds() -> None:
    assert interval_for([0.5], bounds=(0.0, 1.0)).low is None


def test_quantiles_of_all_columns_at_once_are_numpys() -> None:
    rng = np.random.default_rng(1)
    rows = np.sort(np.where(rng.random((6, 201)) < 0.2, np.nan, rng.normal(size=(6, 201))), axis=1)
    counts = np.sum(~np.isnan(rows), axis=1)
    levels = np.array([0.0, 0.025, 0.5, 0.7, 0.975, 1.0])
    found = _resampling._quantiles(rows, counts, levels)
    for row, count, level, value in zip(rows, counts, levels, found, strict=True):
        assert value == np.quantile(row[:count], level)


@pytest.mark.parametrize("n", [1, 2, 7, 40, 1001, 250_000])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_wilson_is_that_of_scipy(n: int, confidence: float) -> None:
    from scipy.stats import binomtest

    for successes in {0, 1, n // 3, n - 1, n}:
        theirs = binomtest(successes, n).proportion_ci(confidence, method="wilson")
        ours = wilson(successes, n, confidence)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12, abs=1e-15)


def test_a_missing_value_is_what_its_reader_says() -> None:
    assert (Estimate(0.5).or_else(0.0), Estimate(0.0).or_else(1.0), Estimate(None).or_else(0.0)) == (0.5, 0.0, 0.0)
    assert Estimate(None).or_else("none") == "none"


def test_no_code_takes_a_missing_value_for_a_number() -> None:
    """``estimate.value or 0`` turns what is not known into a score, and a score of 0 into what is not known."""
    root = Path(__file__).parents[2]
    found = []
    for path in (
        path for room in ("mrag_eval", "metrics", "retrievers") for path in sorted((root / room).rglob("*.py"))
    ):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.Or):
                continue
            first, last = node.values[0], node.values[-1]
            number = isinstance(last, ast.Constant) and isinstance(last.value, int | float)
            if number and isinstance(first, ast.Attribute) and first.attr == "value":
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert found == []
