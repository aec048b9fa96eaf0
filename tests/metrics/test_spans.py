"""Overlap of spans, compared with scikit-learn on the characters, and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import span_overlap

_LENGTH = 25
_PLACE = st.integers(0, _LENGTH)
_SPANS = st.lists(st.tuples(_PLACE, _PLACE).map(lambda ends: (min(ends), max(ends))), max_size=4)


def test_by_hand() -> None:
    # 6 and 4 characters, 2 of them the same
    assert span_overlap([(0, 6)], [(4, 8)]) == (2 * 2 / 10, 2 / 8)
    # a character counts once, and spans may touch
    assert span_overlap([(0, 4), (2, 6), (0, 6)], [(4, 6), (6, 8)]) == (2 * 2 / 10, 2 / 8)


def test_nothing_found_is_right_where_there_is_nothing_and_wrong_elsewhere() -> None:
    assert span_overlap([], []) == span_overlap([(3, 3)], []) == (1.0, 1.0)
    assert span_overlap([], [(0, 2)]) == span_overlap([(0, 2)], []) == (0.0, 0.0)


@given(_SPANS, _SPANS)
def test_equals_scikit_learn_on_characters(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    from sklearn.metrics import f1_score, jaccard_score

    marks = [[any(a <= place < b for a, b in spans) for place in range(_LENGTH)] for spans in (first, second)]
    expected = tuple(measure(marks[1], marks[0], zero_division=1.0) for measure in (f1_score, jaccard_score))
    assert span_overlap(first, second) == pytest.approx(expected)
    assert span_overlap(second, first) == span_overlap(first, second)
