"""Recipes of embedders: small models in the layout of each family get the tokens of the publisher's own recipe."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError, from_json
from mrag_eval.retrievers import build_index, load_embedder, load_index
from mrag_eval.retrievers.embedding import _embedders as embedders
from mrag_eval.retrievers.recipes import _recipe
from mrag_eval.retrievers.recipes._recipe import Recipe, Table, recipe_of, recipes
from tests.worlds.tiny_families import encoder_folder

QUERY, PASSAGE = "where is {passage} the 橋?", "The old bridge is in Varn. Мост, ሶስት"
_WEB = "Given a web search query, retrieve relevant passages that answer the query"


class Published(NamedTuple):
    """A publisher's recipe, written out: the texts before queries and passages, the pooling, and the unit length."""

    model: str
    layout: str
    query: str
    passage: str
    pooling: str
    unit: bool = True


QWEN3 = Published("Qwen/Qwen3-Embedding-0.6B", "qwen3", f"Instruct: {_WEB}\nQuery:", "", "last")
MULTI_QA = Published("sentence-transformers/multi-qa-mpnet-base-dot-v1", "mpnet", "", "", "first", unit=False)
PUBLISHED = [
    Published("intfloat/multilingual-e5-base", "xlm-roberta", "query: ", "passage: ", "mean"),
    Published("intfloat/multilingual-e5-large-instruct", "xlm-roberta", f"Instruct: {_WEB}\nQuery: ", "", "mean"),
    Published("intfloat/e5-mistral-7b-instruct", "mistral", f"Instruct: {_WEB}\nQuery: ", "", "last"),
    Published("BAAI/bge-m3", "xlm-roberta", "", "", "first"),
    Published("BAAI/bge-base-zh-noinstruct", "xlm-roberta", "", "", "first"),
    Published("BAAI/bge-base-zh-v1.5", "xlm-roberta", "为这个句子生成表示以用于检索相关文章：", "", "first"),
    Published("BAAI/bge-multilingual-gemma2", "gemma2", f"<instruct>{_WEB}.\n<query>", "", "last"),
    Published("Alibaba-NLP/gte-Qwen2-1.5B-instruct", "qwen2", f"Instruct: {_WEB}\nQuery: ", "", "last"),
    Published("Alibaba-NLP/gte-modernbert-base", "modernbert", "", "", "first"),
    Published("Snowflake/snowflake-arctic-embed-l-v2.0", "xlm-roberta", "query: ", "", "first"),
    Published("google/embeddinggemma-300m", "gemma3", "task: search result | query: ", "title: none | text: ", "mean"),
    Published(
        "nvidia/llama-embed-nemotron-8b",
        "llama",
        "Instruct: Given a question, retrieve passages that answer the question\nQuery: ",
        "",
        "mean",
    ),
    Published(
        "KaLM-Embedding/KaLM-embedding-multilingual-mini-instruct-v2.5",
        "qwen2",
        "Instruct: Given a query, retrieve documents that answer the query \n Query: ",
        "",
        "mean",
    ),
    Published("cl-nagoya/ruri-v3-310m", "modernbert", "検索クエリ: ", "検索文書: ", "mean"),
    Published("ai-forever/ru-en-RoSBERTa", "xlm-roberta", "search_query: ", "search_document: ", "first"),
    Published("NovaSearch/stella_en_1.5B_v5", "qwen2", f"Instruct: {_WEB}.\nQuery: ", "", "mean"),
    Published("jinaai/jina-embeddings-v5-text-small-retrieval", "qwen3", "Query: ", "Document: ", "last"),
    Published("facebook/mcontriever-msmarco", "xlm-roberta", "", "", "mean", unit=False),
]


def check(published: Published, folder: Path) -> None:
    """Compare tokens and vectors of a small model with those of the publisher's recipe."""
    import torch
    import transformers

    folder = encoder_folder(folder / published.model.rpartition("/")[2], published.layout)
    embedder: Any = load_embedder(str(folder))
    given: list[list[int]] = []

    def record(module: Any, args: Any) -> None:
        ids, mask = args[0]["input_ids"], args[0]["attention_mask"].bool()
        given.extend(row[held].tolist() for row, held in zip(ids, mask, strict=True))

    embedder._model[0].register_forward_pre_hook(record)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    pick = {"first": lambda states: states[0], "last": lambda states: states[-1], "mean": lambda s: s.mean(axis=0)}
    for prefix, text, embed in (
        (published.query, QUERY, embedder.embed_queries),
        (published.passage, PASSAGE, embedder.embed_passages),
    ):
        given.clear()
        # a second, shorter text makes padding
        vectors = embed([text, "rice"])
        expected = [tokenizer(prefix + each)["input_ids"] for each in (text, "rice")]
        assert given == sorted(expected, key=len, reverse=True), published.model
        for vector, ids in zip(vectors, expected, strict=True):
            with torch.inference_mode():
                states = model(input_ids=torch.tensor([ids])).last_hidden_state[0].float().numpy()
            wanted = pick[published.pooling](states)
            wanted = wanted / np.linalg.norm(wanted) if published.unit else wanted
            np.testing.assert_allclose(vector, wanted, atol=2e-4, rtol=2e-3, err_msg=published.model)
    embedders._load.cache_clear()


@pytest.mark.model
@pytest.mark.parametrize("published", [QWEN3, MULTI_QA], ids=lambda published: published.model)
def test_a_model_gets_the_tokens_of_its_publishers_recipe(published: Published, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    check(published, tmp_path)


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.model)
def test_every_family_gets_the_tokens_of_its_publishers_recipe(published: Published, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    check(published, tmp_path)


# --- the records --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", get_args(Table))
def test_every_recipe_names_its_source_and_licence(table: Table) -> None:
    for recipe in recipes(table):
        assert recipe.source.startswith("https://"), recipe.family
        assert recipe.licence, recipe.family
        assert ("{instruction}" in recipe.query) <= (recipe.instruction is not None), recipe.family
        assert bool(recipe.pieces) == bool(recipe.answers), recipe.family
    assert len({recipe.family for recipe in recipes(table)}) == len(recipes(table))


def test_a_misspelt_key_of_a_recipe_is_named() -> None:
    row = {"family": "E5", "pattern": "e5", "source": "https://", "licence": "mit", "quary": "query: "}
    with pytest.raises(DataError, match="quary"):
        from_json(Recipe, row, "a table", "correct the file")


@pytest.mark.parametrize(
    ("model", "query", "passage", "tasks"),
    [
        (
            "jinaai/jina-embeddings-v3",
            "Represent the query for retrieving evidence documents: ",
            "Represent the document for retrieval: ",
            ("retrieval.query", "retrieval.passage"),
        ),
        ("jinaai/jina-embeddings-v4", "Query: ", "Passage: ", ("retrieval", "retrieval")),
        ("jinaai/jina-embeddings-v5-text-nano", "Query: ", "Document: ", ("retrieval", "retrieval")),
        ("cohere:embed-v4.0", "", "", ("search_query", "search_document")),
        ("gemini:gemini-embedding-2", "task: search result | query: ", "title: none | text: ", None),
        ("jina:jina-embeddings-v2-base-en", "", "", None),
    ],
)
def test_models_that_cannot_be_run_here(model: str, query: str, passage: str, tasks: tuple[str, str] | None) -> None:
    recipe = recipe_of("embedders", model)
    assert recipe is not None
    assert (recipe.query_prefix(), recipe.passage, recipe.tasks) == (query, passage, tasks)


# --- the user's settings, and the model's own ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of no known family, without settings of sentence-transformers."""
    pytest.importorskip("sentence_transformers")
    return encoder_folder(tmp_path_factory.mktemp("models") / "own-encoder", "xlm-roberta")


def configured(plain: Path, folder: Path, **settings: Any) -> Path:
    """Return a copy of a model with settings of sentence-transformers."""
    import shutil

    shutil.copytree(plain, folder)
    if settings:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(settings), encoding="utf-8")
        layers(folder, "sentence_transformers.models.Transformer")
    return folder


def layers(folder: Path, transformer: str, **settings: Any) -> None:
    """Write the layers of sentence-transformers: a transformer of this class and mean pooling."""
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    modules = [
        {"idx": 0, "name": "transformer", "path": "", "type": transformer, **settings},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")


@pytest.mark.model
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("query", "passage"), ("Q: ", "P: ")),
        (("query", "document"), ("Q: ", "P: ")),
        (("retrieval.query", "retrieval.passage"), ("Q: ", "P: ")),
        (("search_query", "search_document"), ("Q: ", "P: ")),
        (("s2p_query", "s2s_query"), ("Q: ", "")),
        (("検索クエリ", "検索文書"), ("Q: ", "P: ")),
    ],
)
def test_prompts_of_an_unknown_model_are_found_by_name(
    names: tuple[str, str], expected: tuple[str, str], plain: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = dict(zip(names, ("Q: ", "P: "), strict=True))
    folder = configured(plain, tmp_path / "encoder", prompts=prompts, similarity_fn_name="dot")
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        embedder: Any = load_embedder(str(folder))
    assert (embedder.query_prefix, embedder.passage_prefix, embedder.normalize) == (*expected, False)
    assert not [line for line in caplog.messages if "prompts" in line]


@pytest.mark.model
def test_prompts_under_other_names_are_reported(plain: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = configured(plain, tmp_path / "encoder", prompts={"asks": "A: "}, similarity_fn_name="cosine")
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        embedder: Any = load_embedder(str(folder))
    assert (embedder.query_prefix, embedder.normalize) == ("", True)
    (line,) = [line for line in caplog.messages if "prompts" in line]
    assert "that are not used (asks: 'A: '); none of these names is known" in line
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        load_embedder({"model": str(folder), "query_prefix": "A: "})
    assert not caplog.messages


@pytest.mark.model
def test_prompts_that_the_recipe_replaces_are_reported(
    plain: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = {"query": "ask: ", "passage": "passage: ", "sts": "same: "}
    folder = configured(plain, tmp_path / "multilingual-e5-base", prompts=prompts)
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        embedder: Any = load_embedder(str(folder))
    assert embedder.query_prefix == "query: "
    (line,) = caplog.messages
    assert "not used (query: 'ask: '); the recipe of the family E5 is used instead" in line


@pytest.mark.model
def test_an_unknown_model_has_unit_length_only_if_somebody_says_so(
    plain: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        embedder: Any = load_embedder(str(plain))
    assert embedder.normalize is False
    (line,) = caplog.messages
    assert "neither a known family nor its configuration says" in line
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        unit: Any = load_embedder({"model": str(plain), "normalize": True})
    assert not caplog.messages
    np.testing.assert_allclose(np.linalg.norm(unit.embed_queries(["rice", "tea"]), axis=1), 1, atol=1e-5)
    assert abs(np.linalg.norm(embedder.embed_queries(["rice"])) - 1) > 0.1


@pytest.mark.model
def test_an_instruction_takes_the_place_of_the_recipes(plain: Path, tmp_path: Path) -> None:
    folder = configured(plain, tmp_path / "multilingual-e5-large-instruct")
    embedder: Any = load_embedder({"model": str(folder), "instruction": "Find {passage}"})
    assert embedder.query_prefix == "Instruct: Find {passage}\nQuery: "
    assert embedder.revision != load_embedder(str(folder)).revision
    with pytest.raises(ConfigError, match="'instruction' is not used, its family is not known"):
        load_embedder({"model": str(plain), "instruction": "Find"})
    with pytest.raises(ConfigError, match="models of the family E5 take none"):
        load_embedder({"model": str(configured(plain, tmp_path / "e5-base")), "instruction": "Find"})


@pytest.mark.model
def test_an_index_is_not_searched_with_another_recipe(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = configured(plain, tmp_path / "e5-base")
    corpus = [Passage(id=str(n), lang="en", text=text) for n, text in enumerate(["old bridge", "rice", "river"])]
    build_index(corpus, tmp_path / "i", embedder=str(folder), progress=False).search(["rice"], 1)
    embedders._load.cache_clear()
    changed = Recipe(family="E5", pattern="e5", source="https://", licence="mit", query="ask: ", passage="passage: ")
    monkeypatch.setattr(_recipe, "recipes", lambda table: (changed,))
    index = load_index(tmp_path / "i", mmap=False, expect_embedder=str(folder))
    with pytest.raises(CorpusError, match="the same files, with another recipe") as caught:
        index.search(["rice"], 1)
    assert "rebuild the index" in str(caught.value)


# --- adapters: models with code of their own ----------------------------------------------------------------------

_ADAPTERS = '''
from sentence_transformers.models import Transformer


class Adapted(Transformer):
    """Adds the length of the adapter's name to every number, so that a wrong adapter shows."""

    def forward(self, features, task=None, **kwargs):
        out = super().forward(features, **kwargs)
        if task is None:
            raise RuntimeError("no adapter was chosen")
        out["token_embeddings"] = out["token_embeddings"] + len(task)
        return out
'''


def adapted(folder: Path) -> Path:
    """Write a model of the layout of jina-embeddings-v3: code of its own, with an argument ``task``."""
    encoder_folder(folder, "xlm-roberta")
    (folder / "custom_st.py").write_text(_ADAPTERS, encoding="utf-8")
    layers(folder, "custom_st.Adapted", kwargs=["task"])
    return folder


@pytest.mark.model
def test_adapters_are_chosen_for_queries_and_passages(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    import torch
    import transformers

    folder = adapted(tmp_path / "jina-embeddings-v3")
    spec = {"model": str(folder), "trust_remote_code": True, "normalize": False}
    embedder = load_embedder(spec)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    for task, prompt, embed in (
        ("retrieval.query", "Represent the query for retrieving evidence documents: ", embedder.embed_queries),
        ("retrieval.passage", "Represent the document for retrieval: ", embedder.embed_passages),
    ):
        with torch.inference_mode():
            states = model(**tokenizer(prompt + QUERY, return_tensors="pt")).last_hidden_state[0].numpy()
        np.testing.assert_allclose(embed([QUERY])[0], states.mean(axis=0) + len(task), atol=1e-4)
    other = load_embedder({**spec, "query_task": "text-matching"})
    assert other.revision != embedder.revision
    assert not np.allclose(other.embed_queries(["rice"]), embedder.embed_queries(["rice"]))


@pytest.mark.model
def test_a_model_with_adapters_does_not_run_without(plain: Path, tmp_path: Path) -> None:
    folder = configured(plain, tmp_path / "jina-embeddings-v3")
    with pytest.raises(ConfigError, match="was loaded without them"):
        load_embedder(str(folder))
