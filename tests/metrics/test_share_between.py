"""A score as a share between two ends: by hand, unclipped, and withheld."""

from __future__ import annotations

import numpy as np
import pytest

from mrag_eval.metrics import share_between
from mrag_eval.platform import MetricError

ROWS = [str(i) for i in range(40)]


def test_by_hand() -> None:
    # means: score .5, ceiling .8, floor .2: (.5 - .2) / (.8 - .2)
    scores = [0.4, 0.6] * 20
    found = share_between(scores, [0.8] * 40, [0.2] * 40, ROWS, least_gap=0.2)
    assert found.value == pytest.approx(0.5, abs=1e-12)
    assert found.n == 40
    # with fixed ends the interval is that of the mean, 1 / .6 as wide: 2.02 * .1013 / sqrt(40) / .6 on either side
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(2 * 2.02 * 0.1013 / 40**0.5 / 0.6, rel=0.1)


@pytest.mark.parametrize(("score", "share"), [(1.0, 4 / 3), (0.8, 1.0), (0.2, 0.0), (0.0, -1 / 3)])
def test_it_is_not_clipped(score: float, share: float) -> None:
    found = share_between([score] * 40, [0.8] * 40, [0.2] * 40, ROWS, least_gap=0.2)
    assert found.value == pytest.approx(share, abs=1e-12)


def test_of_a_metric_of_which_less_is_better() -> None:
    assert share_between([0.3] * 9, [0.0] * 9, [0.6] * 9, ROWS[:9], least_gap=0.2).value == pytest.approx(0.5)


def test_the_interval_is_over_both_ends() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(400)
    groups = [str(i) for i in range(400)]
    fixed = share_between(scores, np.full(400, 0.9), np.zeros(400), groups, least_gap=0.2, n_resamples=2000)
    moving = rng.integers(0, 2, 400) * 0.2 + 0.8
    both = share_between(scores, moving, np.zeros(400), groups, least_gap=0.2, n_resamples=2000)
    assert fixed.low is not None and fixed.high is not None and both.low is not None and both.high is not None  # noqa: PT018
    assert both.high - both.low > fixed.high - fixed.low
    # rows that always rise and fall with their ceiling leave the share as it is
    tied = share_between(moving / 2, moving, np.zeros(400), groups, least_gap=0.2, n_resamples=2000)
    assert tied.value == pytest.approx(0.5)
    assert tied.reason == "no interval: the rows show no variation"


def test_groups_are_resampled_together() -> None:
    rng = np.random.default_rng(2)
    scores = np.repeat(rng.random(20), 10)
    ends = np.ones(200), np.zeros(200)
    alone = share_between(scores, *ends, range(200), least_gap=0.2, n_resamples=2000)
    together = share_between(scores, *ends, np.repeat(range(20), 10).tolist(), least_gap=0.2, n_resamples=2000)
    assert alone.low is not None and alone.high is not None and together.low is not None  # noqa: PT018
    assert together.high is not None
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_it_is_withheld_where_the_ends_are_close() -> None:
    found = share_between([0.1] * 9, [0.39] * 9, [0.2] * 9, ROWS[:9], least_gap=0.2)
    assert (found.value, found.n, found.reason) == (None, 9, "withheld: ceiling and floor are less than 0.2 apart")
    assert share_between([], [], [], [], least_gap=0.2).reason == "no row has a score, a ceiling and a floor"
    assert share_between([0.5], [1.0], [0.0], ["a"], least_gap=0.2).value == 0.5
    with pytest.raises(MetricError, match="not finite"):
        share_between([float("nan")], [1.0], [0.0], ["a"], least_gap=0.2)
