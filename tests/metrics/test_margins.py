"""One-sided tests against a margin: by hand, against scipy, and their error rates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, norm, ttest_1samp

from mrag_eval.core import MetricError
from mrag_eval.metrics import paired_margin


def shares(gained: int, lost: int, n: int) -> tuple[list[float], list[float]]:
    """Values of 0 and 1 of two runs: the first gains ``gained`` rows and loses ``lost``."""
    same = n - gained - lost
    return [1.0] * gained + [0.0] * lost + [1.0] * same, [0.0] * gained + [1.0] * lost + [1.0] * same


def test_without_a_margin_it_is_the_one_sided_binomial_test() -> None:
    found = paired_margin(*shares(12, 3, 100))
    assert found.p_value == pytest.approx(binom.sf(11, 15, 0.5))
    assert (found.difference, found.n_differing, found.method) == (0.09, 15, "McNemar exact, one-sided")


@pytest.mark.parametrize(("gained", "lost", "margin"), [(12, 3, 0.05), (3, 5, -0.05), (0, 5, -0.1), (2, 9, 0.02)])
def test_with_a_margin_the_score_is_divided_by_the_error_at_the_margin(gained: int, lost: int, margin: float) -> None:
    n = 100

    def surprise(q: float) -> float:
        """Minus the log likelihood of ``q`` lost and ``q + margin`` gained."""
        parts = ((gained, q + margin), (lost, q), (n - gained - lost, 1 - 2 * q - margin))
        return -sum(count * np.log(share) for count, share in parts if count)

    least = max(0.0, -margin)
    q = minimize_scalar(surprise, bounds=(least, (1 - margin) / 2), method="bounded", options={"xatol": 1e-10}).x
    z = (gained - lost - n * margin) / np.sqrt(n * (2 * q + margin - margin**2))
    assert paired_margin(*shares(gained, lost, n), margin).p_value == pytest.approx(norm.sf(z), rel=1e-4)


def test_a_large_sample_of_scores_agrees_with_the_t_test() -> None:
    rng = np.random.default_rng(0)
    change = rng.normal(0.02, 0.2, 400)
    expected = ttest_1samp(change, 0.01, alternative="greater").pvalue
    assert paired_margin(change.tolist(), [0.0] * 400, 0.01).p_value == pytest.approx(expected, abs=0.02)


def test_p_is_never_zero_and_needs_two_units() -> None:
    # nine of nine rows fell by .4: one of 2^9 flips, on the side of a drop
    before, after = [1.0] * 9, [0.6] * 9
    assert paired_margin(before, after).p_value == pytest.approx(2**-9)
    assert paired_margin(before, after, 0.1).p_value == pytest.approx(2**-9)
    assert paired_margin(before, after, 0.5).p_value == pytest.approx(1 - 2**-9)
    huge = paired_margin([1.0] * 5_000, [0.0] * 5_000, 0.1).p_value
    assert huge is not None
    assert 0 < huge < 1e-300
    assert paired_margin([1.0], [0.0]).p_value is None
    assert paired_margin([1.0] * 9, [0.0] * 9, groups=["g"] * 9).p_value is None


def test_rows_without_a_score_in_one_run_are_left_out() -> None:
    first, second = [1.0, 1.0, None, 1.0], [0.0, None, 0.0, 0.0]
    assert paired_margin(first, second).p_value == pytest.approx(0.25)
    grouped = paired_margin(first, second, groups=["a", "b", "c", "d"])
    assert (grouped.n, grouped.p_value) == (2, pytest.approx(0.25))


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 500, 2_000])
def test_inferiority_is_excluded_wrongly_in_at_most_five_of_a_hundred(n: int) -> None:
    """The true drop is the margin, five points; 10% of the answers change besides."""
    rng = np.random.default_rng(n)
    wrong = 0
    for _ in range(2_000):
        lost, gained, _ = rng.multinomial(n, [0.10, 0.05, 0.85])
        wrong += (paired_margin(*shares(gained, lost, n), -0.05).p_value or 0) <= 0.05
    assert wrong / 2_000 <= 0.05 + 3 * (0.05 * 0.95 / 2_000) ** 0.5


@pytest.mark.slow
def test_groups_with_heavy_tails_alarm_in_at_most_five_of_a_hundred() -> None:
    rng = np.random.default_rng(1)
    groups = [f"g{i}" for i in range(30) for _ in range(6)]
    alarms = 0
    for _ in range(500):
        shared = (rng.random(30) < 0.1) * rng.choice((-0.9, 0.9), 30)
        before = np.clip(0.5 + rng.normal(0, 0.05, 180), 0, 1)
        after = before + shared.repeat(6) + rng.normal(0, 0.02, 180)
        alarms += (paired_margin(before, after, groups=groups, n_resamples=1_000).p_value or 0) <= 0.05
    assert alarms / 500 <= 0.05 + 3 * (0.05 * 0.95 / 500) ** 0.5


def test_runs_of_different_lengths_are_refused() -> None:
    with pytest.raises(MetricError, match="3 values of one run but 2 of the other"):
        paired_margin([1, 0, 1], [1, 0], 0.1)
