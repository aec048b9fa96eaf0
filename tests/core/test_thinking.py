"""Thinking in replies: every mark is read alike, by answers, options and verdicts."""

from __future__ import annotations

import pytest

from mrag_eval.core import MARKS, split_thinking
from mrag_eval.metrics import extract_choice, read_yes_no
from mrag_eval.scoring import parse_answer

# What models whose marks are words, or whose tokens were left out, write around the thought and the answer.
WRITTEN = (
    *((f"{opens}{{}}{closes}{{}}", f"{opens}{{}}") for opens, closes in MARKS),
    *((f"\n{opens.upper()}\n{{}}\n{closes.upper()}\n\n{{}}", f"{opens}\n{{}}") for opens, closes in MARKS),
    ("analysis{}assistantfinal{}", "analysis{}"),
    (
        "<|start|>assistant<|channel|>analysis<|message|>{}<|end|>"
        "<|start|>assistant<|channel|>final<|message|>{}<|return|>",
        "<|channel|>analysis<|message|>{}<|end|>",
    ),
    ("<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>", "<|START_THINKING|>{}"),
    ("<|begin_of_thought|>{}<|end_of_thought|>\n<|begin_of_solution|>{}<|end_of_solution|>", "<|begin_of_thought|>{}"),
    ("<think>{}</think>\n<response>\n{}\n</response>", "<think>{}"),
    ("Here is my thought process: {}\n\nHere is my response: {}", ""),
    (
        "Here are my reasoning steps:\n{}\n[BEGIN FINAL RESPONSE]\n{}\n[END FINAL RESPONSE]\n<|end|>",
        "Here are my reasoning steps: {}",
    ),
    ("<think>{}</think>\n<|begin_of_box|>{}<|end_of_box|>", "<think>{}"),
)


@pytest.mark.parametrize(("written", "cut"), WRITTEN)
def test_what_is_thought_is_no_answer(written: str, cut: str) -> None:
    assert parse_answer(written.format("Maybe 1890.", "It was 1704."), "plain").text == "It was 1704."
    assert extract_choice(written.format("Answer: A.", "B"), 3) == 1
    assert read_yes_no(written.format("No.", "Yes.")) is True
    assert split_thinking(written.format("Maybe B.", "C"), quotes=True).answer == "C"
    if cut:
        found = split_thinking(cut.format("Maybe 1890"))
        assert (found.answer, found.cut) == ("", True)


@pytest.mark.parametrize("closes", dict.fromkeys(closes for _, closes in MARKS))
def test_a_template_may_open_the_thinking(closes: str) -> None:
    assert parse_answer(f"Maybe 1890.\n{closes}\nIt was 1704.", "plain").text == "It was 1704."


def test_thinking_between_parts_of_an_answer_is_left_out() -> None:
    assert parse_answer("It was <think>1890? No.</think>1704.", "plain").text == "It was 1704."
    assert split_thinking("<think>a</think><think>b").cut


def test_marks_of_a_users_model_count_beside_the_known_ones() -> None:
    own = [("((", "))")]
    assert split_thinking("((Maybe 1890.))It was 1704.", own).answer == "It was 1704."
    assert split_thinking("<think>so</think>((so", own).cut
    assert parse_answer("((Maybe 1890.))1704", "plain").text == "((Maybe 1890.))1704"


@pytest.mark.parametrize(
    "plain",
    [
        "analysis of the text shows B",
        "Analysis: the answer is B",
        "Here is my thought process: B is named first, so B.",
        "See [1], <doc0> and {x}.",
        "I think it is B.",
    ],
)
def test_text_without_marks_stays_as_it_is(plain: str) -> None:
    assert split_thinking(plain)[::2] == (plain, False)


def test_a_judge_may_quote_marks() -> None:
    quoted = 'The reply has "<think>x</think> B". Correct.'
    assert split_thinking(quoted, quotes=True).answer == quoted
    assert split_thinking('{"justification": "</think>\\n", "answer": 1}', quotes=True).answer.startswith("{")
