"""Server faults: every call ends as an answer or as a counted abstention, and the batch always returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from mrag_eval.models import AuxModel
from mrag_eval.platform._http_faults import retry_after
from tests.models.conftest import ask
from tests.worlds.model_server import Answer, ModelServer, Script, asked, echo, said

Start = Callable[..., ModelServer]
ModelOf = Callable[..., AuxModel]


def failing_first(answer: Answer, times: int = 1) -> Script:
    return lambda body, attempt: answer if attempt <= times else echo(body, attempt)


CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}


@pytest.mark.parametrize(
    "fault",
    [
        *(Answer(status, "later") for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        Answer(200, '{"choices": [{"index": 0, "mess', reset=True),
        Answer(200, '{"choices": ['),
        Answer(200, "<html>gateway</html>"),
        Answer(200, "[" * 100_000),
        Answer(200, [1, 2]),
        Answer(200, {"choices": []}),
        Answer(200, {"choices": [CHOICE, {**CHOICE, "index": 1}]}),
        Answer(200, {"choices": [{"index": 3, "message": {"content": "x"}}]}),
        Answer(200, {"choices": [{"index": 0}]}),
        Answer(200, {"error": {"message": "overloaded"}}),
        said(""),
        said(" \n"),
        said(None),
        said(7),
    ],
    ids=lambda answer: f"{answer.status}-{str(answer.body)[:30]}",
)
def test_passing_fault_is_tried_again(start: Start, model_of: ModelOf, fault: Answer) -> None:
    server = start(failing_first(fault))
    (reply,) = model_of(server).seat().generate(ask("q"))
    assert (reply.text, reply.error, reply.attempts) == ("re: q", None, 2)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(400, "rejected"), (401, "auth"), (402, "quota"), (403, "auth"), (404, "not_found"), (422, "rejected"),
     (413, "rejected"), (307, "rejected")],
)  # fmt: skip
def test_permanent_failure_costs_only_its_own_call_and_one_attempt(
    start: Start, model_of: ModelOf, status: int, reason: str
) -> None:
    server = start(lambda body, n: Answer(status, "no, and here is why") if asked(body) == "bad" else echo(body, n))
    model = model_of(server)
    replies = model.seat().generate(ask("a", "bad", "b"))
    assert [r.text for r in replies] == ["re: a", "", "re: b"]
    assert replies[1].error == f"{reason}: HTTP {status}, no, and here is why"
    assert (replies[1].reason, replies[1].attempts) == (reason, 1)
    assert len(server.requests) == 3
    assert model.ledger.failures == {reason: 1}


def test_fault_that_stays_becomes_an_abstention_after_the_retries(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(500, "broken") if asked(body) == "bad" else echo(body, n))
    model = model_of(server, retries=2)
    bad, good = model.seat().generate(ask("bad", "good"))
    assert (bad.error, bad.attempts) == ("server: HTTP 500, broken", 3)
    assert good.text == "re: good"
    # 2 conversations, one of them retried twice
    assert (model.ledger.calls, model.ledger.retries, model.ledger.failures) == (2, 2, {"server": 1})
    assert model.ledger.line().endswith("1 unanswered (1 server)")


def test_broken_answers_are_tried_only_twice_more(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: said(""))
    (reply,) = model_of(server, retries=9).seat().generate(ask("q"))
    assert (reply.reason, reply.attempts, len(server.requests)) == ("empty", 3, 3)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (said(None, finish="length", reasoning_content="on"),
         "empty: the answer is empty (finish reason 'length', all of it thinking)"),
        (said(None, finish="content_filter"), "content_filter: finish reason 'content_filter'"),
        (said("half of it", finish="content_filter"), "content_filter: finish reason 'content_filter'"),
        (said(None, refusal="I will not judge this."), "refusal: I will not judge this."),
        (said(None, finish="refusal"), "refusal: finish reason 'refusal'"),
    ],
)  # fmt: skip
def test_answer_that_is_missing_for_a_reason_is_not_asked_for_again(
    start: Start, model_of: ModelOf, answer: Answer, error: str
) -> None:
    server = start(lambda body, n: answer)
    (reply,) = model_of(server).seat().generate(ask("q"))
    assert (reply.error, reply.attempts) == (error, 1)


def test_hanging_server_is_a_timeout(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(delay=30) if asked(body) == "hang" else echo(body, n))
    hung, good = model_of(server, timeout=0.4, retries=1).seat().generate(ask("hang", "good"))
    assert (hung.error, hung.attempts) == ("timeout: no answer within 0.4 s", 2)
    assert good.text == "re: good"


def test_nobody_listens(model_of: ModelOf, start: Start) -> None:
    server = start()
    server.close()
    model = model_of(server, retries=1)
    replies = model.seat().generate(ask(*(f"q{i}" for i in range(60))))
    assert {r.reason for r in replies} <= {"connection", "stopped"}
    # 32 are under way when the fifth fails; by then four slots may have started another
    assert model.ledger.failures["stopped"] >= 60 - 32 - 4
    assert model.ledger.calls == 60 - model.ledger.failures["stopped"]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_in_seconds_is_waited_for_by_all(start: Start, model_of: ModelOf, status: int) -> None:
    def script(body: dict[str, Any], attempt: int) -> Answer:
        if asked(body) == "q0" and attempt == 1:
            return Answer(status, "slow down", {"Retry-After": "1"})
        return replace(echo(body, attempt), delay=0.2)

    server = start(script)
    replies = model_of(server, max_in_flight=2).seat().generate(ask("q0", "q1", "q2", "q3"))
    assert [r.text for r in replies] == ["re: q0", "re: q1", "re: q2", "re: q3"]
    # q0 is refused while q1 is under way; every later call waits for the second that q0 was told to wait
    assert {asked(body) for _, _, body in server.requests[:2]} == {"q0", "q1"}
    refused = next(when for when, _, body in server.requests if asked(body) == "q0")
    assert [when - refused >= 1.0 for when, _, _ in server.requests[2:]] == [True] * 3


def test_retry_after_as_a_date(start: Start, model_of: ModelOf) -> None:
    def script(body: dict[str, Any], attempt: int) -> Answer:
        if attempt > 1:
            return echo(body, attempt)
        return Answer(429, "", {"Retry-After": formatdate(time.time() + 2, usegmt=True)})

    server = start(script)
    (reply,) = model_of(server).seat().generate(ask("q"))
    times = [when for when, _, _ in server.requests]
    assert reply.text == "re: q"
    # the date has whole seconds, so up to one of the two may have passed
    assert times[1] - times[0] >= 0.9


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("3", 3.0), ("0", 0.0), ("-5", 0.0), ("1.5", 1.5), ("soon", None), ("", None), ("inf", None),
     ("nan", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("99999999999999999999 Oct", None)],
)  # fmt: skip
def test_retry_after_values(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_server_that_asks_to_wait_too_long_is_not_waited_for(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(429, "tomorrow", {"Retry-After": "86400"}))
    (reply,) = model_of(server).seat().generate(ask("q"))
    assert (reply.error, reply.attempts) == ("rate_limit: HTTP 429, tomorrow (asks to wait 86400 s)", 1)


def test_a_spent_quota_is_not_a_rate_limit(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(429, {"error": {"code": "insufficient_quota"}}))
    (reply,) = model_of(server).seat().generate(ask("q"))
    assert (reply.reason, reply.attempts) == ("quota", 1)


def test_wrong_key_stops_the_batch_early(start: Start, model_of: ModelOf) -> None:
    server = start(lambda body, n: Answer(401, "who are you?"))
    model = model_of(server, max_in_flight=4)
    replies = model.seat().generate(ask(*(f"q{i}" for i in range(300))))
    # 5 failures end it; by then each of the other 3 slots has one call under way
    assert len(server.requests) <= 8
    assert len(replies) == 300
    assert all(r.error for r in replies)
    assert model.ledger.failures["stopped"] == 300 - len(server.requests)
    error = next(r.error for r in replies if r.reason == "stopped")
    assert error is not None
    assert error.startswith("stopped: not sent, the ")
    assert error.endswith(" calls before it all failed, the last with auth: HTTP 401, who are you?")


def test_stopping_is_for_the_batch_and_not_for_good(start: Start, model_of: ModelOf) -> None:
    broken = True
    server = start(lambda body, n: Answer(401, "") if broken else echo(body, n))
    model = model_of(server)
    assert all(r.error for r in model.seat().generate(ask(*(f"q{i}" for i in range(50)))))
    broken = False
    assert all(r.error is None for r in model.seat().generate(ask(*(f"q{i}" for i in range(50)))))


def test_scattered_refusals_do_not_stop_the_batch(start: Start, model_of: ModelOf) -> None:
    """Some providers answer 403 to a text they refuse to process; that says nothing about the next text."""
    server = start(lambda body, n: Answer(403, "no") if int(asked(body)) % 2 else echo(body, n))
    model = model_of(server, max_in_flight=2)
    model.seat().generate(ask("0"))
    replies = model.seat().generate(ask(*map(str, range(1, 60))))
    assert [r.reason for r in replies] == ["auth" if i % 2 else None for i in range(1, 60)]


def test_redirect_does_not_carry_the_key_elsewhere(
    start: Start, model_of: ModelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-0123456789")
    elsewhere = start()
    server = start(lambda body, n: Answer(307, "", {"Location": elsewhere.url}))
    (reply,) = model_of(server, api_key_env="OPENAI_API_KEY").seat().generate(ask("q"))
    assert reply.reason == "rejected"
    assert elsewhere.requests == []


def test_every_fault_at_once(start: Start, model_of: ModelOf) -> None:
    """200 conversations over a server that fails in every way in turn: all are answered, in order, and counted."""
    plays = [
        Answer(429, "", {"Retry-After": "0"}),
        Answer(500),
        Answer(200, "{", reset=True),
        Answer(200, "no json"),
        said(""),
        Answer(200, {"choices": []}),
        Answer(503, "", {"Retry-After": "0.05"}),
    ]

    def script(body: dict[str, Any], attempt: int) -> Answer:
        number = int(asked(body))
        if number % 10 == 9:
            return Answer(400, "refused")
        return plays[number % len(plays)] if attempt == 1 and number % 3 == 0 else echo(body, attempt)

    model = model_of(start(script))
    replies = model.seat().generate(ask(*map(str, range(200))))
    assert [r.text for r in replies] == ["" if i % 10 == 9 else f"re: {i}" for i in range(200)]
    # numbers divisible by 3 that do not end in 9: 67 less 7 (9, 39, ..., 189)
    assert model.ledger.retries == 67 - 7
    assert model.ledger.failures == {"rejected": 20}
    assert (model.ledger.calls, model.ledger.tokens_in, model.ledger.tokens_out) == (200, 180 * 11, 180 * 7)
