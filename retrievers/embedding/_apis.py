"""Embedding endpoints: the shapes of OpenAI's protocol and of the providers that have one of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class EmbeddingCall:
    """One request: texts to embed, the value that marks them as queries or passages, and the wanted dimensions."""

    model: str
    texts: Sequence[str]
    task: str | None
    dimensions: int | None


@dataclass(frozen=True)
class Api:
    """The embedding endpoint of a provider.

    ``url`` is its public address and ``key`` the environment variable with its key. ``path`` follows the address;
    ``{model}`` in it is the model's name. ``batch`` is the most texts of a request. ``body`` makes a request,
    ``vectors`` reads the vectors of its texts, in order.
    """

    url: str
    key: str
    body: Callable[[EmbeddingCall], dict[str, Any]]
    vectors: Callable[[Any], list[Any]]
    path: str = "/embeddings"
    batch: int | None = None
    header: str = "Authorization"
    scheme: str = "Bearer "

    def address(self, base: str, model: str) -> str:
        """Return the address of a model's endpoint."""
        return base + self.path.replace("{model}", quote(model, safe=""))


def _indexed(answer: Any) -> list[Any]:
    items = sorted(answer["data"], key=lambda item: item["index"])
    if [item["index"] for item in items] != list(range(len(items))):
        raise ValueError("an index is missing")
    return [item["embedding"] for item in items]


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {key: value for key, value in fields.items() if value is not None}


def _openai(call: EmbeddingCall) -> dict[str, Any]:
    return _given(model=call.model, input=list(call.texts), encoding_format="float", dimensions=call.dimensions)


def _cohere(call: EmbeddingCall) -> dict[str, Any]:
    return _given(
        model=call.model,
        texts=list(call.texts),
        input_type=call.task,
        embedding_types=["float"],
        output_dimension=call.dimensions,
    )


def _voyage(call: EmbeddingCall) -> dict[str, Any]:
    return _given(model=call.model, input=list(call.texts), input_type=call.task, output_dimension=call.dimensions)


def _jina(call: EmbeddingCall) -> dict[str, Any]:
    return _given(
        model=call.model, input=list(call.texts), task=call.task, embedding_type="float", dimensions=call.dimensions
    )


def _gemini(call: EmbeddingCall) -> dict[str, Any]:
    shared = _given(model=f"models/{call.model}", taskType=call.task, outputDimensionality=call.dimensions)
    return {"requests": [{**shared, "content": {"parts": [{"text": text}]}} for text in call.texts]}


# The kind of an embedder, which is also the beginning of its name (``cohere:embed-v4.0``) → its endpoint.
APIS: Mapping[str, Api] = {
    "openai": Api("https://api.openai.com/v1", "OPENAI_API_KEY", _openai, _indexed),
    "cohere": Api(
        "https://api.cohere.com/v2",
        "COHERE_API_KEY",
        _cohere,
        lambda answer: list(answer["embeddings"]["float"]),
        path="/embed",
        batch=96,
    ),
    "voyage": Api("https://api.voyageai.com/v1", "VOYAGE_API_KEY", _voyage, _indexed, batch=1000),
    "jina": Api("https://api.jina.ai/v1", "JINA_API_KEY", _jina, _indexed, batch=512),
    "gemini": Api(
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        _gemini,
        lambda answer: [item["values"] for item in answer["embeddings"]],
        path="/models/{model}:batchEmbedContents",
        batch=100,
        header="x-goog-api-key",
        scheme="",
    ),
}


def api_kind(model: str) -> str | None:
    """Return the provider that a name begins with (``cohere:…``), or None."""
    kind = model.partition(":")[0]
    return kind if kind in APIS and kind != model else None
