"""What an endpoint may do, and what becomes of the evaluated model's row: scored, its own outcome, or a failure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr

from mrag_eval.core import ModelReply
from mrag_eval.harness import model_class
from mrag_eval.models import Answering, answering
from tests.worlds.model_server import Answer, ModelServer, said

CHAT, TEXT, BLOCKS = "local-chat-completions", "local-completions", "anthropic-chat-completions"
SCORED, EMPTY, CUT, REFUSAL = "scored", "empty", "thinking cut", "refusal"
FILTER, BROKEN, MALFORMED_REPLY = "failed: content_filter", "failed: broken_off", "failed: malformed"

# ------------------------------------------------------------------ content x end x format

# What a reply may hold, and what it is if the provider says nothing of its end, or that the model stopped, or that the
# limit was reached. Each is given in the format's own words below.
CONTENTS: dict[str, tuple[str, str, str]] = {
    "text": (SCORED, SCORED, SCORED),
    "text after thinking": (SCORED, SCORED, SCORED),
    "text after thinking apart": (SCORED, SCORED, SCORED),
    "parts": (SCORED, SCORED, SCORED),
    "nothing": (MALFORMED_REPLY, EMPTY, CUT),
    "null": (MALFORMED_REPLY, EMPTY, CUT),
    "left out": (MALFORMED_REPLY, EMPTY, CUT),
    "blank": (MALFORMED_REPLY, EMPTY, EMPTY),
    "thinking apart": (MALFORMED_REPLY, EMPTY, CUT),
    "thinking without end": (CUT, EMPTY, CUT),
    "thinking and no more": (EMPTY, EMPTY, CUT),
    "refusal apart": (REFUSAL, REFUSAL, REFUSAL),
}
WRITTEN: dict[str, Any] = {
    "text": "42",
    "text after thinking": "<think>so</think>42",
    "nothing": "",
    "null": None,
    "blank": " \n",
    "thinking without end": "<think>so",
    "thinking and no more": "<think>so</think>",
}
THOUGHT = {"type": "thinking", "thinking": "so"}
PARTS = [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
MESSAGES: dict[str, dict[str, Any]] = {
    **{name: {"content": text} for name, text in WRITTEN.items()},
    "text after thinking apart": {"content": "42", "reasoning_content": "so"},
    "parts": {"content": PARTS},
    "left out": {},
    "thinking apart": {"content": None, "reasoning": "so"},
    "refusal apart": {"content": None, "refusal": "I cannot help with that."},
}
BLOCK_LISTS: dict[str, list[Any]] = {
    **{name: [{"type": "text", "text": text}] for name, text in WRITTEN.items() if text is not None},
    "text after thinking apart": [THOUGHT, {"type": "text", "text": "42"}],
    "parts": PARTS,
    "left out": [],
    "thinking apart": [THOUGHT],
}
ENDS: dict[str, tuple[str | None, str | None, str | None]] = {
    # format -> (unknown, stopped, limit)
    CHAT: (None, "stop", "length"),
    TEXT: (None, "stop", "length"),
    BLOCKS: (None, "end_turn", "max_tokens"),
}
# Ends that say more than where the reply ends, whatever it holds.
SAYING = {
    **dict.fromkeys(("content_filter", "SAFETY", "ERROR_TOXIC", "SPII", "guardrail_intervened"), FILTER),
    # one that no provider has yet stands for all that the list does not know
    **dict.fromkeys(
        (
            "abort",
            "cancelled",
            "failed",
            "insufficient_system_resource",
            "network_error",
            "OTHER",
            "timeout",
            "a new one",
        ),
        BROKEN,
    ),
    "refusal": REFUSAL,
    "error": "failed: server",
}
# The words of providers for a whole reply, and for one at its limit.
WHOLE = (
    "stop", "eos", "eos_token", "end_turn", "stop_sequence", "COMPLETE", "completed", "tool_calls", "tool_use",
)  # fmt: skip
LIMITS = ("length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded")


@dataclass(frozen=True)
class Case:
    """One behaviour of an endpoint, and what becomes of the row."""

    kind: str
    answer: Answer
    becomes: str


def bodied(kind: str, name: str, end: str | None) -> Any:
    if kind == CHAT:
        return {"choices": [{"index": 0, "finish_reason": end, "message": {"role": "assistant", **MESSAGES[name]}}]}
    if kind == TEXT:
        return {"choices": [{"index": 0, "finish_reason": end, "text": WRITTEN[name]}]}
    return {"type": "message", "stop_reason": end, "content": BLOCK_LISTS[name]}


def known(kind: str) -> list[str]:
    return list({CHAT: MESSAGES, TEXT: WRITTEN, BLOCKS: BLOCK_LISTS}[kind])


def contents() -> Iterator[tuple[str, Case]]:
    for kind, ends in ENDS.items():
        for name, nth in itertools.product(known(kind), range(3)):
            yield (
                f"{kind}, {name}, end {ends[nth]}",
                Case(kind, Answer(body=bodied(kind, name, ends[nth])), CONTENTS[name][nth]),
            )
        for name, (end, becomes) in itertools.product(("text", "nothing"), SAYING.items()):
            for said_so in dict.fromkeys((end, end.upper(), end.lower())):
                body = bodied(kind, name, said_so)
                yield f"{kind}, {name}, end {said_so}", Case(kind, Answer(body=body), becomes)
        for end, name in itertools.product((*WHOLE, *LIMITS), ("text", "nothing")):
            becomes = SCORED if name == "text" else CUT if end in LIMITS else EMPTY
            for said_so in dict.fromkeys((end, end.upper(), end.lower())):
                body = bodied(kind, name, said_so)
                yield f"{kind}, {name}, end {said_so}", Case(kind, Answer(body=body), becomes)


CASES = dict(contents())


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-key-9876543210")
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


def ask(server: ModelServer, kind: str, prompts: list[str], **arguments: Any) -> tuple[list[Any], Answering]:
    """Return the replies to prompts, and how they were answered; pauses between attempts are short."""
    chosen = {"tokenizer_backend": "none"} if kind == TEXT else {}
    made = {"model": "m", "num_concurrent": 16, "max_retries": 2, **chosen, **arguments}
    timeout = made.pop("timeout", 20)
    lm = model_class(kind)(base_url=server.url, **made)
    lm.timeout = timeout
    chats = [JsonChatStr(json.dumps([{"role": "user", "content": prompt}])) for prompt in prompts]
    given: list[Any] = prompts if kind == TEXT else list(chats)
    requests = [
        Instance("generate_until", {"id": f"row {i}"}, (one, {"until": ["\n"]}), i, ("task", i, 1))
        for i, one in enumerate(given)
    ]
    with answering(lm, {"task"}, first_backoff=0.01) as state:
        return lm.generate_until(requests), state


def became(reply: Any) -> str:
    assert isinstance(reply, ModelReply)
    if reply.failure is not None:
        assert (str(reply), reply.failure.stage, reply.failure.model) == ("", "answer", "m")
        return f"failed: {reply.failure.reason}"
    return reply.outcome or SCORED


@pytest.fixture(scope="module")
def replies() -> Iterator[dict[str, Any]]:
    """Return the reply of each case: all cases of a format are the rows of one task."""
    server = ModelServer(lambda body, attempt: CASES[prompt_of(body)].answer)
    found: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_API_KEY", "planted-key-9876543210")
        for kind in ENDS:
            rows = [name for name, case in CASES.items() if case.kind == kind]
            found |= dict(zip(rows, ask(server, kind, rows)[0], strict=True))
    yield found
    server.close()


def prompt_of(body: dict[str, Any]) -> str:
    if "prompt" in body:
        return str(body["prompt"])
    content = body["messages"][-1]["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


@pytest.mark.parametrize("name", CASES)
def test_a_reply_is_scored_or_an_outcome_or_a_failure(replies: dict[str, Any], name: str) -> None:
    reply = replies[name]
    assert became(reply) == CASES[name].becomes
    if CASES[name].becomes == SCORED:
        assert str(reply) in ("42", "<think>so</think>42")
    if "refusal apart" in name:
        assert str(reply) == "I cannot help with that."


# ------------------------------------------------------------------ statuses, bodies, time

STATUSES = {
    400: "rejected", 401: "auth", 402: "quota", 403: "auth", 404: "not_found", 413: "rejected", 422: "rejected",
    307: "rejected", 408: "timeout", 409: "conflict", 425: "too_early", 429: "rate_limit", 500: "server",
    502: "server", 503: "server", 504: "server", 529: "server",
}  # fmt: skip
PASSING = [status for status, reason in STATUSES.items() if reason not in ("rejected", "auth", "quota", "not_found")]
ERRORS: dict[str, tuple[Any, str]] = {
    # an error with status 200, by what it says of itself
    "words": ({"error": {"message": "the engine stumbled"}}, "server"),
    "a word": ({"error": "the engine stumbled"}, "server"),
    "a status": ({"error": {"message": "slow down", "code": 429}}, "rate_limit"),
    "a status as text": ({"error": {"message": "no", "code": "401"}}, "auth"),
    "a type": ({"type": "error", "error": {"type": "overloaded_error", "message": "later"}}, "server"),
    "a key's type": ({"type": "error", "error": {"type": "authentication_error", "message": "no"}}, "auth"),
    "a code": ({"error": {"code": "context_length_exceeded", "message": "too long"}}, "rejected"),
    "vllm": ({"object": "error", "message": "no such model", "type": "NotFoundError", "code": 404}, "not_found"),
    "beside choices": ({"error": {"message": "broke off"}, **said("4").body}, "server"),
    "details": ({"detail": "the engine stumbled"}, "server"),
    "in a choice": ({"choices": [{"index": 0, "error": {"code": 502, "message": "upstream"}}]}, "server"),
}
FILTERED: dict[str, Any] = {
    "code": {"error": {"code": "content_filter", "message": "filtered"}},
    "inner code": {"error": {"code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
    "policy": {"error": {"code": "content_policy_violation", "message": "no"}},
    "words": {"error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}},
    "inspection": {"code": "data_inspection_failed", "message": "no"},
    "risk": {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}},
    "flagged": {"error": {"code": 403, "message": "moderation", "metadata": {"flagged_input": "..."}}},
}
MALFORMED: dict[str, Any] = {
    "a page": "<html>gateway</html>",
    "nothing": "",
    "a cut object": '{"choices": [{"index": 0, "mess',
    "brackets": "[" * 100_000,
    "a list": [1, 2],
    "a text": '"42"',
    "no choices": {"choices": []},
    "null choices": {"choices": None},
    "two choices": {"choices": [{"index": i, "message": {"content": "42"}} for i in (0, 1)]},
    "another's choice": {"choices": [{"index": 3, "message": {"content": "42"}}]},
    "an empty message": {"choices": [{"index": 0, "finish_reason": "stop", "message": {}}]},
    "no message": {"choices": [{"index": 0, "finish_reason": "stop"}]},
    "another format": {"choices": [{"index": 0, "text": "42"}]},
    "a number": said(7).body,
}
BY_ITSELF: dict[str, tuple[Answer, str]] = {
    **{f"status {status}": (Answer(status, "why"), reason) for status, reason in STATUSES.items()},
    **{f"error with status 200: {name}": (Answer(body=body), reason) for name, (body, reason) in ERRORS.items()},
    **{
        f"filter with status {status}: {name}": (Answer(status, body), "content_filter")
        for status in (200, 400, 403)
        for name, body in FILTERED.items()
    },
    **{f"malformed: {name}": (Answer(body=body), "malformed") for name, body in MALFORMED.items()},
    "quota": (Answer(429, {"error": {"code": "insufficient_quota"}}), "quota"),
    "asks to wait a day": (Answer(429, "", {"Retry-After": "86400"}), "rate_limit"),
    "a reset": (Answer(body='{"choices": [', reset=True), "connection"),
    "an unknown encoding": (Answer(body="42", headers={"Content-Encoding": "br"}), "malformed"),
    "a longer body than any": (Answer(body=" " * (17 << 20)), "too_long"),
    "silence": (Answer(delay=30), "timeout"),
}


def one(start: Callable[..., ModelServer], script: Any, **arguments: Any) -> tuple[Any, Answering, ModelServer]:
    server = start(script)
    (reply,), state = ask(server, CHAT, ["q"], **arguments)
    return reply, state, server


@pytest.mark.parametrize("name", BY_ITSELF)
def test_a_failed_call_is_a_failure_with_its_reason(start: Callable[..., ModelServer], name: str) -> None:
    answer, reason = BY_ITSELF[name]
    reply, state, server = one(start, lambda body, attempt: answer, timeout=0.3 if name == "silence" else 20)
    assert became(reply) == f"failed: {reason}"
    assert state.ledger.failures == {reason: 1}
    assert reply.failure.detail.startswith(f"{state.host}: ")
    assert state.host == server.url.split("/")[2]


@pytest.mark.parametrize(
    "fault",
    [*(f"status {status}" for status in PASSING), "a reset", "silence", *(f"malformed: {name}" for name in MALFORMED),
     "error with status 200: words"],
)  # fmt: skip
def test_a_fault_that_passes_is_not_seen(start: Callable[..., ModelServer], fault: str) -> None:
    answer = BY_ITSELF[fault][0]
    reply, state, _ = one(
        start, lambda body, n: answer if n == 1 else said("42"), timeout=0.3 if fault == "silence" else 20
    )
    assert (str(reply), became(reply)) == ("42", SCORED)
    assert (state.ledger.calls, state.ledger.retries, state.ledger.failures) == (1, 1, {})


@pytest.mark.parametrize("name", ["a mark of byte order", "an index left out", "more keys", "a null error"])
def test_what_servers_add_or_leave_out_is_read(start: Callable[..., ModelServer], name: str) -> None:
    good = said("42").body
    choice = good["choices"][0]
    bodies: dict[str, Any] = {
        "a mark of byte order": "\ufeff" + json.dumps(good),
        "an index left out": {"choices": [{key: value for key, value in choice.items() if key != "index"}]},
        "more keys": {**good, "x": 1, "choices": [{**choice, "logprobs": None}]},
        "a null error": {**good, "error": None},
    }
    reply, _, _ = one(start, lambda body, attempt: Answer(body=bodies[name]))
    assert (str(reply), became(reply)) == ("42", SCORED)


def test_a_reply_that_broke_off_is_asked_for_again_and_names_its_end(start: Callable[..., ModelServer]) -> None:
    reply, state, server = one(start, lambda body, attempt: said("4", finish="abort"))
    assert (became(reply), len(server.requests), state.outcomes) == (BROKEN, 3, {})
    assert "finish reason 'abort'" in reply.failure.detail
    whole, _, _ = one(start, lambda body, n: said("4", finish="abort") if n == 1 else said("42"))
    assert (str(whole), became(whole)) == ("42", SCORED)


def test_an_empty_answer_is_not_asked_for_again(start: Callable[..., ModelServer]) -> None:
    reply, state, server = one(start, lambda body, attempt: said(""))
    assert (became(reply), len(server.requests), state.outcomes) == (EMPTY, 1, {EMPTY: 1})


def test_a_wait_that_the_server_asks_for_is_kept(start: Callable[..., ModelServer]) -> None:
    _, _, server = one(start, lambda body, n: Answer(429, "", {"Retry-After": "0.4"}) if n == 1 else said("42"))
    first, second = (when for when, _, _ in server.requests)
    assert second - first >= 0.4


def test_a_closed_port_is_a_failed_connection(start: Callable[..., ModelServer]) -> None:
    server = start()
    server.close()
    (reply,), _ = ask(server, CHAT, ["q"])
    assert became(reply) == "failed: connection"


def test_all_rows_failing_ends_the_asking_early(start: Callable[..., ModelServer]) -> None:
    server = start(lambda body, attempt: Answer(401, "who are you?"))
    found, state = ask(server, CHAT, [f"q{i}" for i in range(200)])
    assert {became(reply) for reply in found} == {"failed: auth", "failed: stopped"}
    assert len(server.requests) < 40
    assert sum(state.ledger.failures.values()) == 200


def test_what_ends_the_thinking_may_be_an_argument(start: Callable[..., ModelServer]) -> None:
    texts = {"cut": ("so it goes", "length"), "whole": ("so</end>42", "stop"), "none": ("42", "stop")}
    server = start(lambda body, n: said(texts[prompt_of(body)][0], finish=texts[prompt_of(body)][1]))
    found, _ = ask(server, CHAT, list(texts), think_end_token="</end>")
    assert [(str(reply), became(reply)) for reply in found] == [("so it goes", CUT), ("42", SCORED), ("42", SCORED)]


def test_the_end_and_the_model_that_answered_are_kept(start: Callable[..., ModelServer]) -> None:
    reply, state, _ = one(
        start,
        lambda body, n: replace(
            said("42", finish="length"), body={**said("42", finish="length").body, "model": "m-2026"}
        ),
    )
    assert (state.finish_reasons, state.answered_by, reply.outcome) == ({"length": 1}, {"m-2026": 1}, None)


@pytest.mark.parametrize(
    ("choices", "becomes"),
    [
        ([2, 0, 1], [SCORED] * 3),
        ([0, 2], [SCORED, "failed: malformed", SCORED]),
        ([0, 1, 2, 3], ["failed: malformed"] * 3),
        ([None, None, None], [SCORED] * 3),
        ([None, 1, 1], ["failed: malformed", SCORED, "failed: malformed"]),
    ],
)
def test_rows_of_one_body_fail_one_by_one(
    start: Callable[..., ModelServer], choices: list[Any], becomes: list[str]
) -> None:
    body = {"choices": [{"index": index, "text": f"text {index}", "finish_reason": "stop"} for index in choices]}
    server = start(lambda sent, attempt: Answer(body=body))
    found, state = ask(server, TEXT, ["a", "b", "c"], batch_size=3)
    assert [became(reply) for reply in found] == becomes
    if choices[0] is not None:
        assert [str(reply) for reply in found] == [
            f"text {i}" if one == SCORED else "" for i, one in enumerate(becomes)
        ]
    assert state.ledger.calls == 1


def test_the_table_is_as_long_as_it_should_be() -> None:
    assert len(CASES) + len(BY_ITSELF) >= 85
