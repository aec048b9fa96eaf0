"""Paired tests compared with scipy and with enumeration, corrections, power by simulation, and the unpaired fault."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.core import MetricError
from mrag_eval.metrics import (
    benjamini_hochberg,
    holm,
    mcnemar_exact,
    paired_cluster_bootstrap,
    paired_difference,
    paired_permutation,
)


def test_mcnemar_by_hand() -> None:
    # 8 wins, 1 loss of 20 rows: p = 2 * (C(9,0) + C(9,1)) / 2^9 = 20 / 512
    first = [1] * 8 + [0] + [1] * 6 + [0] * 5
    second = [0] * 8 + [1] + [1] * 6 + [0] * 5
    found = mcnemar_exact(first, second)
    assert found.p_value == pytest.approx(20 / 512, abs=1e-12)
    assert (found.difference, found.n, found.n_differing) == (pytest.approx(7 / 20), 20, 9)


def test_runs_that_agree() -> None:
    assert mcnemar_exact([1, 0, 1], [1, 0, 1]).p_value == 1
    assert paired_permutation([0.5, 0.2], [0.5, 0.2]).p_value == 1
    assert paired_cluster_bootstrap([0.5, 0.2], [0.5, 0.2], ["a", "b"]).p_value == 1
    assert paired_difference([0.5, 0.2, 0.1], [0.5, 0.2, 0.1]).value == 0


def test_an_unpaired_test_on_paired_data_misses_a_real_difference() -> None:
    # 200 questions, 12 gained and 1 lost: the z-test over two independent samples that other tools use finds nothing
    first = [1] * 12 + [0] * 1 + [1] * 107 + [0] * 80
    second = [0] * 12 + [1] * 1 + [1] * 107 + [0] * 80
    p_a, p_b = np.mean(first), np.mean(second)
    z = (p_a - p_b) / math.sqrt(p_a * (1 - p_a) / 200 + p_b * (1 - p_b) / 200)
    unpaired = math.erfc(z / math.sqrt(2))
    assert unpaired > 0.2
    for paired in (
        mcnemar_exact(first, second),
        paired_permutation(first, second),
        paired_cluster_bootstrap(first, second, list(range(200))),
    ):
        assert paired.p_value is not None
        assert paired.p_value < 0.01
    interval = paired_difference(first, second)
    assert interval.low is not None
    assert interval.low > 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8))
def test_exact_permutation_equals_enumeration(rows: list[tuple[int, int]]) -> None:
    differences = [a - b for a, b in rows]
    extreme = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= abs(sum(differences))
        for signs in itertools.product((1, -1), repeat=len(rows))
    ]
    found = paired_permutation([a for a, _ in rows], [b for _, b in rows])
    assert found.p_value == pytest.approx(sum(extreme) / len(extreme), abs=1e-12)
    flipped = paired_permutation([b for _, b in rows], [a for a, _ in rows])
    assert flipped.p_value == pytest.approx(found.p_value)
    assert found.difference == pytest.approx(-(flipped.difference or 0))


def test_random_permutation_equals_scipys() -> None:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=60), rng.normal(size=60) - 0.2
    theirs = permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        random_state=np.random.default_rng(1),
    )
    found = paired_permutation(a.tolist(), b.tolist(), n_resamples=20_000)
    assert found.p_value == pytest.approx(theirs.pvalue, abs=0.015)
    assert found.method == "paired permutation"


def test_random_permutation_of_few_sizes_equals_mcnemar() -> None:
    # 0/1 values: the sign-flip test is McNemar's
    first, second = [1] * 40 + [0] * 22 + [1] * 30, [0] * 40 + [1] * 22 + [1] * 30
    exact = mcnemar_exact(first, second).p_value
    assert paired_permutation(first, second, n_resamples=50_000).p_value == pytest.approx(exact, abs=0.005)


def test_clusters_flip_and_resample_together() -> None:
    # every question was asked in five languages with the same outcome: 30 rows are 6 observations
    first = np.repeat([1, 1, 1, 1, 1, 0], 5).tolist()
    second = np.repeat([0, 0, 0, 0, 0, 0], 5).tolist()
    groups = np.repeat(np.arange(6), 5).tolist()
    assert mcnemar_exact(first, second).p_value < 1e-6  # type: ignore[operator]
    assert paired_permutation(first, second, groups=groups).p_value == pytest.approx(2 / 2**5)
    assert paired_cluster_bootstrap(first, second, groups).reason == "only 6 clusters"


def test_tests_hold_their_level_on_clustered_data() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(60), 4).tolist()
    rejected = {"permutation": 0, "bootstrap": 0}
    for _ in range(300):
        difference = np.repeat(rng.normal(size=60), 4) + rng.normal(scale=0.3, size=240)
        zeros = [0.0] * 240
        by_flip = paired_permutation(difference.tolist(), zeros, groups=groups, n_resamples=400, seed=rng)
        by_boot = paired_cluster_bootstrap(difference.tolist(), zeros, groups, n_resamples=400, seed=rng)
        rejected["permutation"] += (by_flip.p_value or 0) <= 0.05
        rejected["bootstrap"] += (by_boot.p_value or 0) <= 0.05
    # 15 of 300 expected; a row-wise test would reject about a third
    assert all(4 <= count <= 30 for count in rejected.values()), rejected


def test_rows_scored_in_one_run_only_are_left_out() -> None:
    assert mcnemar_exact([1, None, 1], [0, 1, None]).n == 1
    nothing = paired_permutation([None], [1.0])
    assert (nothing.p_value, nothing.reason) == (None, "no row is scored in both runs")
    assert paired_difference([None, 0.5, 0.9], [1, 0.25, None]).n == 1


def test_one_cluster_has_no_test() -> None:
    found = paired_cluster_bootstrap([1, 0], [0, 0], ["a", "a"])
    assert (found.p_value, found.difference) == (None, 0.5)
    assert "one cluster" in (found.reason or "")


def test_corrections_by_hand() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    # sorted .005 .01 .03 .04; Holm times 4 3 2 1, monotone; BH times 4/1 4/2 4/3 4/4, monotone from above
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(p) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert holm([0.02, None, 0.5]) == [pytest.approx(0.04), None, pytest.approx(0.5)]
    assert benjamini_hochberg([None, 0.02]) == [None, pytest.approx(0.02)]
    assert holm([]) == benjamini_hochberg([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_corrections_bound_each_other(p_values: list[float], rng: Any) -> None:
    stepped, discovered = holm(p_values), benjamini_hochberg(p_values)
    for p, h, bh in zip(p_values, stepped, discovered, strict=True):
        assert h is not None
        assert bh is not None
        assert p - 1e-12 <= bh <= h + 1e-12
        assert h <= min(1.0, p * len(p_values)) + 1e-12
    order = list(range(len(p_values)))
    rng.shuffle(order)
    assert holm([p_values[i] for i in order]) == pytest.approx([stepped[i] for i in order])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mcnemar_exact([1], [1, 0]), "1 values of one run but 2"),
        (lambda: mcnemar_exact([0.5], [1]), "0 and 1"),
        (lambda: paired_permutation([math.nan], [1.0]), "nan"),
        (lambda: paired_permutation([1.0], [1.0], groups=[]), "1 values but 0 groups"),
        (lambda: paired_cluster_bootstrap([1.0], [0.0], ["a"], n_resamples=5), "too few"),
        (lambda: holm([1.5]), "outside 0..1"),
        (lambda: benjamini_hochberg([math.nan]), "nan"),
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        call()


def test_thousands_of_changes_one_way_have_a_p_above_zero() -> None:
    # 2 x 0.5^2000 is beyond the smallest float
    found = mcnemar_exact([1.0] * 2000, [0.0] * 2000)
    assert found.p_value is not None
    assert found.p_value > 0
