"""Addresses and keys that no request can carry are refused before anything is generated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.cli import main
from mrag_eval.config import ModelSpec, Retrieval, load_config, validated
from mrag_eval.models import AuxModel
from mrag_eval.platform import ConfigError, Endpoint, Store, address_fault, bearer
from mrag_eval.retrievers import load_embedder
from tests.worlds.model_server import ModelServer

WRONG = [
    "nourl",
    "localhost:8000/v1",
    "ftp://host/v1",
    "http://",
    "http://[::1/v1",
    "http://host:port/v1",
    "http://host:70000/v1",
    f"http://{'a' * 300}/v1",
    f"http://{'a' * 64}.example/v1",
    f"http://{'ü' * 300}.example/v1",
    "http://a..b/v1",
    "http://host/v1\n",
    "http://host /v1",
]
RIGHT = [
    "http://localhost:8000/v1",
    "https://api.example.org/v1/chat?x=1",
    "http://[::1]:8000/v1",
    "http://127.0.0.1",
    "https://bücher.example/v1",
    f"http://{'a' * 63}.example./v1",
]


@pytest.mark.parametrize("url", WRONG)
def test_wrong_addresses(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address_fault(url)
    args = {"model": "local-chat-completions", "model_args": {"model": "m", "base_url": url}}
    for read in (
        lambda: validated(ModelSpec, args, "models.m"),
        lambda: validated(Retrieval, {"rerank": {"kind": "api", "model": "r", "url": url}}, "retrieval"),
        lambda: validated(Retrieval, {"mode": "all", "embedder": {"model": "openai:m", "base_url": url}}, "retrieval"),
        lambda: validated(Retrieval, {"mode": "all", "embedder": f"openai:m@{url}"}, "retrieval"),
        lambda: load_embedder(f"openai:m@{url}"),
        lambda: Endpoint("embedder m", url, {}),
    ):
        with pytest.raises(ConfigError) as caught:
            read()
        assert "\n" not in caught.value.message
        assert caught.value.next_step
    monkeypatch.setenv("MRAG_CONFIG", str(tmp_path / "mrag.yaml"))
    (tmp_path / "mrag.yaml").write_text(yaml.safe_dump({"models": {"m": args}}), "utf-8")
    with pytest.raises(ConfigError, match=r"mrag\.yaml, models\.m\.model_args: base_url"):
        load_config()


@pytest.mark.parametrize("url", RIGHT)
def test_right_addresses(url: str) -> None:
    assert address_fault(url) is None


@pytest.mark.parametrize(
    ("flags", "variable", "words"),
    [
        (["--model_args", "model=m,base_url=nourl"], None, "--model_args base_url: the address does not begin"),
        (["--model_args", "model=m,base_url=http://[::1/v1"], None, "--model_args base_url: the address"),
        (
            ["--model_args", '{"base_url": "http://h/v1", "header": {"X-A": "b\\n"}}'],
            None,
            "header X-A ends in a newline",
        ),
        (
            ["--model_args", "model=m,base_url=http://h/v1,api_key_env=OPENAI_API_KEY"],
            "key\n",
            "variable OPENAI_API_KEY ends in a newline",
        ),
    ],
)
def test_the_evaluated_model_is_checked_first(
    flags: list[str],
    variable: str | None,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", variable or "key")
    with pytest.raises(SystemExit) as done:
        main(["run", "--model", "local-chat-completions", "--tasks", "mrag_demo_norag", *flags])
    lines = capsys.readouterr().err.splitlines()
    assert done.value.code == 2
    assert words in lines[-2]


@pytest.mark.parametrize(
    ("key", "words"), [("k\n", "ends in a newline"), ("k\x01k", "control"), ("ключ", "no key has")]
)
def test_a_key_that_no_header_can_carry(
    key: str,
    words: str,
    start: Callable[..., ModelServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MINE", key)
    with pytest.raises(ConfigError, match=f"embedder m: the environment variable MINE .*{words}"):
        bearer("MINE", "embedder m")
    server = start()
    args: dict[str, Any] = {"model": "m", "base_url": server.url}
    spec = ModelSpec(model="local-chat-completions", model_args=args, api_key_env="MINE")
    with pytest.raises(ConfigError, match=f"model 'judge': the environment variable MINE .*{words}"):
        AuxModel(spec, name="judge", cache=Store(tmp_path / "x.sqlite")).check()
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError, match=words):
        AuxModel(ModelSpec(model="openai-chat-completions", model_args={"model": "m"}), name="judge").check()
    assert server.requests == []
