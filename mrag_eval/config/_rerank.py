"""Rerankers as users write them down: a cross-encoder, a ``/rerank`` endpoint, or a model that orders lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from mrag_eval.config._model import secret_in
from mrag_eval.config._validation import Block, Device

# Default models.
_DEFAULT_MODELS = {"cross-encoder": "BAAI/bge-reranker-v2-m3", "bge-m3": "BAAI/bge-m3"}
# Keys that every kind takes, and keys of one kind only.
_COMMON = {"kind", "model", "depth", "query"}
_OWN = {
    "cross-encoder": {"revision", "max_length", "batch_size", "device", "trust_remote_code"},
    "api": {"url", "shape", "batch_size", "api_key_env", "max_in_flight", "timeout", "retries", "extra"},
    "bge-m3": {"revision", "max_length", "batch_size", "device", "weights"},
    "listwise": {"window", "step", "prompt"},
}


class Rerank(Block):
    """The block ``retrieval.rerank``: a second ranking of the hits before ``k`` of them are shown.

    ``kind`` is ``cross-encoder`` (a sentence-transformers model; ``model`` is a hub name or a folder, by default
    BAAI/bge-reranker-v2-m3), ``bge-m3`` (BGE-M3's dense, sparse and multi-vector scores as one, by ``weights``; by
    default BAAI/bge-m3 with its paper's 1, 0.3 and 1), ``api`` (an endpoint at ``url``) or ``listwise`` (``model`` is
    one of the config file, which is shown numbered passages and replies with their order). ``depth`` hits are
    reranked, by default all that are retrieved. ``query`` is the text they are compared with: the one that was
    ``searched`` with (translated, with options, the sibling's, as the mode has it), or the row's ``question``.

    Cross-encoder: ``max_length`` bounds a pair in tokens, by cutting the passage only; ``batch_size`` pairs are scored
    at once (32); ``device`` is by default that of the block ``retrieval``.

    Endpoint: ``shape`` is ``cohere`` (Cohere, Jina, vLLM: ``documents`` in, ``results`` out) or ``tei`` (Text
    Embeddings Inference: ``texts`` in, a list out); ``batch_size`` bounds the documents of one request (32). Further
    keys of the provider go into ``extra``, which is sent unchanged.

    Listwise: ``window`` passages are ordered at a time, from the end of the list to its head, by ``step`` (RankGPT).
    """

    kind: Literal["cross-encoder", "bge-m3", "api", "listwise"] = "cross-encoder"
    model: str | None = Field(default=None, min_length=1)
    depth: int | None = Field(default=None, ge=1)
    query: Literal["searched", "question"] = "searched"
    revision: str | None = None
    max_length: int = Field(default=512, ge=16)
    batch_size: int = Field(default=32, ge=1)
    device: Device | None = None
    trust_remote_code: bool = False
    weights: tuple[float, float, float] = (1.0, 0.3, 1.0)
    url: str | None = None
    shape: Literal["cohere", "tei"] = "cohere"
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")
    max_in_flight: int = Field(default=8, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=6, ge=0)
    extra: dict[str, Any] = Field(default_factory=dict)
    window: int = Field(default=20, ge=2)
    step: int = Field(default=10, ge=1)
    prompt: str = "listwise"

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @field_validator("url")
    @classmethod
    def _plain_address(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "http://localhost")
        if "@" in parts.netloc or parts.query:
            raise PydanticCustomError(
                "secret", "no user, password or query may stand in it; name the variable with the key in api_key_env"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected an http(s) address, such as http://localhost:8000/v1/rerank")
        return value

    @field_validator("extra")
    @classmethod
    def _holds_no_secret(cls, value: dict[str, Any]) -> dict[str, Any]:
        key = secret_in(value)
        if key is not None:
            raise PydanticCustomError(
                "secret", "'{key}' holds a secret; name the variable with the key in api_key_env", {"key": key}
            )
        return value

    @model_validator(mode="after")
    def _possible(self) -> Rerank:
        allowed = _COMMON | _OWN[self.kind]
        for key in sorted(self.model_fields_set - allowed):
            if getattr(self, key) != type(self).model_fields[key].get_default(call_default_factory=True):
                raise ValueError(
                    f"'{key}' has no meaning for kind '{self.kind}'; it takes {', '.join(sorted(allowed))}"
                )
        if min(self.weights) < 0 or sum(self.weights) <= 0:
            raise ValueError(f"'weights' are {self.weights}: none may be negative, and one must be more than 0")
        if self.kind == "api" and self.url is None:
            raise ValueError("kind 'api' needs 'url', the address of the endpoint")
        if self.kind == "listwise" and self.model is None:
            raise ValueError("kind 'listwise' needs 'model', the name of a model in the config file")
        if self.kind == "api" and self.shape == "cohere" and self.model is None:
            raise ValueError("'model' is missing, which endpoints of the shape 'cohere' want to be told")
        if self.step > self.window:
            raise ValueError(f"'step' is {self.step}, more than the window of {self.window}: some would be left out")
        return self

    @property
    def name(self) -> str:
        """Return the reranker's name in messages."""
        return reranker_name(self.model_dump())


def reranker_name(block: Mapping[str, Any]) -> str:
    """Return the same name from a block in a results file."""
    return str(block.get("model") or _DEFAULT_MODELS.get(block.get("kind", "cross-encoder")) or block.get("url"))
