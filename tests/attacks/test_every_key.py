"""Every key that a server may demand is sent as it was given, by every seat, and to the host alone that it is for."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import ApiRerank, ModelSpec, Retriever, system_spec
from mrag_eval.harness import model_class
from mrag_eval.models import AuxModel, RagSystem, evaluating
from mrag_eval.models._api import endpoint_of, with_key
from mrag_eval.platform import hidden, hide
from mrag_eval.retrieval._own_index import OwnIndex, _Asked
from mrag_eval.retrieval.rerank._api import ApiReranker
from mrag_eval.retrievers import load_embedder
from tests.worlds.embedding_server import serving
from tests.worlds.model_server import Answer, ModelServer

_DRAW = random.Random(8)
_LOWER, _ALL = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _drawn(letters: str, size: int, count: int) -> list[str]:
    return ["".join(_DRAW.choices(letters, k=size)) for _ in range(count)]


# What servers, their documentation and their users take for keys.
COMMON = [
    "EMPTY", "empty", "none", "None", "null", "NA", "n/a", "no-key", "nokey", "no_key_needed", "not-needed", "unused",
    "not-required", "dummy", "dummy-key", "dummy-key-dummy", "fake", "fake-key", "test", "test-key", "placeholder",
    "x", "xx", "xxx", "0", "1", "1234", "12345678", "123456", "key", "KEY", "abc", "abc123", "secret", "password",
    "passwd", "admin", "root", "guest", "user", "token", "token-abc123", "apikey", "api-key", "api_key", "my-key",
    "mykey", "changeme", "change-me", "letmein", "local", "localai", "localhost", "ollama", "lm-studio", "lmstudio",
    "vllm", "sglang", "tgi", "llama.cpp", "llamafile", "litellm", "sk-1234", "sk-12345", "sk-xxx", "sk-", "sk-test",
    "sk-no-key-required", "sk-or-v1", "hf_", "hf_xxx", "bearer", "-", "anything", "engineer", "passages", "rerank",
    "demo",
]  # fmt: skip
RANDOM = [
    *_drawn(_LOWER, 16, 8), *_drawn(_ALL, 16, 6), *_drawn(_ALL, 32, 6), *_drawn("0123456789abcdef", 32, 4),
    *(f"sk-{key}" for key in _drawn(_ALL, 48, 4)), *(f"hf_{key}" for key in _drawn(_ALL, 34, 2)),
]  # fmt: skip
# Short ones that look like keys all the same: a file must not hold them.
_LIKE_KEYS = ("sk-12345", "sk-or-v1")
KEYS = [*COMMON, *RANDOM]
assert len(KEYS) == len(set(KEYS)) == 108, len(set(KEYS))


def _said(body: Mapping[str, Any], attempt: int) -> Answer:
    if "documents" in body:
        results = [{"index": i, "relevance_score": 0.5} for i in range(len(body["documents"]))]
        return Answer(body={"results": results})
    message = {"role": "assistant", "content": "yes"}
    passages = [{"id": "a", "text": "a passage", "lang": "en"}]
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    return Answer(body={"choices": choices, "answer": "yes", "contexts": [], "passages": passages})


@contextmanager
def _env(name: str, value: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        yield


def _evaluated(server: ModelServer, key: str, **how: str) -> str:
    args = {"model": "m", "base_url": server.url, "tokenizer_backend": "none", **how}
    with evaluating("local-chat-completions", args):
        lm = model_class("local-chat-completions")(**args)
        return str(endpoint_of(with_key(lm, "m"), "m").headers["Authorization"])


def _typed(server: ModelServer, key: str) -> str:
    return _evaluated(server, key, api_key=key)


def _named(server: ModelServer, key: str) -> str:
    with _env("MINE", key):
        return _evaluated(server, key, api_key_env="MINE")


def _last(server: ModelServer) -> str:
    return str(server.requests[-1][1]["Authorization"])


def _judge(server: ModelServer, key: str) -> str:
    args = {"model": "m", "base_url": server.url}
    with _env("MINE", key):
        spec = ModelSpec(model="local-chat-completions", model_args=args, api_key_env="MINE", retries=0)
        AuxModel(spec, name="judge").seat().generate([[{"role": "user", "content": f"is {key} right?"}]])
    return _last(server)


def _system(server: ModelServer, key: str) -> str:
    with _env("MINE", key):
        RagSystem(system_spec({"url": server.url, "api_key_env": "MINE", "max_retries": 0})).ask([(key, "en")])
    return _last(server)


def _retriever(server: ModelServer, key: str) -> str:
    with _env("MINE", key):
        block = Retriever(url=server.url, api_key_env="MINE", passages="passages", retries=0)
        list(OwnIndex(block)._asker.answers([_Asked("q", "en", 1)]))
    return _last(server)


def _reranker(server: ModelServer, key: str) -> str:
    with _env("MINE", key):
        block = ApiRerank(kind="api", model="m", url=server.url, api_key_env="MINE", retries=0)
        ApiReranker(block).scores(["q"], [["a", "b"]])
    return _last(server)


def _embedder(server: ModelServer, key: str) -> str:
    with _env("MINE", key), serving() as endpoint:
        spec = {"model": f"openai:m@{endpoint.url}", "api_key_env": "MINE"}
        assert np.isfinite(load_embedder(spec).embed_queries(["q"])).all()
        return str(endpoint.requests[-1][1]["Authorization"])


SEATS: Mapping[str, Callable[[ModelServer, str], str]] = {
    "evaluated, typed": _typed,
    "evaluated, named": _named,
    "judge": _judge,
    "system": _system,
    "retriever": _retriever,
    "reranker": _reranker,
    "embedder": _embedder,
}


@pytest.mark.parametrize("seat", SEATS)
def test_every_key_is_sent_as_given_and_shown_nowhere(
    seat: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    server = ModelServer(_said)
    for key in KEYS:
        sent = SEATS[seat](server, key)
        assert sent == f"Bearer {key}"
        shown = hide(json.dumps({"headers": {"Authorization": sent}, "said": f"the header was {sent}"}))
        assert f"Bearer {key}" not in shown
        arguments = hidden({"model_args": {"api_key": key}, "text": f"api_key={key},"})
        if seat == "evaluated, typed":
            assert arguments == {"model_args": {"api_key": "(hidden)"}, "text": "api_key=(hidden),"}
        if len(key) >= 20:
            # long and random: in no byte at all
            coded = base64.b64encode(key.encode()).decode()
            assert not [form for form in (key, coded) if form in hide(f"<{key}> <{coded}>")]
    # what is short or common stays in texts, where it is no key
    text = "the engineer of the local guest house has the key 1234"
    assert hide(text) == text


@pytest.mark.parametrize("key", [key for key in COMMON if key not in _LIKE_KEYS])
def test_what_stands_in_for_a_key_may_stand_in_the_config_file(key: str) -> None:
    server = ModelServer(_said)
    spec = ModelSpec(
        model="local-chat-completions", model_args={"model": "m", "base_url": server.url, "api_key": key}, retries=0
    )
    AuxModel(spec, name="judge").seat().generate([[{"role": "user", "content": "right?"}]])
    assert _last(server) == f"Bearer {key}"


@pytest.mark.parametrize("key", [*_LIKE_KEYS, *(key for key in RANDOM if len(key) >= 20)])
def test_a_real_key_may_not(key: str) -> None:
    with pytest.raises(ValueError, match="'api_key' holds a secret") as refused:
        ModelSpec(model="local-chat-completions", model_args={"model": "m", "api_key": key})
    assert key not in str(refused.value).partition("[")[0]


@pytest.mark.parametrize("kind", ["openai-chat-completions", "local-chat-completions"])
def test_a_providers_key_goes_to_no_other_host(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-providers-key-0123456789")
    server = ModelServer(_said)
    spec = ModelSpec(model=kind, model_args={"model": "m", "base_url": server.url}, retries=0)
    with caplog.at_level("INFO", "lm_eval"):
        AuxModel(spec, name="judge").seat().generate([[{"role": "user", "content": "right?"}]])
        args = {"model": "m", "base_url": server.url, "tokenizer_backend": "none"}
        with evaluating(kind, args):
            own = endpoint_of(with_key(model_class(kind)(**args), "m"), "m")
    assert "Authorization" not in server.requests[-1][1]
    assert "a-providers-key-0123456789" not in str(own.headers)
    named = spec.model_copy(update={"api_key_env": "OPENAI_API_KEY"})
    AuxModel(named, name="judge").seat().generate([[{"role": "user", "content": "right?"}]])
    assert _last(server) == "Bearer a-providers-key-0123456789"


def test_a_providers_key_goes_to_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-providers-key-0123456789")
    for url in ({}, {"base_url": "https://api.openai.com/v1/chat/completions"}):
        args = {"model": "m", "tokenizer_backend": "none", **url}
        with evaluating("openai-chat-completions", args):
            lm = model_class("openai-chat-completions")(**args)
            assert endpoint_of(with_key(lm, "m"), "m").headers["Authorization"] == "Bearer a-providers-key-0123456789"
