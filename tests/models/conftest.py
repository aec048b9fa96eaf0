"""A scripted server, and models that call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import ModelSpec
from mrag_eval.core import Store
from mrag_eval.models import AuxModel
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


def ask(*texts: str) -> list[list[dict[str, str]]]:
    """Return one conversation of one user message per text."""
    return [[{"role": "user", "content": text}] for text in texts]
