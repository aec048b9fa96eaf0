"""One more attempt for an unreadable reply, then an abstention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mrag_eval.models import AuxModel, generate_parsed, parse_json, parse_list
from mrag_eval.platform import Store, at_once
from tests.models.conftest import ask
from tests.worlds.model_server import Answer, ModelServer, said

Start = Callable[..., ModelServer]
ModelOf = Callable[..., AuxModel]
GOOD = '{"justification": "j", "answer": "correct"}'

read = partial(parse_json, required=("answer",))


def judge(body: dict[str, Any], attempt: int) -> Answer:
    """Answers badly at first and well when asked again, except to texts that always fail."""
    first = body["messages"][0]["content"]
    if "dead" in first:
        return Answer(400, "refused")
    if "good" in first or ("learns" in first and len(body["messages"]) > 1):
        return said(GOOD)
    return said("I would say it is right")


def test_asked_again_with_the_reason(start: Start, model_of: ModelOf) -> None:
    server = start(judge)
    model = model_of(server)
    answers = generate_parsed(model.seat("1"), ask("good", "learns", "never", "dead"), read)
    good, learns, never, dead = answers
    assert good.value == learns.value == {"justification": "j", "answer": "correct"}
    assert (len(good.replies), len(learns.replies), len(never.replies), len(dead.replies)) == (1, 2, 2, 1)
    assert (never.value, never.error) == (None, "unreadable: there is no JSON object in the reply")
    assert (dead.value, dead.error, dead.reason) == (None, "rejected: HTTP 400, refused", "rejected")
    again = [body["messages"] for _, _, body in server.requests if len(body["messages"]) > 1]
    assert len(again) == 2
    assert [m["role"] for m in again[0]] == ["user", "assistant", "user"]
    assert again[0][1]["content"] == "I would say it is right"
    assert again[0][2]["content"].startswith(
        "Your reply could not be read: there is no JSON object in the reply. Give your answer again"
    )
    assert model.ledger.calls == 6


def test_all_of_it_comes_from_the_cache(start: Start, model_of: ModelOf, store: Store) -> None:
    server = start(judge)
    first = generate_parsed(model_of(server, store).seat(), ask("good", "learns", "never"), read)
    sent = len(server.requests)
    second = generate_parsed(model_of(server, store).seat(), ask("good", "learns", "never"), read)
    assert [a.value for a in second] == [a.value for a in first]
    assert len(server.requests) == sent == 5


@pytest.mark.parametrize("finish", ["length", "max_tokens", "model_context_window_exceeded"])
@pytest.mark.parametrize(
    ("text", "fault"),
    [('{"answer": "corr', ": the JSON cannot be read: a string is not closed"), ('{"answer": "correct"} But if', "")],
)
def test_a_reply_that_was_cut_off_gives_nothing(
    start: Start, model_of: ModelOf, text: str, fault: str, finish: str
) -> None:
    server = start(lambda body, n: said(text, finish=finish))
    (answer,) = generate_parsed(model_of(server).seat(), ask("q"), read)
    assert (answer.value, answer.error) == (None, f"unreadable: it was cut off at max_tokens{fault}")
    assert len(server.requests) == 2


def test_the_whole_reply_after_a_cut_one_counts(start: Start, model_of: ModelOf) -> None:
    def whole_at_last(body: dict[str, Any], n: int) -> Any:
        asked_again = len(body["messages"]) > 1
        return said('{"answer": "no"}') if asked_again else said('{"answer": "correct"} or', finish="length")

    (answer,) = generate_parsed(model_of(start(whole_at_last)).seat(), ask("q"), read)
    assert answer.error is None
    assert "no" in str(answer.value)


def test_a_parser_for_each(start: Start, model_of: ModelOf) -> None:
    model = model_of(start(lambda body, n: said("[3]")))
    parsers = [partial(parse_list, n=5), partial(parse_list, n=2)]
    answers = generate_parsed(model.seat(), ask("a", "b"), parsers)
    assert [a.value for a in answers] == [[3], None]
    with pytest.raises(ValueError, match="2 parsers for 1 conversations"):
        generate_parsed(model.seat(), ask("a"), parsers)


def test_one_failing_part_is_raised_after_all_are_done(start: Start, model_of: ModelOf) -> None:
    def bad() -> str:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        at_once({"good": lambda: "x", "bad": bad})
    assert at_once({"b": lambda: 1, "a": lambda: 2}) == {"b": 1, "a": 2}
