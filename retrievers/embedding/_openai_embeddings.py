"""Embedders behind an OpenAI-compatible ``/embeddings`` endpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import ConfigError, CorpusError, Endpoint, Response, Transport, bearer, json_value
from mrag_eval.retrievers.embedding._embedder_spec import OPENAI_URL, EmbedderSpec
from mrag_eval.retrievers.embedding._families import family

Vectors = NDArray[np.float32]

_ATTEMPTS = 6
# Seconds, per attempt: until there is a connection, and in all.
_CONNECT_TIMEOUT, _TIMEOUT = 10.0, 130.0
# Bytes of the longest answer: 128 vectors of 4,096 numbers are about 12 MB of text.
_LONGEST = 64 << 20
_CONCURRENT = 4
# How messages call a fault that has no HTTP status.
_PROBLEMS = {"connection": "ConnectionError", "timeout": "Timeout"}


class OpenAIEmbedder:
    """Embedder that calls ``POST <base url>/embeddings`` in batches, with retries.

    The key is read from the environment variable ``api_key_env`` (``OPENAI_API_KEY`` for api.openai.com, none for
    other hosts unless named), is sent to that endpoint only, and never appears in a message or a file. Timeouts,
    dropped connections and the status codes 408, 409, 425, 429 and 5xx are retried, up to six attempts, after
    ``Retry-After`` or 1, 2, 4, ... seconds. Prefixes follow the model's family.
    """

    def __init__(self, spec: EmbedderSpec) -> None:
        self.name = spec.name
        self._spec = spec
        self._url = f"{spec.base_url or OPENAI_URL}/embeddings"
        known = family(spec.model)
        self.query_prefix = spec.query_prefix if spec.query_prefix is not None else known.query_prefix if known else ""
        self.passage_prefix = (
            spec.passage_prefix if spec.passage_prefix is not None else known.passage_prefix if known else ""
        )
        self.normalize = spec.normalize if spec.normalize is not None else (known.normalize if known else True)
        # the same name may be another model at another address
        settings = [self._url, self.query_prefix, self.passage_prefix, self.normalize, spec.dimensions]
        digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]
        self.revision = f"{spec.revision or 'api'}/{digest}"

    @cached_property
    def dim(self) -> int:
        """Return the dimension, from the spec or one short request."""
        return self._spec.dimensions or int(self._vectors(["dimensions"]).shape[1])

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self.query_prefix + text for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self.passage_prefix + text for text in texts])

    def _embed(self, texts: list[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        vectors = self._vectors(texts)
        if self.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(norms > 0, norms, 1.0)
        return vectors

    def _vectors(self, texts: list[str]) -> Vectors:
        transport = Transport(
            Endpoint(self.name, self._url, bearer(self._spec.api_key_env, f"embedder {self.name}")),
            self._payload,
            self._read,
            max_in_flight=_CONCURRENT,
            timeout=_TIMEOUT,
            connect_timeout=_CONNECT_TIMEOUT,
            retries=_ATTEMPTS - 1,
            first_backoff=1.0,
            jitter=False,
            longest=_LONGEST,
        )
        size = self._spec.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        return np.concatenate([self._answer(response) for response in transport.responses(batches)])

    def _payload(self, texts: list[str]) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._spec.model, "input": texts, "encoding_format": "float"}
        if self._spec.dimensions is not None:
            payload["dimensions"] = self._spec.dimensions
        return payload

    def _read(self, texts: list[str], body: str) -> Vectors:
        try:
            items = sorted(json_value(body)["data"], key=lambda item: item["index"])
            vectors = np.asarray([item["embedding"] for item in items], dtype=np.float32)
            complete = [item["index"] for item in items] == list(range(len(texts))) and vectors.ndim == 2
        except (ValueError, KeyError, TypeError):
            complete = False
        if not complete:
            raise CorpusError(
                f"embedder {self.name}: {self._url} did not return {len(texts)} embeddings",
                "check that the server knows the model, and look at its log",
            )
        return vectors

    def _answer(self, response: Response[Vectors]) -> Vectors:
        if response.answer is not None:
            return response.answer
        status = response.status
        if status is not None and status not in (408, 429) and status < 500:
            raise self._refused(status)
        reason = (response.error or "").split(":", 1)[0]
        problem = _PROBLEMS.get(reason, reason) if status is None else f"status {status}"
        times = "once" if response.attempts == 1 else f"{response.attempts} times"
        raise CorpusError(
            f"embedder {self.name}: {self._url} failed {times}, last with {problem}",
            "try again later; an interrupted build continues with --resume",
        )

    def _refused(self, status: int) -> ConfigError:
        # the body of an error may quote the key, so it is left out
        hints = {401: "check the key", 403: "check the key's rights", 404: "check base_url and the model's name"}
        next_step = hints.get(status, "check the model's name and settings, and that texts fit its context length")
        if status in (401, 403) and self._spec.api_key_env:
            next_step += f" in {self._spec.api_key_env}"
        elif status in (401, 403):
            next_step = "set api_key_env to the environment variable of the key"
        return ConfigError(f"embedder {self.name}: {self._url} answered with status {status}", next_step)
