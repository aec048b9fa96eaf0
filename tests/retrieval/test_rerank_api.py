"""Rerankers behind an endpoint: two formats, retries, and messages about malformed answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from mrag_eval.config import ApiRerank
from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrieval.rerank._api import ApiReranker
from mrag_eval.retrievers import Reranker
from tests.worlds.model_server import Answer, ModelServer

QUERIES = ["ferry", "bakery"]
PASSAGES = [["a", "bbb", "cc"], ["dddd"]]


def by_length(body: dict[str, Any]) -> list[float]:
    return [float(len(text)) for text in body.get("documents", body.get("texts"))]


def cohere(body: dict[str, Any], attempt: int) -> Answer:
    """Return results best first, as the services do."""
    scores = sorted(enumerate(by_length(body)), key=lambda pair: -pair[1])
    return Answer(body={"results": [{"index": i, "relevance_score": s} for i, s in scores]})


def tei(body: dict[str, Any], attempt: int) -> Answer:
    return Answer(body=[{"index": i, "score": s} for i, s in enumerate(by_length(body))][::-1])


def reranker(server: ModelServer, **changes: Any) -> ApiReranker:
    settings = {"kind": "api", "model": "org/reranker", "url": server.url, "retries": 2, "timeout": 20, **changes}
    return ApiReranker(ApiRerank.model_validate(settings), first_backoff=0.01)


def test_the_shape_of_cohere_jina_and_vllm(start: Callable[..., ModelServer]) -> None:
    server = start(cohere)
    found = reranker(server, extra={"truncate_prompt_tokens": 512})
    assert isinstance(found, Reranker)
    assert [row.tolist() for row in found.scores(QUERIES, PASSAGES)] == [[1.0, 3.0, 2.0], [4.0]]
    bodies = sorted((body for _, _, body in server.requests), key=lambda body: body["query"], reverse=True)
    assert bodies[0] == {
        "model": "org/reranker", "query": "ferry", "documents": ["a", "bbb", "cc"], "top_n": 3,
        "truncate_prompt_tokens": 512,
    }  # fmt: skip
    assert found.scores(["ferry"], [[]])[0].tolist() == []
    assert len(server.requests) == 2


def test_the_shape_of_text_embeddings_inference(start: Callable[..., ModelServer]) -> None:
    server = start(tei)
    found = reranker(server, shape="tei", model=None, batch_size=2)
    assert [row.tolist() for row in found.scores(QUERIES, PASSAGES)] == [[1.0, 3.0, 2.0], [4.0]]
    bodies = [body for _, _, body in server.requests]
    assert sorted(len(body["texts"]) for body in bodies) == [1, 1, 2]  # two documents per request
    assert all(body["raw_scores"] and body["truncate"] and "model" not in body for body in bodies)


def test_a_failing_request_is_tried_again(start: Callable[..., ModelServer]) -> None:
    server = start(lambda body, attempt: Answer(503) if attempt < 3 else cohere(body, attempt))
    assert reranker(server).scores(QUERIES, PASSAGES)[1].tolist() == [4.0]
    server = start(lambda body, attempt: Answer(body="<html>") if attempt < 2 else cohere(body, attempt))
    assert reranker(server).scores(QUERIES, PASSAGES)[1].tolist() == [4.0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(body={"results": []}), "gave 0 scores for 3 documents"),
        (Answer(body={"results": [{"index": 0, "relevance_score": 1}]}), "gave 1 scores for 3 documents"),
        (Answer(body={"results": [{"index": 3, "relevance_score": 1}]}), "gave the index 3 for 3 documents"),
        (Answer(body={"results": [{"index": -1, "relevance_score": 1}]}), "gave the index -1 for 3 documents"),
        (Answer(body={"results": [{"relevance_score": 1}]}), "gave the index None for 3 documents"),
        (Answer(body={"results": [{"index": 1, "relevance_score": 1}] * 2}), "gave the index 1 twice"),
        (Answer(body={"results": [{"index": 0, "relevance_score": "high"}]}), "gave the score 'high' for document 0"),
        (Answer(body={"results": [{"index": 0, "relevance_score": None}]}), "gave the score None for document 0"),
        (Answer(body='{"results": [{"index": 0, "relevance_score": NaN}]}'), "gave the score nan for document 0"),
        (Answer(body=["x", "y", "z"]), "gave the index None"),
        (Answer(body={"scores": [1, 2, 3]}), "answered without a list of results"),
        (Answer(body="3"), "answered without a list of results"),
        (Answer(400, body="no such model"), "failed: rejected: HTTP 400, no such model"),
        (Answer(500), "failed: server: HTTP 500"),
        (Answer(body="<html>"), "failed: malformed: the answer is not JSON"),
    ],
)
def test_an_answer_that_does_not_fit_names_the_endpoint(
    answer: Answer, message: str, start: Callable[..., ModelServer]
) -> None:
    server = start(lambda body, attempt: answer)
    with pytest.raises(CorpusError) as caught:
        reranker(server).scores(["ferry"], [["a", "bbb", "cc"]])
    assert message in caught.value.message
    assert f"reranker org/reranker: {server.url}" in caught.value.message
    assert "\n" not in caught.value.message


def test_the_key_comes_from_the_environment_and_stays_out_of_messages(
    start: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match="MY_RERANK_KEY is not set"):
        reranker(start(cohere), api_key_env="MY_RERANK_KEY")
    monkeypatch.setenv("MY_RERANK_KEY", "very-s3cret-k3y")
    server = start(lambda body, attempt: Answer(401, body="bad key very-s3cret-k3y"))
    found = reranker(server, api_key_env="MY_RERANK_KEY")
    with caplog.at_level(logging.DEBUG), pytest.raises(CorpusError) as caught:
        found.scores(QUERIES, PASSAGES)
    assert server.requests[0][1]["Authorization"] == "Bearer very-s3cret-k3y"
    assert "very-s3cret-k3y" not in f"{caught.value} {caplog.text} {found.revision}"


def test_another_address_is_another_model(start: Callable[..., ModelServer]) -> None:
    one, two = reranker(start(cohere)), reranker(start(cohere))
    assert (one.name, one.revision) != (two.name, two.revision)
