"""Paired tests of many cells: exact shares, betting, the joint bootstrap, corrections, and the bounds implied."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from mrag_eval.metrics import PairedCell, margin_tests, paired_tests
from mrag_eval.metrics._joint_bootstrap import critical, exceedance
from mrag_eval.metrics._paired_shares import BoundedMean, PairedShares, score
from mrag_eval.platform import MetricError

CORRECTIONS = ("holm", "bh", "none")


def shares(lost: int, gained: int, n: int) -> tuple[list[float], list[float]]:
    before = [1.0] * lost + [0.0] * gained + [1.0] * (n - lost - gained)
    return before, [0.0] * lost + [1.0] * gained + [1.0] * (n - lost - gained)


# Shares


@pytest.mark.parametrize("n", [5, 12, 20])
@pytest.mark.parametrize("margin", [0.0, 0.05, 0.2, -0.1])
def test_the_test_of_shares_holds_its_level_exactly(n: int, margin: float) -> None:
    """Every outcome of n rows by hand: at no share of rises is a p-value at most a level more likely than that."""
    outcomes = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    p_values = np.array([PairedShares(n, b, c).p_value(margin) for b, c in outcomes])
    ways = np.array([math.comb(n, b) * math.comb(n - b, c) for b, c in outcomes], dtype=float)
    b, c = np.array(outcomes, dtype=float).T
    low, high = max(0.0, -margin), (1 - margin) / 2
    for share in np.linspace(low, high, 301):
        chance = ways * (share + margin) ** b * share**c * np.maximum(1 - 2 * share - margin, 0.0) ** (n - b - c)
        for level in (0.2, 0.05, 0.01, 1e-4):
            assert chance[p_values <= level].sum() <= level * 1.002, (share, level)


@pytest.mark.parametrize(("lost", "gained", "n", "margin"), [(12, 3, 100, 0.02), (30, 10, 200, 0.05), (7, 2, 60, 0.0)])
def test_shares_are_ordered_by_the_score_of_tango(lost: int, gained: int, n: int, margin: float) -> None:
    z = float(score(np.array([lost]), np.array([gained]), n, margin)[0])
    # the likeliest share of rises if the drop is the margin, by a search
    rises = np.linspace(max(0.0, -margin) + 1e-6, (1 - margin) / 2 - 1e-6, 200_001)
    rest = n - lost - gained
    likelihood = lost * np.log(rises + margin) + gained * np.log(rises) + rest * np.log1p(-2 * rises - margin)
    share = rises[likelihood.argmax()]
    error = math.sqrt(n * (2 * share + margin * (1 - margin)))
    assert z == pytest.approx((lost - gained - n * margin) / error, rel=1e-3)
    # the exact p-value is near the normal one
    assert PairedShares(n, lost, gained).p_value(margin) == pytest.approx(norm.sf(z), rel=0.5)


@pytest.mark.parametrize("n", [5, 8, 30])
def test_rows_that_all_change_alike_are_not_certain(n: int) -> None:
    (found,) = paired_tests([PairedCell([1.0] * n, [0.0] * n)])
    # all of n rows are lost with a chance of ((1 + d) / 2)^n at most, if the drop is d
    assert found.low == pytest.approx(2 * 0.025 ** (1 / n) - 1, abs=1e-4)
    assert (found.difference, found.high) == (1.0, 1.0)
    (found,) = paired_tests([PairedCell([1.0] * n, [1.0] * n)])
    assert (found.difference, found.p_value) == (0.0, 1.0)
    assert found.low == pytest.approx(-(found.high or 0))


def test_an_unpaired_test_on_paired_data_misses_a_real_difference() -> None:
    # 200 questions, 12 gained and 1 lost: the z-test over two independent samples that other tools use finds nothing
    first, second = ([*run[:120], *[0.0] * 80] for run in shares(12, 1, 200))
    p_a, p_b = np.mean(first), np.mean(second)
    z = (p_a - p_b) / math.sqrt(p_a * (1 - p_a) / 200 + p_b * (1 - p_b) / 200)
    assert 2 * norm.sf(z) > 0.2
    (found,) = paired_tests([PairedCell(first, second)])
    assert found.p_value is not None
    assert found.p_value < 0.01


def test_thousands_of_changes_one_way_have_a_p_above_zero() -> None:
    (found,) = margin_tests([PairedCell([1.0] * 2000, [0.0] * 2000)])
    assert found.p_value is not None
    assert 0 < found.p_value < 1e-300


# Betting


def test_betting_holds_its_level_for_rare_large_losses() -> None:
    """One row in fifty gains .98, all others lose .02: the mean is 0, and 30 rows show only losses half of the time."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(2_000):
        drops = np.where(rng.random(30) < 0.02, -0.98, 0.02)
        found.append(BoundedMean(drops, np.ones(30), 1.0).p_value(0.0))
    assert np.mean(np.array(found) <= 0.05) <= 0.05


def test_betting_needs_no_variation() -> None:
    drops = np.full(12, 1.0)
    stakes = (np.arange(1, 21) / 20) ** 2
    # each row wins (1 - 0) / (1 + 0) of the stake
    assert BoundedMean(drops, np.ones(12), 1.0).p_value(0.0) == pytest.approx(1 / np.mean((1 + stakes) ** 12))


# The bootstrap


def test_a_deviate_passes_exactly_if_its_p_value_is_at_most_the_level() -> None:
    rng = np.random.default_rng(1)
    draws = rng.standard_normal(999)
    for level in (0.001, 0.01, 0.049, 0.05, 0.5):
        passed = critical(draws, np.abs(draws), level)
        for deviate in (*draws, *(draws + 1e-9), 9.0):
            assert (exceedance(deviate, draws, np.abs(draws)) <= level) == (deviate > passed)


def test_a_single_mean_is_near_the_t_test() -> None:
    rng = np.random.default_rng(2)
    drops = rng.normal(0.03, 0.2, 300).clip(-1, 1)
    cell = PairedCell(np.maximum(drops, 0).tolist(), np.maximum(-drops, 0).tolist())
    (found,) = margin_tests([cell])
    t = drops.mean() / (drops.std(ddof=1) / math.sqrt(300))
    # nine tenths of the level are the bootstrap's
    assert found.p_value == pytest.approx(student.sf(t, 299) / 0.9, rel=0.15)
    (both,) = paired_tests([cell])
    low, high = student.interval(0.955, 299, drops.mean(), drops.std(ddof=1) / math.sqrt(300))
    assert (both.low, both.high) == (pytest.approx(low, abs=0.002), pytest.approx(high, abs=0.002))


def test_rows_of_a_unit_are_no_more_evidence_than_one() -> None:
    rng = np.random.default_rng(3)
    drops = rng.normal(0.05, 0.2, 60).clip(-1, 1)
    once = PairedCell(np.maximum(drops, 0).tolist(), np.maximum(-drops, 0).tolist(), [str(i) for i in range(60)])
    five = PairedCell(list(once.first) * 5, list(once.second) * 5, [str(i) for i in range(60)] * 5)
    single, repeated = margin_tests([once])[0], margin_tests([five])[0]
    assert (repeated.units, repeated.n) == (60, 300)
    assert repeated.p_value == pytest.approx(single.p_value, rel=1e-9)
    assert repeated.lower == pytest.approx(single.lower, abs=1e-9)


# Families, at random


@st.composite
def families(draw: Any) -> list[PairedCell]:
    """Some cells of shares and of means, in units or not, over common or own questions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cells = []
    for _ in range(draw(st.integers(1, 6))):
        n = int(rng.integers(2, 80))
        kind, bounds = rng.integers(0, 5), (0.0, 1.0)
        first = rng.random(n) if kind else (rng.random(n) < rng.random()).astype(float)
        second = np.clip(first - rng.random() * rng.random(n) * (rng.random(n) < rng.random()), 0, 1)
        if kind in (0, 1):
            first, second = np.round(first), np.round(second)
        if kind == 2:
            second = np.clip(first - 0.1, 0, 1)
        if kind == 3:
            first, second, bounds = first * 40, second * 40, (0.0, math.inf)
        gone = rng.random((2, n)) < rng.choice([0.0, 0.1])
        runs = [np.where(out, None, run).tolist() for run, out in zip((first, second), gone, strict=True)]
        size = int(rng.choice([1, 1, 3]))
        units = None if rng.random() < 0.3 else [f"q{i // size}" for i in range(n)]
        scale = 40 if kind == 3 else 1
        cells.append(PairedCell(runs[0], runs[1], units, float(scale * rng.choice([0.0, 0.02, 0.2])), bounds))
    return cells


@given(families(), st.sampled_from(CORRECTIONS), st.sampled_from([0.05, 0.2, 0.01]))
def test_a_drop_is_shown_if_and_only_if_its_bound_excludes_what_is_allowed(
    cells: list[PairedCell], correction: Any, alpha: float
) -> None:
    for cell, found in zip(
        cells, margin_tests(cells, alpha=alpha, correction=correction, n_resamples=400), strict=True
    ):
        if found.p_value is None:
            assert (found.shown, found.reason is not None) == (False, True)
            continue
        assert found.lower is not None
        assert found.upper is not None
        assert found.lower <= found.upper
        if found.possible:
            assert found.p_adjusted is not None
            assert found.shown == (found.p_adjusted <= alpha) == (found.lower > cell.margin)
            if correction == "none":
                assert found.p_adjusted == found.p_value
        else:
            assert (found.shown, found.p_adjusted) == (False, None)


@pytest.mark.slow
@given(families(), st.sampled_from([0.95, 0.8]))
def test_a_difference_has_a_small_p_if_and_only_if_its_interval_excludes_none(
    cells: list[PairedCell], confidence: float
) -> None:
    for found in paired_tests(cells, confidence=confidence, n_resamples=400):
        if found.p_value is not None:
            assert found.low is not None
            assert found.high is not None
            assert (found.p_value <= 1 - confidence + 1e-12) == (not found.low <= 0 <= found.high)
            assert found.p_adjusted is not None
            assert found.p_adjusted >= found.p_value - 1e-12


@pytest.mark.slow
@given(families(), st.sampled_from(CORRECTIONS))
def test_the_worst_run_fails_in_every_cell_in_which_it_could(cells: list[PairedCell], correction: Any) -> None:
    """Whatever was rejected of the worst second run alone depends on the first run only, and is rejected now."""
    bounded = [cell for cell in cells if cell.bounds is not None and math.isfinite(cell.bounds[1])]
    worst = [
        PairedCell(c.first, [None if v is None else 0.0 for v in c.first], c.units, c.margin, c.bounds) for c in bounded
    ]
    found = margin_tests(worst, correction=correction, n_resamples=400)
    assert all(one.shown == one.possible for one in found if one.p_value is not None)
    # the same cells are possible whatever the second run had
    seen = margin_tests(bounded, correction=correction, n_resamples=400)
    for a, b in zip(found, seen, strict=True):
        if a.p_value is not None and b.p_value is not None:
            assert a.possible == b.possible


def test_a_cell_that_cannot_fail_takes_nothing_from_the_others() -> None:
    cell = PairedCell(*shares(9, 0, 100))
    hopeless = PairedCell([1.0] * 3, [1.0] * 3)
    (alone,) = margin_tests([cell])
    found = margin_tests([cell, *[hopeless] * 200])
    assert found[0].p_adjusted == alone.p_adjusted
    assert found[0].shown
    assert {(one.possible, one.shown) for one in found[1:]} == {(False, False)}


@pytest.mark.slow
def test_no_number_of_tests_puts_a_collapse_out_of_reach() -> None:
    """Five metrics of 119 questions in ten languages and their pairs, of which every answer got wrong."""
    rng = np.random.default_rng(5)
    cells = []
    for _ in range(5):
        values = rng.beta(3, 1, 1190)
        for language in (None, *range(10)):
            for document in (None, *range(10)) if language is not None else (None,):
                rows = np.arange(1190)
                rows = rows if language is None else rows[rows % 10 == language]
                rows = rows if document is None else rows[rows // 10 % 10 == document]
                first = values[rows].tolist()
                cells.append(PairedCell(first, [0.0] * len(rows), [f"q{i}" for i in rows], 0.02))
    found = margin_tests(cells)
    assert len(cells) == 555
    assert all(one.shown for one in found if one.n >= 100)
    assert all(one.shown == one.possible for one in found)


# Units that lose everything, and values without a range


def lost_units(lost: int, units: int, size: int, part: float = 1.0) -> PairedCell:
    """Return units of right answers of which ``lost`` lose a ``part`` of their rows."""
    second = [float(u >= lost or i >= part * size) for u in range(units) for i in range(size)]
    return PairedCell([1.0] * len(second), second, [str(u) for u in range(units) for _ in range(size)])


@pytest.mark.parametrize("size", [1, 2, 4, 10])
def test_units_that_lose_all_their_rows_have_the_exact_test_of_shares(size: int) -> None:
    for lost in range(12):
        (found,) = margin_tests([lost_units(lost, 100, size)])
        assert found.method == PairedShares.method
        assert found.p_value == pytest.approx(PairedShares(100, lost, 0).p_value(0.0))
    (nine,) = margin_tests([lost_units(9, 100, 4)])
    assert nine.p_value == pytest.approx(0.0018, abs=1e-4)
    # one row less is one unit of another size, and no other test
    cell = lost_units(9, 100, 4)
    (short,) = margin_tests([PairedCell(cell.first, [*cell.second[:-1], None], cell.units)])
    assert short.p_value == pytest.approx(nine.p_value, rel=0.02)


def test_units_that_lose_a_part_of_their_rows_keep_the_test_of_means() -> None:
    (found,) = margin_tests([lost_units(9, 100, 4, 0.5)])
    assert found.method == "betting on bounded values"


@settings(max_examples=20)
@given(st.integers(20, 150), st.sampled_from([1, 4]), st.sampled_from([0.0, 0.02, 0.05]), st.integers(0, 5))
def test_one_more_lost_unit_never_helps(units: int, size: int, margin: float, gained: int) -> None:
    """From no lost unit to all of them, the p-value never rises, nor does a bound fall."""
    last: tuple[float, float, float] | None = None
    for lost in range(0, units - gained, max(1, units // 25)):
        first = [float(u >= gained) for u in range(units) for _ in range(size)]
        second = [float(u < gained or u >= gained + lost) for u in range(units) for _ in range(size)]
        names = [str(u) for u in range(units) for _ in range(size)]
        (found,) = margin_tests([PairedCell(first, second, names, margin)])
        assert found.p_value is not None
        now = (-found.p_value, found.lower or 0.0, found.upper or 0.0)
        if last is not None:
            assert all(b >= a - 1e-6 for a, b in zip(last, now, strict=True)), (lost, last, now)
        last = now


def test_values_without_a_range_can_stay_and_can_all_change() -> None:
    same, risen = PairedCell([7.0] * 30, [7.0] * 30, bounds=None), PairedCell([7.0] * 30, [5.0] * 30, bounds=None)
    kept, fell = margin_tests([same, risen])
    assert (kept.p_value, kept.shown, kept.upper) == (1.0, False, math.inf)
    assert fell.shown
    assert fell.p_value == pytest.approx(0.5**30)


def test_rows_that_lose_most_may_be_none_of_the_sample() -> None:
    """Two rows in a hundred lose .8: without them the others say nothing of a drop of exactly this mean."""
    rng = np.random.default_rng(8)
    said = []
    for _ in range(300):
        drops = np.where(rng.random(100) < 0.02, 0.8, rng.normal(0, 0.02, 100))
        cell = PairedCell(np.maximum(drops, 0).tolist(), np.maximum(-drops, 0).tolist(), margin=0.016)
        (found,) = margin_tests([cell], n_resamples=400)
        said.append(found.upper is not None and found.upper < 0.016)
    assert np.mean(said) <= 0.06


@pytest.mark.parametrize(
    "cell", [PairedCell(*shares(4, 2, 200)), lost_units(0, 60, 5), PairedCell([0.5] * 80, [0.5] * 80)]
)
def test_the_detectable_drop_is_found_in_four_of_five_runs(cell: PairedCell) -> None:
    """Rows or units that lose everything, at the drop that is named, are found by the same test."""
    (found,) = margin_tests([cell])
    assert found.detectable is not None
    n = found.units
    gained = sum(1 for x, y in zip(cell.first, cell.second, strict=True) if y > x)
    rng = np.random.default_rng(9)
    lost = rng.binomial(n, found.detectable + gained / n, 400)
    power = np.mean([PairedShares(n, int(k), gained).p_value(0.0) <= 0.05 for k in lost])
    assert power == pytest.approx(0.8, abs=0.08)


# What is refused


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (PairedCell([1.0], [1.0, 0.0]), "1 values of one run but 2 of the other"),
        (PairedCell([1.0, 0.0], [1.0, 0.0], ["a"]), "2 values but 1 units"),
        (PairedCell([2.0, 0.0], [1.0, 0.0]), "outside 0 to 1"),
        (PairedCell([math.nan, 0.0], [1.0, 0.0]), "nan"),
    ],
)
def test_wrong_values_are_refused(cell: PairedCell, said: str) -> None:
    with pytest.raises(MetricError, match=said):
        margin_tests([cell])


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (PairedCell([], []), "fewer than two independent rows"),
        (PairedCell([None, 1.0], [1.0, None]), "fewer than two independent rows"),
        (PairedCell([1.0, 0.0], [1.0, 0.0], ["a", "a"]), "fewer than two independent rows"),
    ],
)
def test_no_test_has_its_reason(cell: PairedCell, reason: str) -> None:
    (found,) = margin_tests([cell])
    assert found.p_value is None
    assert str(found.reason).startswith(reason)
    assert str(paired_tests([cell])[0].reason).startswith(reason)


# Error rates


def drops_of(shape: str, n: int, cells: int, rng: np.random.Generator) -> np.ndarray:
    """Return differences (n, cells) of mean 0, alike within a row."""
    mixed = 0.5 * rng.standard_normal((n, 1)) + math.sqrt(0.75) * rng.standard_normal((n, cells))
    u = norm.cdf(mixed)
    if shape == "regular":
        return 0.35 * (u - 0.5)
    if shape == "rare losses":
        return np.where(u > 0.9, 0.8, 0.0) - 0.08
    if shape == "rare gains":
        return 0.08 - np.where(u > 0.9, 0.8, 0.0)
    return np.clip(0.03 * student.ppf(u, 2), -1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["regular", "rare losses", "rare gains", "heavy tails"])
@pytest.mark.parametrize(("n", "cells"), [(100, 1), (100, 5), (300, 10), (100, 30)])
def test_the_chance_of_any_false_alarm_is_at_most_alpha(shape: str, n: int, cells: int) -> None:
    rng = np.random.default_rng(6)
    alarms, gates = 0, 300
    for gate in range(gates):
        drops = drops_of(shape, n, cells, rng)
        units = [str(i) for i in range(n)]
        runs = [
            PairedCell(np.maximum(column, 0).tolist(), np.maximum(-column, 0).tolist(), units) for column in drops.T
        ]
        alarms += any(one.shown for one in margin_tests(runs, n_resamples=1_000, seed=gate))
    assert alarms / gates <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / gates)
