"""Models in the config file: faults are reported in one line, and no secret is printed with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.config import ModelSpec, load_config
from mrag_eval.models import get, named_spec
from mrag_eval.platform import ConfigError, hide

SECRET = "planted-key-0123456789"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write the active config file."""
    path = tmp_path / "mrag.yaml"
    monkeypatch.setenv("MRAG_CONFIG", str(path))

    def to_file(models: dict[str, Any]) -> Path:
        path.write_text(yaml.safe_dump({"models": models}))
        return path

    return to_file


def test_three_lines_are_enough(write: Any) -> None:
    write({"gpt": {"model": "openai-chat-completions", "model_args": {"model": "gpt-4o"}}})
    spec = named_spec("gpt")
    assert (spec.max_in_flight, spec.generation.temperature, spec.generation.max_tokens) == (32, 0.0, 1024)
    assert (spec.budget.max_calls, spec.budget.max_tokens) == (None, None)
    assert get("gpt").name == "gpt"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"model": "x", "modell_args": {}}, "models.gpt: unknown key 'modell_args'; did you mean 'model_args'?"),
        ({"model": "x", "generation": {"temprature": 0}},
         "models.gpt.generation: unknown key 'temprature'; did you mean 'temperature'?"),
        ({"model": "x", "budget": {"max_call": 1}},
         "models.gpt.budget: unknown key 'max_call'; did you mean 'max_calls'?"),
        ({}, "models.gpt.model: field required"),
        ({"model": "x", "retries": -1}, "models.gpt.retries: input should be greater than or equal to 0 (got -1)"),
        ({"model": "x", "max_in_flight": 0},
         "models.gpt.max_in_flight: input should be greater than or equal to 1 (got 0)"),
    ],
)  # fmt: skip
def test_faults_name_file_and_key(write: Any, block: dict[str, Any], message: str) -> None:
    path = write({"gpt": block})
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert caught.value.message == f"{path}, {message}"


@pytest.mark.parametrize(
    "block",
    [
        {"model": "x", "model_args": {"api_key": SECRET}},
        {"model": "x", "model_args": {"auth_token": SECRET}},
        {"model": "x", "model_args": {"header": {"Authorization": SECRET}}},
        {"model": "x", "model_args": {"header": {"x-api-key": SECRET}}},
        {"model_args": {"api_key": SECRET}},
        {"model": "x", "api_key": SECRET},
        {"model": "x", "api_key_env": SECRET},
    ],
    ids=str,
)
def test_secrets_are_refused_and_not_printed(write: Any, block: dict[str, Any]) -> None:
    write({"gpt": block})
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert SECRET not in str(caught.value)


def test_the_refusal_says_where_keys_belong(write: Any) -> None:
    path = write({"gpt": {"model": "x", "model_args": {"api_key": SECRET}}})
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert caught.value.message == (
        f"{path}, models.gpt.model_args: 'api_key' holds a secret; "
        "name its variable, as {env:NAME}, or that of the key with api_key_env"
    )


@pytest.mark.parametrize("address", ["http://me:{}@host/v1", "http://host/v1?code={}", "http://host/v1#token={}"])
def test_a_secret_in_an_address_is_sent_and_never_shown(write: Any, address: str) -> None:
    written = address.format(SECRET)
    write({"gpt": {"model": "x", "model_args": {"base_url": written}}})
    assert load_config().models["gpt"].model_args["base_url"] == written
    assert SECRET not in hide(f"{written} {SECRET}")


@pytest.mark.parametrize(
    "block",
    [
        {"model": "x", "model_args": {"api_key": "{env:MY_OWN_KEY}"}},
        {"model": "x", "model_args": {"header": {"x-api-key": "{env:MY_OWN_KEY}"}}},
        {"model": "x", "model_args": {"base_url": "http://host/{env:MY_OWN_KEY}/v1?code={env:MY_OWN_KEY}"}},
        {"model": "x", "generation": {"extra": {"pat": "{env:MY_OWN_KEY}"}}},
    ],
    ids=str,
)
def test_a_variable_may_stand_wherever_a_secret_may(write: Any, block: dict[str, Any]) -> None:
    write({"gpt": block})
    text = str(load_config().models["gpt"].model_dump(mode="json"))
    assert "{env:MY_OWN_KEY}" in text
    assert hide(text) == text


def test_ordinary_arguments_are_not_secrets() -> None:
    args = {
        "tokenizer": "x", "tokenizer_backend": "none", "think_end_token": "</think>", "custom_prefix_token_id": 1,
        "tokenized_requests": False, "base_url": "http://host/v1?api-version=2", "header": {"X-Route": "eu"},
        "max_gen_toks": 7, "add_bos_token": True,
    }  # fmt: skip
    assert ModelSpec(model="x", model_args=args).model_args == args


def test_unknown_name(write: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = write({"gpt": {"model": "x"}})
    with pytest.raises(ConfigError) as caught:
        named_spec("gtp")
    assert caught.value.message == f"{path}: models has no 'gtp'; did you mean 'gpt'?"
    write({})
    with pytest.raises(ConfigError) as caught:
        named_spec("gpt")
    assert caught.value.message == f"no model 'gpt': {path} names no models"
    assert "models:" in str(caught.value.next_step)
    monkeypatch.delenv("MRAG_CONFIG")
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="no model 'gpt': there is no config file"):
        named_spec("gpt")


def test_the_example_is_valid(write: Any) -> None:
    from mrag_eval.models._spec import EXAMPLE

    write(yaml.safe_load(EXAMPLE)["models"])
    assert list(load_config().models) == ["gpt"]
