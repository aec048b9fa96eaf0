"""Numbers are rounded in one place, and a number that is missing is never printed as 0."""

from __future__ import annotations

import pytest

from mrag_eval.core import decimal, interval_text, p_text, points, rounded, score_text


@pytest.mark.parametrize(("p", "text"), [(0.5, ".500"), (0.00234, ".0023"), (0.00001, "< .0001"), (1.0, "1.000")])
def test_p_values_are_never_shown_as_nothing(p: float, text: str) -> None:
    assert p_text(p) == text


def test_scores_with_and_without_an_interval() -> None:
    assert score_text(0.4562, 0.4011, 0.5) == "45.6 [40.1, 50.0]"
    assert score_text(0.4562) == score_text(0.4562, 0.4, None) == "45.6"
    assert score_text(0.4562, scale=1, digits=2) == "0.46"
    assert (score_text(None), score_text(None, undefined="no rows")) == ("-", "no rows")


def test_differences_have_a_sign() -> None:
    assert (points(0.0123), points(0.0123, "+"), points(None)) == ("1.2", "+1.2", "")
    assert (interval_text(-0.01, 0.035), interval_text(None, 0.1)) == ("[-1.0, +3.5]", "")


@pytest.mark.parametrize("value", [0.117465, 0.0125, 0.28145, -0.0004, 1.0])
def test_a_rounded_number_is_the_printed_one(value: float) -> None:
    assert f"{rounded(value, scale=100):.1f}" == decimal(value, scale=100)
    assert rounded(None) is None
