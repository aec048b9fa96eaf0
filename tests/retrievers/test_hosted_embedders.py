"""Hosted APIs in their native modes: what is sent to each provider, read back, and kept apart in an index."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrievers import allowed_spec, build_index, load_index, parse_spec
from mrag_eval.retrievers.embedding._api_embeddings import ApiEmbedder
from mrag_eval.retrievers.embedding._apis import APIS
from tests.worlds.embedding_server import Endpoint, serving


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as running:
        yield running


def cohere(payload: dict[str, Any]) -> Any:
    return {"embeddings": {"float": [[float(len(text)), 1.0] for text in payload["texts"]]}}


def gemini(payload: dict[str, Any]) -> Any:
    texts = [request["content"]["parts"][0]["text"] for request in payload["requests"]]
    return {"embeddings": [{"values": [float(len(text)), 1.0]} for text in texts]}


def indexed(payload: dict[str, Any]) -> Any:
    items = [{"index": n, "embedding": [float(len(text)), 1.0]} for n, text in enumerate(payload["input"])]
    # not in order: the index decides
    return {"data": items[::-1]}


def body(kind: str, model: str, texts: list[str], query: bool) -> tuple[str, dict[str, Any]]:
    """Return path and body of a request as the provider's reference has them."""
    openai_like = {"model": model, "input": texts}
    if kind == "cohere":
        mode = "search_query" if query else "search_document"
        sent = {"model": model, "texts": texts, "input_type": mode, "embedding_types": ["float"]}
        return "/v1/embed", {**sent, "output_dimension": 2}
    if kind == "voyage":
        return "/v1/embeddings", {
            **openai_like, "input_type": "query" if query else "document", "output_dimension": 2,
        }  # fmt: skip
    if kind == "jina":
        task = "retrieval.query" if query else "retrieval.passage"
        return "/v1/embeddings", {**openai_like, "task": task, "embedding_type": "float", "dimensions": 2}
    task = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
    shared = {"model": f"models/{model}", "taskType": task, "outputDimensionality": 2}
    requests = [{**shared, "content": {"parts": [{"text": text}]}} for text in texts]
    return f"/v1/models/{model}:batchEmbedContents", {"requests": requests}


ANSWERS = {"cohere": cohere, "gemini": gemini, "voyage": indexed, "jina": indexed}
MODELS = [
    ("cohere", "embed-v4.0"),
    ("voyage", "voyage-3.5"),
    ("jina", "jina-embeddings-v3"),
    ("gemini", "gemini-embedding-001"),
]


@pytest.mark.parametrize(("kind", "model"), MODELS)
def test_each_provider_is_told_queries_and_passages_apart(
    endpoint: Endpoint, kind: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", "sk-hunter2")
    spec = {"model": f"{kind}:{model}@{endpoint.url}", "api_key_env": "PROVIDER_KEY", "dimensions": 2}
    embedder = ApiEmbedder(parse_spec(spec))
    assert embedder.name == f"{kind}:{model}"
    for texts, query in ((["where?", "why?"], True), (["there", "because"], False)):
        endpoint.script = [ANSWERS[kind]]
        vectors = (embedder.embed_queries if query else embedder.embed_passages)(texts)
        path, headers, sent = endpoint.requests[-1]
        assert (path, sent) == body(kind, model, texts, query)
        header, value = ("x-goog-api-key", "sk-hunter2") if kind == "gemini" else ("Authorization", "Bearer sk-hunter2")
        assert headers[header] == value
        expected = np.array([[len(text), 1.0] for text in texts])
        np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize(("kind", "model"), MODELS)
def test_names_addresses_and_keys(kind: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse_spec(f"{kind}:{model}")
    assert (parsed.kind, parsed.model, parsed.base_url) == (kind, model, APIS[kind].url)
    # the provider's key is for its own address
    assert parsed.api_key_env == f"{kind.upper()}_API_KEY"
    elsewhere = parse_spec(f"{kind}:{model}@http://127.0.0.1:9/v1")
    assert elsewhere.api_key_env is None
    assert parse_spec(parsed.identity()) == parsed
    monkeypatch.delenv(f"{kind.upper()}_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=f"the environment variable {kind.upper()}_API_KEY is not set"):
        ApiEmbedder(parsed).embed_queries(["x"])


def test_gemini_2_has_prompts_instead_of_task_types(endpoint: Endpoint) -> None:
    embedder = ApiEmbedder(parse_spec(f"gemini:gemini-embedding-2@{endpoint.url}"))
    endpoint.script = [gemini]
    embedder.embed_queries(["where?"])
    (request,) = endpoint.requests[-1][2]["requests"]
    assert request == {
        "model": "models/gemini-embedding-2",
        "content": {"parts": [{"text": "task: search result | query: where?"}]},
    }


def test_batches_are_no_longer_than_the_provider_takes(endpoint: Endpoint) -> None:
    embedder = ApiEmbedder(parse_spec({"model": f"cohere:embed-v4.0@{endpoint.url}", "batch_size": 500}))
    endpoint.script = [cohere] * 3
    assert embedder.embed_passages(["x" * n for n in range(200)]).shape == (200, 2)
    assert sorted(len(payload["texts"]) for _, _, payload in endpoint.requests) == [8, 96, 96]


@pytest.mark.parametrize(("kind", "answer"), [("cohere", {"embeddings": [[1.0]]}), ("gemini", {"embeddings": [{}]})])
def test_answers_of_another_shape(endpoint: Endpoint, kind: str, answer: Any) -> None:
    endpoint.script = [(200, {}, answer)]
    with pytest.raises(CorpusError, match="did not return 1 embeddings"):
        ApiEmbedder(parse_spec(f"{kind}:some-model@{endpoint.url}")).embed_queries(["x"])


def test_a_mode_of_the_user_changes_the_revision(endpoint: Endpoint) -> None:
    spec = {"model": f"voyage:voyage-3.5@{endpoint.url}"}
    own = ApiEmbedder(parse_spec({**spec, "query_task": "document"}))
    own.embed_queries(["x"])
    assert endpoint.requests[-1][2]["input_type"] == "document"
    assert own.revision != ApiEmbedder(parse_spec(spec)).revision


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai:voyage-3.5@https://api.voyageai.com/v1", "voyage:voyage-3.5 tells them apart"),
        ("openai:jinaai/jina-embeddings-v3@http://localhost:8000/v1", "cannot choose the adapters retrieval.query"),
    ],
)
def test_openais_protocol_says_what_it_cannot_ask_for(
    name: str, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        ApiEmbedder(parse_spec({"model": name, "normalize": True}))
    assert expected in caplog.text


@pytest.mark.parametrize(
    ("settings", "told"), [({}, True), ({"normalize": False}, False), ({"normalize": True}, False)]
)
def test_a_build_says_that_vectors_differ_in_length(
    settings: dict[str, Any], told: bool, endpoint: Endpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The endpoint's vectors are (n, 1, 1, 1) for a text of n letters: 2 to 4.4 long, which ranks and merges."""
    corpus = [Passage(id=str(n), lang="en", text="x" * n) for n in range(1, 5)]
    spec = {"model": f"openai:m@{endpoint.url}", "batch_size": 1, **settings}
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        build_index(corpus, tmp_path / "i", embedder=spec, progress=False)
    assert caplog.text.count("its vectors have lengths of") == int(told)


def test_an_index_of_a_hosted_model_needs_the_user(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.script = [cohere] * 4
    corpus = [Passage(id=str(n), lang="en", text="x" * n) for n in range(1, 5)]
    spec = f"cohere:embed-v4.0@{endpoint.url}"
    build_index(corpus, tmp_path / "i", embedder=spec, progress=False)
    manifest = json.loads((tmp_path / "i" / "manifest.json").read_text())
    assert manifest["embedder"]["spec"]["kind"] == "cohere"
    asked = len(endpoint.requests)
    with pytest.raises(CorpusError, match="is not for an index to decide") as caught:
        load_index(tmp_path / "i", mmap=False).search(["xx"], 2)
    assert spec in str(caught.value)
    with pytest.raises(CorpusError, match="is not for an index to decide"):
        load_index(tmp_path / "i", mmap=False).check_encoder()
    load_index(tmp_path / "i", mmap=False, embedders=[spec]).check_encoder()
    assert len(endpoint.requests) == asked
    endpoint.script = [cohere]
    assert len(load_index(tmp_path / "i", mmap=False, embedders=[spec]).search(["xx"], 2)[0]) == 2


@pytest.mark.parametrize(
    "spec",
    [
        {"model": "embed-v4.0", "kind": "cohere"},
        {"model": "cohere:embed-v4.0"},
        {"model": "gemini-embedding-001", "kind": "gemini", "base_url": "http://elsewhere/v1"},
        {"model": "voyage:voyage-3@http://elsewhere/v1", "api_key_env": "HOME"},
    ],
)
def test_a_manifest_names_no_provider(spec: dict[str, Any]) -> None:
    with pytest.raises(CorpusError, match="is not for an index to decide"):
        allowed_spec(spec, [], "index i")
    # another model or provider of the user is no leave
    with pytest.raises(CorpusError, match="is not for an index to decide"):
        allowed_spec(spec, ["openai:embed-v4.0@http://elsewhere/v1", "jina:voyage-3"], "index i")
