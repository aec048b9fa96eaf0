"""A scripted server, and models that call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import ModelSpec
from mrag_eval.harness import model_class
from mrag_eval.models import AuxModel
from mrag_eval.platform import Store
from tests.worlds.model_server import ModelServer, Script, echo


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def start() -> Iterator[Callable[..., ModelServer]]:
    """Start a server with a script; stop it after the test."""
    servers: list[ModelServer] = []

    def begin(script: Script = echo) -> ModelServer:
        servers.append(ModelServer(script))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "models.sqlite")


@pytest.fixture
def model_of() -> Callable[..., AuxModel]:
    """Return the auxiliary model behind a server; pauses between attempts are short."""

    def make(server: ModelServer, cache: Store | None = None, **changes: Any) -> AuxModel:
        args = {"model": "m", "base_url": server.url, **changes.pop("model_args", {})}
        settings: dict[str, Any] = {"model": "local-chat-completions", "retries": 3, "timeout": 20, **changes}
        return AuxModel(ModelSpec(model_args=args, **settings), name="judge", cache=cache, first_backoff=0.01)

    return make


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a small tokenizer with all bytes, a beginning and an end."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<s>", "</s>", *letters])}
    base = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = decoders.ByteLevel()
    folder = tmp_path_factory.mktemp("tokenizer")
    made = PreTrainedTokenizerFast(tokenizer_object=base, bos_token="<s>", eos_token="</s>")
    made.chat_template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>"
    made.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tokenizer: str, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that builds a model of the harness behind a server."""
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-key-9876543210")
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))

    def make(kind: str, server: ModelServer, **arguments: Any) -> Any:
        name = kind.partition(",")[0]
        if "no key" in kind:
            monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        if arguments.get("tokenizer_backend") == "huggingface":
            arguments = {"tokenizer": tokenizer, "model": "m", **arguments}
        return model_class(name)(base_url=server.url, **{"model": "m", **arguments})

    return make


def ask(*texts: str) -> list[list[dict[str, str]]]:
    """Return one conversation of one user message per text."""
    return [[{"role": "user", "content": text}] for text in texts]
