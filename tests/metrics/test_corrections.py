"""Corrections of p-values for many tests."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import benjamini_hochberg, holm
from mrag_eval.platform import MetricError


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
        (lambda: holm([1.5]), "outside 0..1"),
        (lambda: benjamini_hochberg([math.nan]), "nan"),
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        call()
