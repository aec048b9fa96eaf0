"""Embedders behind an endpoint: OpenAI's protocol, or that of a provider."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import ConfigError, CorpusError, Endpoint, HttpFault, Response, Transport, json_answer, key_in
from mrag_eval.retrievers.embedding._apis import APIS, EmbeddingCall
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec
from mrag_eval.retrievers.embedding._feeding import feeding

log = logging.getLogger(f"lm_eval.{__name__}")

Vectors = NDArray[np.float32]

_ATTEMPTS = 6
# Seconds, per attempt: until there is a connection, and in all.
_CONNECT_TIMEOUT, _TIMEOUT = 10.0, 130.0
# Bytes of the longest answer: 128 vectors of 4,096 numbers are about 12 MB of text.
_LONGEST = 64 << 20
_CONCURRENT = 4
# Characters of a text in a message.
LONGEST_NAME = 80
# Words of messages for a fault without an HTTP status.
_PROBLEMS = {"connection": "ConnectionError", "timeout": "Timeout"}


class FailedBatch(NamedTuple):
    """Why a batch was not embedded: the ``error`` (``"reason: detail"``), and the ``fault`` to raise for it."""

    error: str
    fault: ConfigError | CorpusError


# Receives the number of a batch that was not embedded, and why.
OnFailed = Callable[[int, FailedBatch], None]


def _uneven(vectors: Sequence[Sequence[float]], texts: Sequence[str]) -> str:
    """Return which text has a vector of another width than most; empty if all have one width."""
    widths = [len(vector) for vector in vectors]
    usual, _ = max(Counter(widths).items(), key=lambda item: (item[1], item[0]))
    odd = next((at for at, width in enumerate(widths) if width != usual), None)
    return "" if odd is None else f": {widths[odd]} numbers instead of {usual} for '{texts[odd][:LONGEST_NAME]}'"


class ApiEmbedder:
    """Embedder that posts texts to an endpoint in batches, with retries.

    The key is read from the environment variable ``api_key_env`` (the provider's own for its public address, none for
    other hosts unless named), is sent to that endpoint only, and never appears in a message or a file. Timeouts,
    dropped connections and the status codes 408, 409, 425, 429 and 5xx are retried, up to six attempts, after
    ``Retry-After`` or 1, 2, 4, ... seconds. Prompts and modes follow the recipe of the model's family.
    """

    def __init__(self, spec: EmbedderSpec) -> None:
        self.name = spec.name
        self._spec, self._api = spec, APIS[spec.kind]
        base = spec.base_url or self._api.url
        self._url = self._api.address(base, spec.model)
        # a model behind an address has no configuration that could be read
        fed = feeding(spec, {}, None)
        self.query_prefix, self.passage_prefix, self.normalize = fed.query_prefix, fed.passage_prefix, fed.normalize
        self.query_task, self.passage_task = fed.query_task, fed.passage_task
        # the shortest and the longest vector so far
        self._norms = float("inf"), 0.0
        if spec.kind == "openai":
            self._warn_of_modes(base)
        # the same name may be another model at another address
        settings = [self._url, self.query_prefix, self.passage_prefix, self.normalize, spec.dimensions]
        settings += [] if spec.kind == "openai" else fed.identity()
        digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]
        self.revision = f"{spec.revision or 'api'}/{digest}"

    def _warn_of_modes(self, base: str) -> None:
        """Log one line if the model has modes or adapters that OpenAI's protocol cannot choose."""
        native = next((kind for kind, api in APIS.items() if kind != "openai" and base == api.url), None)
        if native is not None:
            log.warning(
                "embedder %s: queries and passages are sent alike; %s:%s tells them apart",
                self.name, native, self._spec.model,
            )  # fmt: skip
        elif self.query_task or self.passage_task:
            log.warning(
                "embedder %s: OpenAI's protocol cannot choose the adapters %s and %s; the server's default is used",
                self.name, self.query_task, self.passage_task,
            )  # fmt: skip

    def _warn_of_lengths(self, norms: Vectors) -> None:
        """Log one line if vectors differ in length by more than 1 %: a longer one is nearer to every query."""
        least, most = min(self._norms[0], float(norms.min())), max(self._norms[1], float(norms.max()))
        if most > 1.01 * least and not self._norms[1] > 1.01 * self._norms[0]:
            log.warning(
                "embedder %s: its vectors have lengths of %.3g to %.3g, which change rankings and merges of languages; "
                "if the model ranks by cosine, set normalize: true in its specification (false: as they are)",
                self.name, least, most,
            )  # fmt: skip
        self._norms = least, most

    @cached_property
    def dim(self) -> int:
        """Return the dimension, from the spec or one short request."""
        return self._spec.dimensions or int(self._embed(["dimensions"], self.query_task).shape[1])

    @property
    def batch_size(self) -> int:
        """Return the number of texts of one request."""
        return min(self._spec.batch_size, self._api.batch or self._spec.batch_size)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self.query_prefix + text for text in texts], self.query_task)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self.passage_prefix + text for text in texts], self.passage_task)

    def arriving(
        self, batches: Sequence[Sequence[str]], *, queries: bool = False, failed: OnFailed | None = None
    ) -> Generator[tuple[int, Vectors], None, None]:
        """Embed passages (or queries), one request for each batch; yield its number and vectors as they arrive.

        ``failed`` receives the batches whose request failed for good; without it, the first one's fault is raised.
        """
        prefix, task = (self.query_prefix, self.query_task) if queries else (self.passage_prefix, self.passage_task)
        return self._arriving([[prefix + text for text in batch] for batch in batches], task, failed)

    def _embed(self, texts: list[str], task: str | None) -> Vectors:
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        batches = [texts[start : start + self.batch_size] for start in range(0, len(texts), self.batch_size)]
        found = dict(self._arriving(batches, task))
        return np.concatenate([found[number] for number in range(len(batches))])

    def _arriving(
        self, batches: Sequence[list[str]], task: str | None, failed: OnFailed | None = None
    ) -> Generator[tuple[int, Vectors], None, None]:
        transport = Transport(
            Endpoint(self.name, self._url, self._headers()),
            self._api.body,
            self._read,
            max_in_flight=_CONCURRENT,
            timeout=_TIMEOUT,
            connect_timeout=_CONNECT_TIMEOUT,
            retries=_ATTEMPTS - 1,
            first_backoff=1.0,
            jitter=False,
            longest=_LONGEST,
        )
        calls = [EmbeddingCall(self._spec.model, texts, task, self._spec.dimensions) for texts in batches]
        first: Response[Vectors] | None = None
        for number, response in transport.arriving(calls):
            if response.answer is None:
                first = first or response
                if failed is not None:
                    failed(number, FailedBatch(response.error or "", self._fault(response)))
                continue
            vectors = response.answer
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            if self.normalize:
                vectors /= np.where((norms > 0) & np.isfinite(norms), norms, 1.0)
            elif self._spec.normalize is None:
                self._warn_of_lengths(norms)
            yield number, vectors
        if first is not None and failed is None:
            raise self._fault(first)

    def _headers(self) -> dict[str, str]:
        variable = self._spec.api_key_env
        if variable is None:
            return {}
        return {self._api.header: f"{self._api.scheme}{key_in(variable, f'embedder {self.name}')}"}

    def _read(self, call: EmbeddingCall, body: str) -> Vectors:
        answer, why = json_answer(body), ""
        try:
            found = self._api.vectors(answer)
            complete = len(found) == len(call.texts)
            why = _uneven(found, call.texts) if complete else ""
            vectors = np.asarray(found, dtype=np.float32)
            complete &= vectors.ndim == 2
        except (ValueError, KeyError, TypeError):
            complete = False
        if not complete:
            fault = f"{self._url} did not return {len(call.texts)} embeddings{why}"
            raise HttpFault("malformed", fault, again=0)
        return vectors

    def _fault(self, response: Response[Vectors]) -> ConfigError | CorpusError:
        status = response.status
        if status is not None and status not in (408, 429) and status < 500:
            return self._refused(status)
        reason, _, detail = (response.error or "").partition(": ")
        if reason == "malformed":
            return CorpusError(
                f"embedder {self.name}: {detail}", "check that the server knows the model, and look at its log"
            )
        problem = _PROBLEMS.get(reason, detail) if status is None else f"status {status}"
        times = "once" if response.attempts == 1 else f"{response.attempts} times"
        return CorpusError(
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
