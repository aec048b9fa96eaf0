"""Rank ranges: they separate only what a paired test separates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import permutation_test

from mrag_eval.metrics import paired_ranks
from mrag_eval.platform import MetricError


def test_clear_differences_are_ranks_and_equal_runs_share_them() -> None:
    best, middle = [1.0] * 40, [1.0] * 10 + [0.0] * 30
    found = paired_ranks([middle, best, middle, [0.0] * 40], ["en"] * 40)
    assert found.best == (2, 1, 2, 4)
    assert found.worst == (3, 1, 3, 4)
    assert found.p_values[0][2] == 1.0
    assert found.p_values[0][0] is None


def test_few_rows_separate_nothing() -> None:
    # four rows that all differ the same way: 2 of 2^4 flips are as extreme, p = .125
    found = paired_ranks([[1.0] * 4, [0.0] * 4], ["en"] * 4, seed=1)
    assert found.best == (1, 1)
    assert found.worst == (2, 2)
    assert found.p_values[0][1] == pytest.approx(0.125, abs=0.015)


def test_a_pair_is_tested_as_by_the_permutation_test() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random(60), rng.random(60) + 0.05
    groups = [i // 3 for i in range(60)]
    # all cells have the same size: the macro mean is the mean, so the tests are the same
    cells = [i % 4 for i in range(60)]
    for grouped in (None, groups):
        change = np.bincount(grouped or range(60), weights=a - b)
        zeros = np.zeros(len(change))
        flips = {"permutation_type": "samples", "n_resamples": 40_000, "vectorized": True, "random_state": 0}
        expected = permutation_test((change, zeros), lambda x, y, axis: (x - y).mean(axis), **flips).pvalue
        found = paired_ranks([a, b], cells, groups=grouped, n_resamples=40_000, seed=3)
        assert found.p_values[0][1] == pytest.approx(expected, abs=0.01)


def test_cells_of_any_size_have_the_same_weight() -> None:
    # 90 rows of one language where the first run is worse by .1, 10 of another where it is better by .9
    cells = ["en"] * 90 + ["ha"] * 10
    first = [0.0] * 90 + [0.9] * 10
    second = [0.1] * 90 + [0.0] * 10
    found = paired_ranks([first, second], cells)
    # macro means .45 and .05: the first run is ahead, though its plain mean, .09, is the same
    assert found.best == (1, 2)


def test_p_values_are_corrected_for_the_number_of_pairs() -> None:
    rng = np.random.default_rng(0)
    runs = rng.random((12, 50))
    found = paired_ranks(runs, ["en"] * 50)
    assert found.best == (1,) * 12
    assert found.worst == (12,) * 12


def test_unscored_rows_are_left_out_of_their_pairs() -> None:
    full = [1.0] * 30
    holes = [None] * 10 + [0.0] * 20
    other = [0.0] * 10 + [None] * 20
    found = paired_ranks([full, holes, other], ["en"] * 30)
    assert found.p_values[1][2] is None
    assert found.best == (1, 2, 2)
    with pytest.raises(MetricError, match="cells"):
        paired_ranks([full, full], ["en"] * 29)
