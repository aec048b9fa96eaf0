"""Rerankers behind a ``/rerank`` endpoint: Cohere, Jina and vLLM in one shape, Text Embeddings Inference in another."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrag_eval.config import Generation, Rerank
from mrag_eval.core import ConfigError, CorpusError
from mrag_eval.models import Call, Fault, Reply, Transport, install_redaction, run_on_loop
from mrag_eval.prompts import Conversation
from mrag_eval.retrievers import Scores

# A server at times gives a broken body to a request that it answers well the second time.
_BROKEN_AGAIN = 2


@dataclass(frozen=True)
class _Service:
    """One endpoint as the transport wants it. A request travels as messages: the query, then the documents."""

    block: Rerank
    headers: Mapping[str, str]
    verify: bool = True

    def __repr__(self) -> str:
        return f"_Service({self.name})"

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def url(self) -> str:
        return str(self.block.url)

    def payload(self, conversation: Conversation, settings: Generation) -> dict[str, Any]:
        query, *documents = (message["content"] for message in conversation)
        if self.block.shape == "tei":
            return {"query": query, "texts": documents, "raw_scores": True, "truncate": True, **self.block.extra}
        body = {"model": self.block.model, "query": query, "documents": documents, "top_n": len(documents)}
        return body | self.block.extra

    def read(self, body: str) -> dict[str, Any]:
        try:
            json.loads(body)
        except (ValueError, RecursionError):
            raise Fault("malformed", f"the answer is not JSON: {body[:80]!r}", again=_BROKEN_AGAIN) from None
        return {"text": body}


class ApiReranker:
    """Scores from an endpoint, so many requests at a time, with the retries of the auxiliary models' transport.

    The key is read from the variable that ``api_key_env`` names. Raises ConfigError where that is not set, and
    CorpusError, naming the endpoint, for a request that fails for good or an answer that does not fit: scores for some
    of the documents, an index twice or out of range, a score that is no number.
    """

    def __init__(self, block: Rerank, *, first_backoff: float = 0.5) -> None:
        install_redaction()
        self.name = block.name
        settings = json.dumps([block.url, block.shape, block.extra], sort_keys=True)
        self.revision = f"api/{hashlib.sha256(settings.encode()).hexdigest()[:8]}"
        self._block = block
        self._transport = Transport(
            _Service(block, _headers(block)),
            max_in_flight=block.max_in_flight,
            timeout=block.timeout,
            retries=block.retries,
            first_backoff=first_backoff,
        )

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Scores]:
        size = self._block.batch_size
        calls: dict[str, tuple[int, int, Call]] = {}
        for row, (query, texts) in enumerate(zip(queries, passages, strict=True)):
            for start in range(0, len(texts), size):
                documents = texts[start : start + size]
                turns = [{"role": "query", "content": query}]
                turns += [{"role": "document", "content": text} for text in documents]
                key = f"{row}/{start}"
                calls[key] = (row, start, Call(key, turns, Generation()))
        replies: dict[str, Reply] = {}

        async def accept(call: Call, reply: Reply) -> None:
            replies[call.key] = reply

        if calls:
            run_on_loop(self._transport.send([call for _, _, call in calls.values()], accept, lambda: None))
        out = [np.empty(len(texts)) for texts in passages]
        for key, (row, start, call) in calls.items():
            reply = replies[key]
            if reply.error is not None:
                raise CorpusError(
                    f"reranker {self.name}: {self._block.url} failed: {reply.error}",
                    "check rerank.url, rerank.model and the server's log; what was scored before is kept",
                )
            count = len(call.conversation) - 1
            out[row][start : start + count] = self._read(reply.text, count)
        return out

    def _read(self, body: str, count: int) -> list[float]:
        answer = json.loads(body)
        if isinstance(answer, dict):
            answer = answer.get("results", answer.get("data"))
        if not isinstance(answer, list):
            raise self._unfit(f"answered without a list of results: {body[:120]!r}")
        scores: dict[int, float] = {}
        for item in answer:
            index, score = _index_and_score(item)
            if type(index) is not int or not 0 <= index < count:
                raise self._unfit(f"gave the index {index!r:.40} for {count} documents")
            if index in scores:
                raise self._unfit(f"gave the index {index} twice")
            if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
                raise self._unfit(f"gave the score {score!r:.40} for document {index}, which is not a number")
            scores[index] = float(score)
        if len(scores) < count:
            raise self._unfit(f"gave {len(scores)} scores for {count} documents")
        return [scores[index] for index in range(count)]

    def _unfit(self, what: str) -> CorpusError:
        return CorpusError(
            f"reranker {self.name}: {self._block.url} {what}",
            "check rerank.shape (cohere or tei), and that the server scores every document it is sent",
        )


def _index_and_score(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, dict):
        return None, None
    return item.get("index"), item.get("relevance_score", item.get("score"))


def _headers(block: Rerank) -> dict[str, str]:
    if block.api_key_env is None:
        return {}
    key = os.environ.get(block.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"reranker {block.name}: the environment variable {block.api_key_env} is not set",
            f"export {block.api_key_env}=...",
        )
    return {"Authorization": f"Bearer {key}"}
