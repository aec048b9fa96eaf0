"""Weighted graphs of tests, by examples worked out by hand, and against Holm's procedure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import holm
from mrag_eval.metrics._family import Place, able, graphical, hierarchy

P = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=8)


@given(P)
def test_equal_shares_that_pass_on_equally_are_the_procedure_of_holm(p_values: list[float]) -> None:
    adjusted, _ = graphical(p_values, *hierarchy([Place(i) for i in range(len(p_values))]), 0.05)
    assert adjusted == pytest.approx(holm(p_values), abs=1e-9)


def test_a_fixed_sequence_stops_at_the_first_that_is_not_rejected() -> None:
    shares, passes = np.array([1.0, 0.0, 0.0]), np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    adjusted, levels = graphical([0.01, 0.06, 0.001], shares, passes, 0.05)
    assert adjusted == pytest.approx([0.01, 0.06, 0.06])
    assert levels == pytest.approx([0.05, 0.05, 0.0])


def test_two_primary_and_two_secondary_endpoints() -> None:
    """Two primary hypotheses share the level and pass half to each other, half to their own secondary ones.

    By hand, at .025: w = .0125 for each primary one. p1 = .01 is rejected: w2 = .0125 + .0125 / 2 = .01875, w3 =
    .00625, g23 = .25 / .75 = 1/3, g24 = .5 / .75 = 2/3, g32 = .5 / .5 = 1. p2 = .018 is rejected: w3 = .00625 + .00625,
    w4 = .0125, g34 = (2/3) / (2/3) = 1. p3 = .012 is rejected: w4 = .025, and p4 = .03 is not.
    """
    shares = np.array([0.5, 0.5, 0.0, 0.0])
    passes = np.array([[0, 0.5, 0.5, 0], [0.5, 0, 0, 0.5], [1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    # the third passes to the first, and the fourth to the second
    adjusted, levels = graphical([0.01, 0.018, 0.012, 0.03], shares, passes, 0.025)
    assert [p <= 0.025 for p in adjusted] == [True, True, True, False]
    assert levels == pytest.approx([0.0125, 0.01875, 0.0125, 0.025])
    assert adjusted == pytest.approx([0.02, 0.024, 0.024, 0.03])


PLACES = [
    *(Place("m"), Place("m", "ar"), Place("m", "th"), Place("m", "ar", "ar->en"), Place("m", "ar", "ar->ar")),
    Place("m", "th", "th->en"),
]


def test_a_language_passes_its_share_to_its_pairs() -> None:
    """Whole .02, languages .01 each, pairs .01 / 3 each; Arabic's .01 goes to its two pairs: .00333 + .005."""
    adjusted, levels = graphical([0.5, 0.009, 0.02, 0.008, 0.2, 0.008], *hierarchy(PLACES), 0.05)
    assert [p <= 0.05 for p in adjusted] == [False, True, False, True, False, False]
    assert levels[1] == pytest.approx(0.01)
    assert levels[3] == pytest.approx(0.01 / 3 + 0.005, rel=0.01)
    # a rejected pair passes all it has to the two other pairs
    assert levels[4] == pytest.approx(0.01 / 3 + 0.005 + (0.01 / 3 + 0.005) / 2, rel=0.01)
    assert levels[5] == pytest.approx(0.01 / 3 + (0.01 / 3 + 0.005) / 2, rel=0.01)


def test_a_whole_passes_its_share_to_the_languages() -> None:
    adjusted, levels = graphical([0.019, 0.019, 0.5, 1.0, 1.0, 1.0], *hierarchy(PLACES), 0.05)
    assert [p <= 0.05 for p in adjusted] == [True, True, False, False, False, False]
    assert levels[:3] == pytest.approx([0.02, 0.02, 0.02], rel=0.01)


def test_levels_without_tests_leave_their_part_to_the_others() -> None:
    shares, _ = hierarchy([Place("m"), Place("m", "ar"), Place("m", "th"), Place("other")])
    assert shares == pytest.approx([0.25, 0.125, 0.125, 0.5])


@st.composite
def families(draw: Any) -> tuple[list[Place], list[float]]:
    places = []
    for of in range(draw(st.integers(1, 3))):
        places += [Place(of)] if draw(st.booleans()) else []
        for language in "abc"[: draw(st.integers(0, 3))]:
            places += [Place(of, language)] if draw(st.booleans()) else []
            places += [Place(of, language, f"{language}->{doc}") for doc in "ab"[: draw(st.integers(0, 2))]]
    places = places or [Place(0)]
    return places, draw(st.lists(st.floats(1e-5, 0.2), min_size=len(places), max_size=len(places)))


@given(families(), st.data())
def test_a_smaller_p_value_never_takes_a_rejection_back(family: tuple[list[Place], list[float]], data: Any) -> None:
    places, p_values = family
    shares, passes = hierarchy(places)
    assert shares.sum() == pytest.approx(1)
    assert (passes.sum(axis=1) <= 1 + 1e-9).all()
    before, levels = graphical(p_values, shares, passes, 0.05)
    assert [p <= 0.05 for p in before] == [p <= level for p, level in zip(p_values, levels, strict=True)]
    at = data.draw(st.integers(0, len(places) - 1))
    after, _ = graphical([p / 3 if i == at else p for i, p in enumerate(p_values)], shares, passes, 0.05)
    assert all(b <= a + 1e-6 for a, b in zip(before, after, strict=True))


def test_what_is_able_is_rejected_at_once() -> None:
    """Of three pairs at .05 / 5: two with .004 are able together, one with .009 is not beside them."""
    kept, _ = able({0: 1e-9, 1: 1e-9, 2: 1e-9, 3: 0.004, 4: 0.004, 5: 0.009}, PLACES, 0.05)
    assert kept == {0, 1, 2, 3, 4}
    assert able({0: 0.06}, PLACES, 0.05)[0] == set()
