"""Embedders behind an OpenAI-compatible ``/embeddings`` endpoint."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import ConfigError, CorpusError
from mrag_eval.retrievers.embedding._embedder_spec import OPENAI_URL, EmbedderSpec
from mrag_eval.retrievers.embedding._families import family

_ATTEMPTS = 6
_LONGEST_WAIT = 60.0
_TIMEOUT = (10.0, 120.0)
_CONCURRENT = 4


class OpenAIEmbedder:
    """Vectors from ``POST <base url>/embeddings``, in batches, with retries.

    The key is read from the environment variable ``api_key_env`` (``OPENAI_API_KEY`` for api.openai.com, none for
    other hosts unless named), is sent to that endpoint only, and never appears in a message or a file. Timeouts,
    dropped connections and the answers 408, 429 and 5xx are tried again, up to six times, waiting as long as
    ``Retry-After`` says, else 1, 2, 4, ... seconds. Prefixes follow the model's family.
    """

    def __init__(self, spec: EmbedderSpec, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.name = spec.name
        self._spec, self._sleep = spec, sleep
        self._url = f"{spec.base_url or OPENAI_URL}/embeddings"
        known = family(spec.model)
        self.query_prefix = spec.query_prefix if spec.query_prefix is not None else known.query_prefix if known else ""
        self.passage_prefix = (
            spec.passage_prefix if spec.passage_prefix is not None else known.passage_prefix if known else ""
        )
        self.normalize = spec.normalize if spec.normalize is not None else (known.normalize if known else True)
        # one name may be another model at another address
        settings = [self._url, self.query_prefix, self.passage_prefix, self.normalize, spec.dimensions]
        digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]
        self.revision = f"{spec.revision or 'api'}/{digest}"
        self._local = threading.local()

    @cached_property
    def dim(self) -> int:
        """Known from the spec, else asked for with one short request."""
        return self._spec.dimensions or int(self._request(["dimensions"]).shape[1])

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed([self.query_prefix + text for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed([self.passage_prefix + text for text in texts])

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        size = self._spec.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        with ThreadPoolExecutor(max_workers=min(_CONCURRENT, len(batches))) as pool:
            vectors = np.concatenate(list(pool.map(self._request, batches)))
        if self.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(norms > 0, norms, 1.0)
        return vectors

    def _headers(self) -> dict[str, str]:
        variable = self._spec.api_key_env
        if variable is None:
            return {}
        key = os.environ.get(variable, "").strip()
        if not key:
            raise ConfigError(
                f"embedder {self.name}: the environment variable {variable} is not set", f"export {variable}=..."
            )
        return {"Authorization": f"Bearer {key}"}

    def _session(self) -> Any:
        import requests

        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
        return self._local.session

    def _request(self, texts: list[str]) -> NDArray[np.float32]:
        import requests

        payload: dict[str, Any] = {"model": self._spec.model, "input": texts, "encoding_format": "float"}
        if self._spec.dimensions is not None:
            payload["dimensions"] = self._spec.dimensions
        headers = self._headers()
        problem = ""
        for attempt in range(_ATTEMPTS):
            wait = min(2.0**attempt, _LONGEST_WAIT)
            try:
                reply = self._session().post(self._url, json=payload, headers=headers, timeout=_TIMEOUT)
            except (requests.ConnectionError, requests.Timeout) as error:
                problem = type(error).__name__
            else:
                if reply.status_code == 200:
                    return self._vectors(reply, len(texts))
                problem = f"status {reply.status_code}"
                if reply.status_code not in (408, 429) and reply.status_code < 500:
                    raise self._refused(reply.status_code)
                wait = _retry_after(reply.headers.get("Retry-After"), wait)
            if attempt < _ATTEMPTS - 1:
                self._sleep(wait)
        raise CorpusError(
            f"embedder {self.name}: {self._url} failed {_ATTEMPTS} times, at last with {problem}",
            "try again later; an interrupted build continues with --resume",
        )

    def _refused(self, status: int) -> ConfigError:
        # the body of a refusal may quote the key, so it is left out
        hints = {401: "check the key", 403: "check the key's rights", 404: "check base_url and the model's name"}
        next_step = hints.get(status, "check the model's name and settings, and that texts fit its context length")
        if status in (401, 403) and self._spec.api_key_env:
            next_step += f" in {self._spec.api_key_env}"
        elif status in (401, 403):
            next_step = "name the environment variable that holds the key with api_key_env"
        return ConfigError(f"embedder {self.name}: {self._url} answered with status {status}", next_step)

    def _vectors(self, reply: Any, count: int) -> NDArray[np.float32]:
        try:
            items = sorted(reply.json()["data"], key=lambda item: item["index"])
            vectors = np.asarray([item["embedding"] for item in items], dtype=np.float32)
            complete = [item["index"] for item in items] == list(range(count)) and vectors.ndim == 2
        except (ValueError, KeyError, TypeError):
            complete = False
        if not complete:
            raise CorpusError(
                f"embedder {self.name}: {self._url} did not answer with {count} embeddings",
                "ask the server for the model by name, and look at its log",
            )
        return vectors


def _retry_after(header: str | None, otherwise: float) -> float:
    try:
        return min(max(float(header or ""), 0.0), _LONGEST_WAIT)
    except ValueError:
        return otherwise
