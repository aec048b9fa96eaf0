"""Rerankers as users write them down: a cross-encoder, a ``/rerank`` endpoint, or a model that orders lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from mrag_eval.config._block import Device, Kind
from mrag_eval.config._model import Variable, without_secret
from mrag_eval.platform import address_fault

# Kinds whose weights are loaded here, with their default models.
DEFAULT_RERANKERS = {"cross-encoder": "BAAI/bge-reranker-v2-m3", "bge-m3": "BAAI/bge-m3"}


def plain_address(value: str) -> str:
    """Return the address of a service. Raise ValueError for one that no request can reach."""
    fault = address_fault(value)
    if fault is not None:
        raise ValueError(f"expected an http(s) address, such as http://localhost:8000/v1/rerank; it {fault}")
    return value


class _Rerank(Kind):
    tag = "kind"
    recorded = (
        "kind model depth query revision instruction max_length batch_size device trust_remote_code weights "
        "url shape api_key_env max_in_flight timeout retries extra window step prompt"
    )

    kind: str
    model: str | None = Field(default=None, min_length=1)
    depth: int | None = Field(default=None, ge=1)
    query: Literal["searched", "question"] = "searched"

    @property
    def name(self) -> str:
        """Return the reranker's name in messages."""
        return reranker_name(self.model_dump())


class _LocalRerank(_Rerank):
    revision: str | None = None
    max_length: int = Field(default=512, ge=16)
    batch_size: int = Field(default=32, ge=1)
    device: Device | None = None


class CrossEncoderRerank(_LocalRerank):
    """A sentence-transformers cross-encoder; ``model`` is a hub name or a folder, by default BAAI/bge-reranker-v2-m3.

    ``max_length`` bounds a pair in tokens, by cutting the passage only. ``batch_size`` pairs are scored at once.
    ``device`` is by default that of the block ``retrieval``. ``instruction`` takes the place of the one in the recipe
    of the model's family, such as Qwen3-Reranker's.
    """

    kind: Literal["cross-encoder"] = "cross-encoder"
    instruction: str | None = Field(default=None, min_length=1)
    trust_remote_code: bool = False


class BgeM3Rerank(_LocalRerank):
    """BGE-M3's dense, sparse and multi-vector scores as one, by ``weights``.

    ``model`` is by default BAAI/bge-m3, with its paper's weights. The other keys are those of a cross-encoder.
    """

    kind: Literal["bge-m3"]
    weights: tuple[float, float, float] = (1.0, 0.3, 1.0)

    @field_validator("weights")
    @classmethod
    def _weigh_something(cls, value: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(value) < 0 or sum(value) <= 0:
            raise ValueError("no weight may be negative, and one must be more than 0")
        return value


class ApiRerank(_Rerank):
    """An endpoint at ``url``.

    ``shape`` is ``cohere`` (Cohere, Jina, vLLM: ``documents`` in, ``results`` out) or ``tei`` (Text Embeddings
    Inference: ``texts`` in, a list out). ``batch_size`` bounds the documents of one request. ``api_key_env`` names the
    environment variable with the key. Further keys of the provider go into ``extra``, which is sent unchanged.
    """

    kind: Literal["api"]
    url: str = Field(description="the address of the endpoint")
    shape: Literal["cohere", "tei"] = "cohere"
    batch_size: int = Field(default=32, ge=1)
    api_key_env: Variable | None = None
    max_in_flight: int = Field(default=8, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=6, ge=0)
    extra: dict[str, Any] = Field(default_factory=dict)

    @field_validator("url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        return plain_address(value)

    @field_validator("extra")
    @classmethod
    def _holds_no_secret(cls, value: dict[str, Any]) -> dict[str, Any]:
        return without_secret(value)

    @model_validator(mode="after")
    def _model_is_named(self) -> ApiRerank:
        if self.shape == "cohere" and self.model is None:
            raise ValueError("'model' is missing: endpoints of shape 'cohere' need its name")
        return self


class ListwiseRerank(_Rerank):
    """A model of the config file, ``model``, that is shown numbered passages and replies with their order (RankGPT).

    ``window`` passages are ordered at a time, from the end of the list to its head, by ``step``. ``prompt`` is a
    built-in template or a path.
    """

    kind: Literal["listwise"]
    model: str = Field(min_length=1, description="the name of a model in the config file")
    window: int = Field(default=20, ge=2)
    step: int = Field(default=10, ge=1)
    prompt: str = "listwise"

    @model_validator(mode="after")
    def _windows_overlap(self) -> ListwiseRerank:
        if self.step > self.window:
            raise ValueError(f"'step' is {self.step}, more than the window of {self.window}: some would be left out")
        return self


Rerank = Annotated[CrossEncoderRerank | BgeM3Rerank | ApiRerank | ListwiseRerank, Field(discriminator="kind")]


def named_reranker(name: str) -> dict[str, Any]:
    """Return the block of a reranker named in one word: a cross-encoder, or ``cohere:MODEL@URL`` as embedders are."""
    shape, _, rest = name.partition(":")
    model, _, url = rest.partition("@")
    if shape not in get_args(ApiRerank.model_fields["shape"].annotation):
        return {"model": name}
    return {"kind": "api", "shape": shape, "url": url, **({"model": model} if model else {})}


def reranker_name(block: Mapping[str, Any]) -> str:
    """Return the same name from a block in a results file."""
    return str(block.get("model") or DEFAULT_RERANKERS.get(block.get("kind", "cross-encoder")) or block.get("url"))
