"""Error attribution: conditionals, their product, stages, and rows that cannot be scored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import conditional_rate, error_attribution
from mrag_eval.platform import MetricError

# 10 rows: 8 retrieved, 6 of them kept, 4 of those right; 1 right of the 2 lost, 1 of the 2 never found
RETRIEVED = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
KEPT = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
CORRECT = [1, 1, 1, 1, 0, 0, 1, 0, 1, 0]


def test_stages_by_hand() -> None:
    found = error_attribution(RETRIEVED, KEPT, CORRECT)
    assert (found.retrieved.value, found.retrieved.n) == (0.8, 10)
    assert (found.kept_if_retrieved.value, found.kept_if_retrieved.n) == (0.75, 8)
    assert (found.correct_if_kept.value, found.correct_if_kept.n) == (pytest.approx(4 / 6), 6)
    assert found.product.value == pytest.approx(0.8 * 0.75 * 4 / 6)
    assert (found.end_to_end.value, found.end_to_end.n) == (0.6, 10)
    assert (found.correct_if_not_retrieved.value, found.correct_if_not_retrieved.n) == (0.5, 2)
    assert found.correct_if_retrieved.value == pytest.approx(5 / 8)
    assert found.stages == {
        "not retrieved": 1,
        "not shown": 1,
        "wrong language": 0,
        "not used": 2,
        "judged wrong": 0,
        "failed": 0,
        "correct": 6,
    }
    assert found.unscored == 0
    assert found.retrieved.method == "Wilson"


def test_without_a_reranker_what_was_retrieved_is_in_the_prompt() -> None:
    found = error_attribution(RETRIEVED, None, CORRECT)
    assert found.kept_if_retrieved.value is None
    assert found.kept_if_retrieved.reason == "no reranker"
    assert found.product.value == pytest.approx(0.8 * 5 / 8)


def test_an_answer_in_the_reply_that_the_verdict_refuses_was_used() -> None:
    # rows 4 and 5 are shown and wrong; rows 7 and 9 hold an answer as well, but were lost before
    held = [1, 1, 1, 1, 1, 0, 1, 1, 1, 1]
    found = error_attribution(RETRIEVED, KEPT, CORRECT, used=held)
    assert (found.stages["judged wrong"], found.stages["not used"], found.stages["not shown"]) == (1, 1, 1)
    # another language is the stage before
    language = [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    other = error_attribution(RETRIEVED, KEPT, CORRECT, used=held, right_language=language)
    assert (other.stages["judged wrong"], other.stages["wrong language"], other.stages["not used"]) == (0, 1, 1)


def test_failed_rows_are_a_stage_and_in_nothing_else() -> None:
    found = error_attribution(
        [*RETRIEVED, 1, None, 1], [*KEPT, None, None, 1], [*CORRECT, None, None, 1], failed=[0] * 10 + [1, 1, 1]
    )
    alone = error_attribution(RETRIEVED, KEPT, CORRECT)
    assert found.stages == {**alone.stages, "failed": 3}
    assert replace(found, stages=alone.stages) == alone
    lost = error_attribution([None], [None], [None], failed=[1])
    assert (lost.stages["failed"], sum(lost.stages.values()), lost.unscored) == (1, 1, 0)
    assert lost.retrieved.value is None


def test_wrong_answers_in_the_wrong_language_are_a_separate_stage() -> None:
    language = [1, 1, 1, 1, 0, None, 1, 1, 1, 0]
    found = error_attribution(RETRIEVED, KEPT, CORRECT, right_language=language)
    assert (found.stages["wrong language"], found.stages["not used"], found.stages["not retrieved"]) == (1, 1, 1)


def test_undefined_conditionals_say_why() -> None:
    found = error_attribution([0, 0], [None, None], [1, 0])
    assert found.kept_if_retrieved.value is None
    assert found.correct_if_kept.value is None
    assert found.product.value is None
    assert found.retrieved.value == 0
    assert found.correct_if_not_retrieved.value == 0.5
    for estimate in (found.kept_if_retrieved, found.correct_if_kept, found.product):
        assert estimate.reason
    assert error_attribution([1], [1], [1]).correct_if_not_retrieved.reason == "no row meets the condition"


def test_rows_without_a_verdict_are_unscored() -> None:
    found = error_attribution([*RETRIEVED, 1, None], [*KEPT, 1, None], [*CORRECT, None, 1])
    assert found.unscored == 2
    assert replace(found, unscored=0) == error_attribution(RETRIEVED, KEPT, CORRECT)


def test_conditional_hit_of_the_reranker() -> None:
    # hit@5 after reranking given hit@20: three of four; the fifth question was never retrieved
    found = conditional_rate([1, 1, 0, 1, 0], [1, 1, 1, 1, 0])
    assert (found.value, found.n) == (0.75, 4)
    assert conditional_rate([None, 1], [1, None]).value is None
    assert conditional_rate([None, 1, 0], [1, 1, 1]).n == 2


FLAGS = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=30)


@given(FLAGS, st.randoms(use_true_random=False))
def test_bounds_order_and_counts(rows: list[tuple[bool, bool, bool]], rng: Any) -> None:
    def score(entries: list[tuple[bool, bool, bool]]) -> Any:
        return error_attribution(
            [r for r, _, _ in entries], [r and k for r, k, _ in entries], [c for _, _, c in entries]
        )

    found = score(rows)
    assert sum(found.stages.values()) == len(rows)
    assert found.product.value is None or found.product.value <= found.end_to_end.value
    factors = (found.retrieved.value, found.kept_if_retrieved.value, found.correct_if_kept.value)
    if None not in factors:
        assert found.product.value == pytest.approx(factors[0] * factors[1] * factors[2], abs=1e-12)
    rng.shuffle(rows)
    assert score(rows) == found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([], [], []), "no rows"),
        (([1], [1, 0], [1]), "unequal length"),
        (([1], [1], [1, 1]), "unequal length"),
        (([0], [1], [1]), "row 0 is kept but not retrieved"),
        (([1], [None], [1]), r"kept\[0\] is None"),
        (([0.5], [0], [1]), r"retrieved\[0\] is 0.5"),
        (([1], [1], [float("nan")]), r"correct\[0\] is nan"),
    ],
)
def test_bad_input_is_named(arguments: Any, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        error_attribution(*arguments)
