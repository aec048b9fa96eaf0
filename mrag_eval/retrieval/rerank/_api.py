"""Rerankers behind a ``/rerank`` endpoint: Cohere, Jina and vLLM in one shape, Text Embeddings Inference in another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrag_eval.config import ApiRerank
from mrag_eval.platform import (
    BROKEN_AGAIN,
    CorpusError,
    Endpoint,
    HttpFault,
    Transport,
    bearer,
    install_redaction,
    is_finite,
    json_answer,
    marked,
    with_variables,
)
from mrag_eval.retrievers import Scores

# Failed requests after which no more are sent, if none was answered.
_MOST_AT_FIRST = 16


@dataclass(frozen=True)
class _Request:
    """Some of the documents of row ``row``, from position ``start`` on."""

    row: int
    start: int
    query: str
    documents: Sequence[str]


class ApiReranker:
    """Score by an endpoint, ``max_in_flight`` requests at a time, with retries.

    The key is read from the variable that ``api_key_env`` names. Raises ConfigError if that is not set. A request fails
    for good after its last attempt, or with an invalid answer: scores for some of the documents only, a duplicate or
    out-of-range index, a score that is not a number.
    """

    def __init__(self, block: ApiRerank, *, first_backoff: float = 0.5) -> None:
        install_redaction()
        self.name = block.name
        settings = json.dumps(marked([block.url, block.shape, block.extra]), sort_keys=True)
        self.revision = f"api/{hashlib.sha256(settings.encode()).hexdigest()[:8]}"
        self._block = block
        self._extra = with_variables(block.extra, where := f"reranker {block.name}")
        self._transport = Transport(
            Endpoint(block.name, block.url, bearer(block.api_key_env, where)),
            self._payload,
            self._read,
            max_in_flight=block.max_in_flight,
            timeout=block.timeout,
            retries=block.retries,
            first_backoff=first_backoff,
        )

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Scores]:
        out = [np.empty(len(texts)) for texts in passages]
        for row, start, found in self.arriving(queries, passages):
            out[row][start : start + len(found)] = found
        return out

    def arriving(
        self, queries: Sequence[str], passages: Sequence[Sequence[str]], failed: dict[int, str] | None = None
    ) -> Iterator[tuple[int, int, list[float]]]:
        """Yield ``(row, position of the first, scores)`` of some passages of a row at a time, as they arrive.

        ``failed`` gets row and error of a request that failed for good, or was not sent because all before it failed;
        without it the first error is raised (:meth:`fault`), after the requests that did not fail.
        """
        size = self._block.batch_size
        requests = [
            _Request(row, start, query, texts[start : start + size])
            for row, (query, texts) in enumerate(zip(queries, passages, strict=True))
            for start in range(0, len(texts), size)
        ]
        errors: dict[int, str] = {}
        answered = False
        for number, response in self._transport.arriving(requests):
            if response.answer is not None:
                answered = True
                yield requests[number].row, requests[number].start, response.answer
                continue
            errors[number] = response.error or ""
            if not answered and len(errors) == _MOST_AT_FIRST:
                stopped = f"stopped: not sent, the {len(errors)} calls before it all failed: {errors[number]}"
                errors |= {rest: stopped for rest in range(len(requests)) if rest not in errors}
                break
        if failed is not None:
            failed |= {requests[number].row: error for number, error in errors.items()}
        elif errors:
            raise self.fault(next(iter(errors.values())))

    def fault(self, error: str) -> CorpusError:
        """Return the error to raise for one of a request."""
        return CorpusError(
            f"reranker {self.name}: {self._block.url} failed: {error}",
            "check rerank.shape (cohere or tei), and that the server scores every document it is sent"
            if error.startswith("malformed")
            else "check rerank.url, rerank.model and the server's log; what was scored before is kept",
        )

    def _payload(self, request: _Request) -> dict[str, Any]:
        query, documents = request.query, list(request.documents)
        if self._block.shape == "tei":
            return {"query": query, "texts": documents, "raw_scores": True, "truncate": True, **self._extra}
        body = {"model": self._block.model, "query": query, "documents": documents, "top_n": len(documents)}
        return body | self._extra

    def _read(self, request: _Request, body: str) -> list[float]:
        answer = json_answer(body)
        if isinstance(answer, dict):
            answer = answer.get("results", answer.get("data"))
        if not isinstance(answer, list):
            raise _unfit(f"answered without a list of results: {body[:120]!r}")
        count = len(request.documents)
        scores: dict[int, float] = {}
        for item in answer:
            found = item if isinstance(item, dict) else {}
            index, score = found.get("index"), found.get("relevance_score", found.get("score"))
            if type(index) is not int or not 0 <= index < count:
                raise _unfit(f"gave the index {index!r:.40} for {count} documents")
            if index in scores:
                raise _unfit(f"gave the index {index} twice")
            if not is_finite(score):
                raise _unfit(f"gave the score {score!r:.40} for document {index}, which is not a number")
            scores[index] = float(score)
        if len(scores) < count:
            raise _unfit(f"gave {len(scores)} scores for {count} documents")
        return [scores[index] for index in range(count)]


def _unfit(fault: str) -> HttpFault:
    return HttpFault("malformed", f"the server {fault}", again=BROKEN_AGAIN)
