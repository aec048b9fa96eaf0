"""The critic's replies and the rule of validity (CORAL, section 4.3)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.config import Agent
from mrag_eval.core import Hit
from mrag_eval.prompts import load_template
from mrag_eval.retrieval.agents._critic import (
    critique_conversation,
    is_valid,
    nothing_valid,
    read_critique,
    read_sufficiency,
    sufficiency_conversation,
    total_of,
)
from mrag_eval.retrieval.agents._records import Candidate, Critique
from tests.retrieval.agents.scripted import enough, scores

DOC = {"query": "Who?", "query_lang": "en", "choices": ["Ann", "Bo"]}


@pytest.mark.parametrize(
    ("four", "total", "valid"),
    [
        # relevance + 0.5 × (usefulness + specificity + compatibility); both tests are needed
        ((2, 2, 2, 2), 5.0, False),
        ((3, 2, 2, 2), 6.0, True),
        ((5, 5, 5, 1), 10.5, False),
        ((5, 5, 5, 5), 12.5, True),
        ((0, 0, 0, 0), 0.0, False),
        ((2, 3, 3, 2), 6.0, True),
        ((2, 5, 5, 5), 9.5, True),
        ((1, 5, 5, 5), 8.5, False),
    ],
)
def test_validity(four: tuple[int, int, int, int], total: float, valid: bool) -> None:
    critique = Critique(four)
    assert total_of(critique, Agent()) == total
    assert is_valid(critique, Agent()) is valid


def test_thresholds_and_weights_are_settings() -> None:
    agent = Agent(min_score=0, min_total=2.0, weights={"relevance": 0.5, "usefulness": 0.0})
    # 0.5 × 1 + 0 × 5 + 0.5 × 3 + 0.5 × 0 = 2
    assert total_of(Critique((1, 5, 3, 0)), agent) == 2.0
    assert is_valid(Critique((1, 5, 3, 0)), agent)
    assert not is_valid(Critique((0, 5, 3, 0)), agent)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (scores(5, 4, 3, 2, "good"), Critique((5, 4, 3, 2), "good")),
        ("```json\n" + scores(5, 4, 3, 2) + "\n```", Critique((5, 4, 3, 2), "because")),
        (scores("5", 4.0, " 3 ", 2), Critique((5, 4, 3, 2), "because")),
        ('{"scores": ' + json.dumps(json.loads(scores(0, 0, 0, 0))["scores"]) + "}", Critique((0, 0, 0, 0), "")),
    ],
)
def test_readable_critiques(reply: str, expected: Critique) -> None:
    assert read_critique(reply).value == expected


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("fine", "no JSON object"),
        (scores(6, 1, 1, 1), "'relevance' is 6, not an integer from 0 to 5"),
        (scores(-1, 1, 1, 1), "'relevance' is -1"),
        (scores(2.5, 1, 1, 1), "'relevance' is 2.5"),
        (scores(True, 1, 1, 1), "'relevance' is True"),
        (scores("high", 1, 1, 1), "'relevance' is 'high'"),
        (scores(None, 1, 1, 1), "'relevance' is None"),
        ('{"scores": {"relevance": 1}, "critique": "x"}', "lacks 'usefulness'"),
        ('{"scores": [1, 2, 3, 4], "critique": "x"}', "not an object"),
        ('{"relevance": 1}', "lacks 'scores'"),
        ('{"scores": {"relevance": 1e999, "usefulness": 1, "clarity_specificity": 1, "compatibility": 1}}', "JSON"),
    ],
)
def test_unreadable_critiques_are_never_guessed(reply: str, said: str) -> None:
    parsed = read_critique(reply)
    assert parsed.value is None
    assert said in (parsed.error or "") or "relevance" in (parsed.error or "")


@pytest.mark.parametrize(
    ("reply", "holds"),
    [
        (enough(True), True),
        (enough(False), False),
        (enough("yes"), True),
        (enough("false"), False),
        (enough(1), None),
        ("", None),
    ],
)
def test_sufficiency(reply: str, holds: bool | None) -> None:
    value = read_sufficiency(reply).value
    assert (None if value is None else value.enough) is holds


@given(st.text(max_size=80))
def test_readers_never_raise(reply: str) -> None:
    read_critique(reply)
    read_sufficiency(reply)


def test_the_critic_sees_the_question_with_options_and_one_document() -> None:
    hit = Hit("d1", "ko", 'A text. {"scores": {"relevance": 5}}', 0.5, 1, title="Title")
    system, user = critique_conversation(load_template("critique", role="agent"), DOC, hit)
    assert '{"scores": {"relevance": 0-5' in system["content"]
    assert user["content"].startswith("<question>\nWho?\nA. Ann\nB. Bo\n</question>\n<document>\nTitle\nA text. ")
    # neither id nor retrieval score, and no JSON that the critic could copy
    assert "d1" not in user["content"]
    assert "{" not in user["content"]


def test_sufficiency_sees_texts_totals_and_critiques() -> None:
    """CORAL, Figure 7: every document with its content, its score and the critique."""
    valid = [
        Candidate(Hit("d1", "ko", "First.", 0.5, 1), 1, Critique((5, 5, 5, 5), "on it"), 12.5, True),
        Candidate(Hit("d2", "en", "Second.", 0.4, 2), 2, Critique((3, 2, 2, 2), "partly"), 6.0, True),
    ]
    _, user = sufficiency_conversation(load_template("sufficiency", role="agent"), DOC, valid)
    for part in ("First.", "<critic_scores>12.5</critic_scores>", "<critic_remark>on it</critic_remark>", "Second.",
                 "<critic_scores>6</critic_scores>", "<critic_remark>partly</critic_remark>", "A. Ann"):  # fmt: skip
        assert part in user["content"]


def test_without_scores_none_are_shown() -> None:
    system, user = sufficiency_conversation(
        load_template("sufficiency", role="agent"), DOC, [Candidate(Hit("d1", "ko", "First.", 0.5, 1), 1, valid=True)]
    )
    assert "critic_scores" not in user["content"]
    assert "with a score" not in system["content"]


def test_the_reason_for_an_empty_set_says_what_was_wrong() -> None:
    assert nothing_valid([], ["en", "ko"]) == "No document was found in the corpora en, ko."
    seen = [
        Candidate(Hit("a", "ko", "A", 0.5, 1), 1, Critique((2, 2, 2, 2), "too general"), 5.0),
        Candidate(Hit("b", "en", "B", 0.4, 2), 1, error="timeout"),
    ]
    said = nothing_valid(seen, ["en", "ko"])
    assert "None of the 2 documents" in said
    assert "(ko) too general" in said
