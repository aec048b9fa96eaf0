"""Requests of the evaluated model: what we send, and what is read from the answer, equals the harness's own."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr

from mrag_eval.models import _bodies, answering, evaluating
from tests.worlds.model_server import Answer, ModelServer

Start = Callable[..., ModelServer]
TEXTS = [
    "When was the lighthouse built?",
    "Wann wurde der Leuchtturm gebaut?",
    "灯塔建于哪一年？ 😀",
    "कब बना?",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 3,
    "lone \ud83d surrogate",
    'quote " and \\ and \t',
]
GREEDY: dict[str, Any] = {"until": ["\n"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 16}
# two groups, so that the harness groups by them; the second has keys of its own and no end
SAMPLED: dict[str, Any] = {"do_sample": True, "temperature": 0.7, "top_p": 0.9, "seed": 5}


def reply_text(prompt: Any) -> str:
    """Return a reply that differs by prompt, with marks that readers of replies look for."""
    number = sum(json.dumps(prompt).encode()) % 7
    return [
        f"re {number}",
        " padded \n",
        "<think>so</think>42",
        "so it goes</think>\n42",
        "42\nmore",
        "نعم",
        "«42» 😀",
    ][number]


def answer(body: dict[str, Any], attempt: int) -> Answer:
    """Answer a body in the format of whatever kind of request it is."""
    if "sampling_params" in body:
        prompts = body.get("text", body.get("input_ids"))
        one = {"text": reply_text(prompts), "meta_info": {"finish_reason": {"type": "stop"}}}
        return Answer(body=one)
    if "stop_sequences" in body:
        return Answer(
            body={"content": [{"type": "text", "text": reply_text(body["messages"])}], "stop_reason": "end_turn"}
        )
    if "messages" in body:
        said = {"message": {"role": "assistant", "content": reply_text(body["messages"])}}
        return Answer(body={"choices": [{"index": 0, "finish_reason": "stop", **said}]})
    many = body["prompt"] if isinstance(body["prompt"], list) and not isinstance(body["prompt"][0], int) else None
    prompts = many or [body["prompt"]]
    choices = [{"index": i, "text": reply_text(one), **logprobs(one, body)} for i, one in enumerate(prompts)]
    random.Random(0).shuffle(choices)
    return Answer(body={"choices": choices})


def logprobs(prompt: Any, body: dict[str, Any]) -> dict[str, Any]:
    if not body.get("echo"):
        return {}
    values = [-((7 * token) % 11) / 4 for token in prompt] + [-1.0]
    return {"logprobs": {"token_logprobs": values, "top_logprobs": [{"a": value, "b": -2.0} for value in values]}}


def chats(system: bool) -> list[Any]:
    first = [{"role": "system", "content": "Be brief."}] if system else []
    return [JsonChatStr(json.dumps([*first, {"role": "user", "content": text}], ensure_ascii=False)) for text in TEXTS]


def generation(prompts: Sequence[Any], name: str = "ours") -> list[Instance]:
    """Return requests: two groups of settings, and one sampled request that is repeated."""
    made = [
        Instance("generate_until", {"id": f"q{i}"}, (prompt, dict(GREEDY if i % 3 else SAMPLED)), i, (name, i, 1))
        for i, prompt in enumerate(prompts)
    ]
    return [*made, made[0], made[0]]


CHAT: dict[str, dict[str, Any]] = {
    "local-chat-completions": {"model": "m"},
    "local-chat-completions, thinking": {"model": "m", "think_end_token": "</think>"},
    "local-chat-completions, limits": {"model": "m", "max_gen_toks": 77, "seed": 99, "eos_string": "<end>"},
    "local-chat-completions, no key": {"model": "m"},
    "local-chat-completions, header": {
        "model": "m", "header": {"X-Key": "k-0123456789", "content-type": "application/json; charset=utf-8"},
    },
    "openai-chat-completions": {"model": "gpt-4o"},
    "openai-chat-completions, o1": {"model": "o1-mini"},
    "openai-chat-completions, eos": {"model": "gpt-5-mini", "eos_string": "<end>"},
    "anthropic-chat-completions": {"model": "claude"},
    "anthropic-chat": {"model": "claude", "eos_string": "<end>"},
}  # fmt: skip
PLAIN: dict[str, dict[str, Any]] = {
    "local-completions, text": {"tokenizer_backend": "none"},
    "local-completions, batches of text": {"tokenizer_backend": "none", "batch_size": 3},
    "local-completions, tokens": {"tokenizer_backend": "huggingface"},
    "local-completions, batches of tokens": {"tokenizer_backend": "huggingface", "batch_size": 4},
    "local-completions, cut on the left": {"tokenizer_backend": "huggingface", "batch_size": 2, "max_length": 60},
    "local-completions, beginning": {"tokenizer_backend": "huggingface", "add_bos_token": True},
    "local-completions, text by tokenizer": {"tokenizer_backend": "huggingface", "tokenized_requests": False},
    "local-completions, end": {"tokenizer_backend": "none", "eos_string": "<end>", "max_gen_toks": 5},
    "openai-completions, text": {"tokenizer_backend": "none"},
    "openai-completions, tokens": {"tokenizer_backend": "huggingface", "batch_size": 3},
    "sglang-generate, text": {"tokenizer_backend": "none"},
    "sglang-generate, tokens": {"tokenizer_backend": "huggingface"},
}


HEADERS = ("authorization", "x-api-key", "x-key", "anthropic-version", "content-type")


def key_of(kind: str) -> dict[str, str]:
    """Return the argument by which a provider's key goes to the server of a test, where the harness sends it to any."""
    if "no key" in kind or kind.startswith("sglang"):
        return {}
    return {"api_key_env": "ANTHROPIC_API_KEY" if "anthropic" in kind else "OPENAI_API_KEY"}


def sent(server: ModelServer) -> Counter[tuple[str, bytes, str]]:
    """Return path, bytes and headers of every request, with their number."""
    told = [{k.lower(): v for k, v in headers.items()} for _, headers, _ in server.requests]
    kept = [json.dumps([[name, one[name]] for name in HEADERS if name in one]) for one in told]
    return Counter((path, raw, headers) for (path, raw), headers in zip(server.sent, kept, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("kind", [*CHAT, *PLAIN])
def test_bodies_headers_and_texts_equal_the_harnesss_own(
    start: Start, build: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, kind: str, in_flight: int
) -> None:
    # half of them are kept until they are sent, half are made again
    monkeypatch.setattr(_bodies, "_KEPT", 1000)
    theirs, ours = start(answer), start(answer)
    arguments = {**(CHAT.get(kind) or PLAIN[kind]), "num_concurrent": in_flight}
    # a tokenizer refuses half a character
    prompts = (
        chats(system=True)
        if kind in CHAT
        else [text for text in TEXTS if "\ud83d" not in text or "none" in str(arguments)]
    )
    expected = build(kind, theirs, **arguments).generate_until(generation(prompts))
    lm = build(kind, ours, **arguments)
    own = lm.generate_until
    with evaluating(kind.partition(",")[0], key_of(kind)), answering(lm, {"ours"}) as state:
        replies = lm.generate_until(generation(prompts))
    assert sent(ours) == sent(theirs)
    assert [str(reply) for reply in replies] == expected
    assert not any(reply.failure or reply.outcome for reply in replies)
    assert state.ledger.calls == len(ours.sent)
    # the model is left as it was
    assert lm.generate_until == own
    assert (lm._concurrent, lm.get_batched_requests.__func__) == (in_flight, type(lm).get_batched_requests)


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_likelihoods_equal_the_harnesss_own(
    start: Start, build: Callable[..., Any], batch_size: int, in_flight: int
) -> None:
    theirs, ours = start(answer), start(answer)
    arguments = {"tokenizer_backend": "huggingface", "batch_size": batch_size, "num_concurrent": in_flight}
    arguments["max_length"] = 80
    requests = [
        Instance("loglikelihood", {}, (text, f" {option}"), i, ("ours", i, 1))
        for i, text in enumerate(TEXTS[:5])
        for option in ("A", "long option B")
    ]
    expected = build("local-completions", theirs, **arguments).loglikelihood(requests)
    lm = build("local-completions", ours, **arguments)
    for _ in range(2):
        with evaluating("local-completions", key_of("local-completions")), answering(lm, {"ours"}):
            assert lm.loglikelihood(requests) == expected
    # the second time all come from the cache
    assert sent(ours) == sent(theirs)


@pytest.mark.parametrize(
    ("named", "key"),
    [
        ({"api_key_env": "OPENAI_API_KEY"}, "planted-key-0123456789"),
        ({"api_key": "token-abc123"}, "token-abc123"),
        ({}, ""),
    ],
    ids=["named", "typed", "none"],
)
def test_requests_of_other_tasks_are_the_harnesss(
    start: Start, build: Callable[..., Any], named: dict[str, str], key: str
) -> None:
    theirs, ours = start(answer), start(answer)
    mixed = [
        request
        for pair in zip(generation(chats(False), "ours"), generation(chats(False), "other"), strict=True)
        for request in pair
    ]
    expected = build("local-chat-completions", theirs).generate_until(mixed)
    lm = build("local-chat-completions", ours)
    with evaluating("local-chat-completions", named), answering(lm, {"ours"}) as state:
        replies = lm.generate_until(mixed)
    assert [str(reply) for reply in replies] == expected
    assert [type(reply).__name__ for reply in replies] == ["ModelReply", "str"] * (len(mixed) // 2)
    # half of them are of other tasks, and carry the provider's key wherever they go; ours the key that is named
    both: Counter[tuple[str, bytes, str]] = Counter()
    for (path, raw, headers), number in sent(theirs).items():
        assert "Bearer planted-key-0123456789" in headers
        for one in (headers, headers.replace("planted-key-0123456789", key)):
            both[path, raw, one] += number // 2
    assert sent(ours) == both
    assert state.ledger.calls == len(mixed) // 2


def test_runs_inside_an_event_loop(start: Start, build: Callable[..., Any]) -> None:
    import asyncio

    lm = build("local-chat-completions", start(answer), num_concurrent=4)

    async def notebook() -> list[str]:
        with answering(lm, {"ours"}):
            return lm.generate_until(generation(chats(False)))

    assert len(asyncio.run(notebook())) == len(TEXTS) + 2
