"""Any text of a model is read, or refused with a reason; nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrag_eval.core import as_verdict, split_thinking
from mrag_eval.models import Parsed, Verdict, parse_json, parse_list, parse_tag, parse_verdict_tag

YES, NO = Verdict(True, "j"), Verdict(False, "j")

# Fragments that make and break the formats, so that random texts come close to them.
PIECES = (
    *"{}[]\"':,\\\n-1 \x00İ“”",
    *("```json", "```", "answer", "justification", "correct", "incorrect", "True", "None", "null", "NaN", "1e999"),
    *("<answer>", "</answer>", "< /answer >", "<think>", "</think>", "{{", "}}", "答え", "الجواب", "9" * 400),
    *("\ud800", "\\ud800", "\\u12"),
)
ALMOST = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
ANY_TEXT = st.one_of(ALMOST, st.text(st.characters(), max_size=200))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def verdict_in_json(text: str) -> Verdict | None:
    """Return the verdict of the last object with an answer."""
    found = parse_json(text, ("answer",)).value or {}
    holds, why = as_verdict(found.get("answer")), found.get("justification")
    return None if holds is None else Verdict(holds, why if isinstance(why, str) else "")


@given(ANY_TEXT)
@example("{" * 3000)
@example("[" * 3000)
@example('{"a":' * 3000)
def test_no_text_raises(text: str) -> None:
    results: list[Parsed[Any]] = [
        parse_json(text),
        parse_json(text, ("answer",)),
        parse_tag(text, "answer"),
        parse_verdict_tag(text, "answer"),
        parse_list(text),
        parse_list(text, 3),
    ]
    for parsed in results:
        assert (parsed.value is None) == (parsed.error is not None)
        # a reading can be written to a file; an error can be shown to a model
        json.dumps(parsed.value, ensure_ascii=False, default=str)
    split_thinking(text)


@given(JSON)
def test_json_is_read_as_json_reads_it(value: Any) -> None:
    text = json.dumps({"value": value})
    assert parse_json(text).value == {"value": value}
    assert parse_json(f"Here it is:\n```json\n{text}\n```\nDone.", ("value",)).value == {"value": value}


@given(JSON)
def test_the_lenient_reader_agrees_with_the_strict_one(value: Any) -> None:
    # a trailing comma sends every text to the lenient reader
    text = json.dumps({"value": value})[:-1] + ",}"
    assert parse_json(text).value == {"value": value}


@given(st.dictionaries(st.text(st.characters(max_codepoint=0x2FF), max_size=8), st.booleans() | st.none(), max_size=4))
def test_python_literals_are_read(value: dict[str, Any]) -> None:
    assert parse_json(repr(value)).value == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"justification": "j", "answer": "correct"}', YES),
        ('{"justification": "j", "answer": "incorrect"}', NO),
        ('```json\n{"justification": "j", "answer": "correct"}\n```', YES),
        ('Let me think. {"justification": "j", "answer": "Correct."} I hope that helps.', YES),
        ('{"justification": "j", "answer": "correct",}', YES),
        ("{'justification': 'j', 'answer': 'incorrect'}", NO),
        ("{'justification': 'j', 'answer': True}", YES),
        ('{"justification": "j", "answer": false}', NO),
        ("{justification: 'j', answer: 'correct'}", YES),
        ("{“justification”: “j”, “answer”: “correct”}", YES),
        ('{{"justification": "j", "answer": "correct"}}', YES),
        ('{"justification": "j",\n\n "answer"\n:\n"correct"\n}', YES),
        ('{"answer": "correct"} no, wait {"justification": "j", "answer": "incorrect"}', NO),
        ('{"justification": "j", "answer": "correct"} {"confidence": 3}', YES),
        ('a set {1, 2} and then {"justification": "j", "answer": "incorrect"}', NO),
        ('{"justification": "it is "close" to it", "answer": "correct"}', Verdict(True, 'it is "close" to it')),
        ('{"justification": "two\nlines", "answer": "correct"}', Verdict(True, "two\nlines")),
        ('{"justification": "{\\"answer\\": \\"correct\\"}", "answer": "incorrect"}',
         Verdict(False, '{"answer": "correct"}')),
        ('{"justification": "a } and a { in it", "answer": "incorrect"}', Verdict(False, "a } and a { in it")),
        ('{"answer": "correct"}', Verdict(True, "")),
        ('{"justification": ["x"], "answer": "correct"}', Verdict(True, "")),
        ('{"justification": "على حق", "answer": "correct"}', Verdict(True, "على حق")),
    ],
)  # fmt: skip
def test_verdict_in_json(text: str, expected: Verdict) -> None:
    assert verdict_in_json(text) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "there is no JSON object in the reply"),
        ("correct", "there is no JSON object in the reply"),
        ('["correct"]', "there is no JSON object in the reply"),
        ('{"verdict": "correct"}', "the JSON object lacks 'answer'"),
        ('{"answer": "maybe"}', None),
        ('{"answer": "not correct"}', None),
        ('{"answer": null}', None),
        ('{"answer": 1}', None),
        ('{"answer": "correct"', "the JSON cannot be read: it is not closed by '}'"),
        ('{"answer": ', "the JSON cannot be read: a value is missing at ''"),
        ('{"answer": "correct", "answer": "incorrect"}',
         "the JSON cannot be read: the key 'answer' comes twice with different values"),
        ("{'answer': 'correct', 'answer': 'incorrect'}",
         "the JSON cannot be read: the key 'answer' comes twice with different values"),
    ],
)  # fmt: skip
def test_no_verdict_in_json(text: str, error: str | None) -> None:
    assert verdict_in_json(text) is None
    assert parse_json(text, ("answer",)).error == error


@pytest.mark.parametrize(
    "text",
    [
        # truncated, or with unescaped quotes, while quoting an answer that pretends to be the verdict
        '{"justification": "The response says {"answer": "correct"} which',
        '{"justification": "The response says {"answer": "correct"}, which is not so", "answer" "incorrect"}',
        '{"justification": "It says ```json\n{"answer": "correct"}\n``` and',
        '{"justification": "It ends in ", "answer": "correct"} ", "answer": "incorrect"',
    ],
)
def test_text_quoted_in_a_broken_reply_is_never_the_verdict(text: str) -> None:
    assert parse_json(text, ("answer",)).value is None


@pytest.mark.timeout(120)  # a reader with quadratic time would take until tomorrow
def test_hostile_texts_are_read_in_linear_time() -> None:
    hostile = ('{"a}', '{"a":"', "[", "<answer>", "1", " ", '{"answer": 1} "answer" ', '" ', "\\", "{'")
    for text in [piece * 100_000 + "x" for piece in hostile]:
        parse_json(text)
        parse_tag(text, "answer")
        parse_list(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<answer>Paris</answer>", "Paris"),
        ("so\n<answer>\n Paris \n</answer> done", "Paris"),
        ("<ANSWER>Paris</Answer>", "Paris"),
        ("< answer >Paris</ answer>", "Paris"),
        ("<answer>a</answer> rather <answer>b</answer>", "b"),
        ("<answer>a<answer>b</answer>", "b"),
        ("<answer>a</answer></answer>", "a"),
        ("<answer>a</answer> <answer>b", "a"),
        ("<answer></answer>", ""),
        ("İİİ<answer>x < y</answer>", "x < y"),
        ("<answer>東京</answer>", "東京"),
    ],
)
def test_tag(text: str, value: str) -> None:
    assert parse_tag(text, "answer") == Parsed(value)


def test_no_tag() -> None:
    assert parse_tag("Paris", "answer").error == "there is no <answer> in the reply"
    assert parse_tag("<answers>Paris</answers>", "answer").error == "there is no <answer> in the reply"
    assert parse_tag("<answer>Paris", "answer").error == "<answer> and </answer> do not enclose anything"
    assert parse_tag("</answer>Paris<answer>", "answer").value is None


def test_verdict_in_a_tag() -> None:
    text = "They name the same river.\n<same_meaning>True</same_meaning>"
    assert parse_verdict_tag(text, "same_meaning").value == Verdict(True, "They name the same river.")
    assert parse_verdict_tag("<same_meaning> **false**. </same_meaning>", "same_meaning").value == Verdict(False)
    assert parse_verdict_tag("<same_meaning>Ja</same_meaning>", "same_meaning").error == (
        "<same_meaning> holds 'Ja', neither 'true' nor 'false'"
    )


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(True, True), (False, False), ("TRUE", True), (" yes! ", True), ("“no”", False), ("Incorrect", False),
     ("", None), (1, None), (None, None), ([], None), ("incorrectly", None), ("correct or incorrect", None)],
)  # fmt: skip
def test_words_of_a_verdict(value: Any, verdict: bool | None) -> None:
    assert as_verdict(value) is verdict


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[1, 3]", [1, 3]),
        ("[3, 1, 3]", [1, 3]),
        ("[]", []),
        ("[ ]", []),
        ("Passages [1] and [4] fit.", [1, 4]),
        ("[1][2]", [1, 2]),
        ("Passage [2] is about rivers.\nAnswer: [1, 3]", [1, 3]),
        ("[1, 2] as in [the second]", [1, 2]),
        # it goes on after its list
        ("[1, 3]. Passage [2] is about another river.", [1, 3]),
        ("Relevant: [1, 3]; not relevant: [2]", [1, 3]),
        ("[1, 3]\nI rejected [2] and [4], which only mention it.", [1, 3]),
        ("Passage [2] is off topic. The answer is in [1, 3].", [1, 3]),
        ("```python\n[2, 5]\n```", [2, 5]),
        ("['1', \"Passage 2\"]", [1, 2]),
        ("1, 3", [1, 3]),
        ("Passages: 1 and 3.", [1, 3]),
        ("They fit:\nPassage 2, Passage 4", [2, 4]),
        ("2", [2]),
        ("none", []),
        ("None.", []),
        ("Relevant passages: none", []),
    ],
)
def test_list(text: str, numbers: list[int]) -> None:
    assert parse_list(text, 5) == Parsed(numbers)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "there is no list of numbers in the reply"),
        ("I think 3 of them fit", "there is no list of numbers in the reply"),
        ("1.5", None),
        ("[one]", "the list holds something other than numbers"),
        ("[0, 1]", "0 is not the number of a passage, they end at 5"),
        ("[6]", "6 is not the number of a passage, they end at 5"),
        ("[-1]", "the list holds something other than numbers"),
        ("[1.5]", "the list holds something other than numbers"),
        *(
            (text, "the reply goes on after its list, and names other passages")
            for text in (
                "The answer is in [1, 3], while [2] is about another river.",
                "[1, 3] fit, not [2]",
                "I take [1, 3]. Passage [2] is about another river.",
            )
        ),
        ("[[1, 2], [3]", None),
    ],
)
def test_no_list(text: str, error: str | None) -> None:
    parsed = parse_list(text, 5)
    if error is not None:
        assert parsed == Parsed(None, error)
