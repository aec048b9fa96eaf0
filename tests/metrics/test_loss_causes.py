"""Causes of lost scores: each rule, their order, and what cannot be told."""

from __future__ import annotations

from itertools import product

import pytest

from mrag_eval.metrics import CAUSES, RowEvidence, cause_of_loss

SHOWN = RowEvidence("right", ("p", "q"), True, True)
OTHER = ("r", "q")


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        # the relevant passage is gone
        (RowEvidence("wrong", OTHER, False, True), "retrieval"),
        # it is gone, and the answer is in a wrong language as well: retrieval comes first
        (RowEvidence("wrong", OTHER, False, False), "retrieval"),
        (RowEvidence("wrong", ("p", "q"), True, False), "language"),
        (RowEvidence("wrong", ("p", "q"), True, True), "reading"),
        # other passages, and the relevant one is still among them
        (RowEvidence("wrong", ("p", "z"), True, True), "reading"),
        # the same passages, whether relevant or not
        (RowEvidence("wrong", ("p", "q"), None, True), "reading"),
        # other passages, of which nothing is known; or the same in another order
        (RowEvidence("wrong", OTHER, None, True), "unknown"),
        (RowEvidence("wrong", ("q", "p"), None, True), "unknown"),
        # a language that was not judged is no wrong one
        (RowEvidence("wrong", ("p", "q"), True, None), "reading"),
        # the same answer has another score without a judge
        (RowEvidence("right", OTHER, False, True), "unknown"),
    ],
)
def test_each_rule(after: RowEvidence, cause: str) -> None:
    assert cause_of_loss(SHOWN, after) == cause


def test_a_wrong_language_that_was_wrong_before_is_no_cause() -> None:
    before = RowEvidence("a", ("p",), True, False)
    assert cause_of_loss(before, RowEvidence("b", ("p",), True, False)) == "reading"


def test_a_passage_that_was_not_shown_before_is_not_lost() -> None:
    before = RowEvidence("a", ("x",), False, True)
    assert cause_of_loss(before, RowEvidence("b", ("y",), False, True)) == "unknown"
    assert cause_of_loss(before, RowEvidence("b", ("x",), False, True)) == "reading"


def test_a_prompt_without_passages_is_the_same_prompt() -> None:
    assert cause_of_loss(RowEvidence("a", (), None, None), RowEvidence("b", (), None, None)) == "reading"


def test_a_verdict_on_the_same_answer_is_the_judges() -> None:
    gone = RowEvidence("right", OTHER, False, True)
    assert cause_of_loss(SHOWN, gone, judged=True) == "judging"
    assert cause_of_loss(SHOWN, RowEvidence("wrong", OTHER, False, True), judged=True) == "retrieval"
    # without the answers a verdict may have been on the same one
    lacking = RowEvidence(None, None, False, True)
    assert cause_of_loss(SHOWN, lacking, judged=True) == "unknown"
    assert cause_of_loss(SHOWN, lacking) == "retrieval"


def test_a_metric_of_passages_is_lost_in_retrieval_or_by_their_judges() -> None:
    assert cause_of_loss(SHOWN, SHOWN, subject="passages") == "retrieval"
    assert cause_of_loss(SHOWN, SHOWN, subject="passages", judged=True) == "judging"
    other = RowEvidence("right", OTHER, False, True)
    assert cause_of_loss(SHOWN, other, subject="passages", judged=True) == "retrieval"
    assert cause_of_loss(SHOWN, RowEvidence(), subject="passages", judged=True) == "unknown"


def test_a_metric_of_language_is_lost_in_the_language_first() -> None:
    gone = RowEvidence("wrong", OTHER, False, False)
    assert cause_of_loss(SHOWN, gone) == "retrieval"
    assert cause_of_loss(SHOWN, gone, subject="language") == "language"


def test_every_state_has_one_cause_and_nothing_known_is_unknown() -> None:
    states = [
        RowEvidence(answer, passages, shown, language)
        for answer, passages, shown, language in product(
            (None, "a", "b"), (None, ("p",), ("q",)), (None, True, False), (None, True, False)
        )
    ]
    found = {
        cause_of_loss(before, after, subject=subject, judged=judged)
        for before, after in product(states, states)
        for subject in ("passages", "language", "answer")
        for judged in (True, False)
    }
    assert found == set(CAUSES)
    assert cause_of_loss(RowEvidence(), RowEvidence()) == "unknown"
