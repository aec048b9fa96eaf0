"""Sharing between the tasks of one run: an index is opened once, an embedder loaded once, a query embedded once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval import retrievers
from mrag_eval.core import Passage
from mrag_eval.retrievers import Index, build_index
from mrag_eval.retrievers.embedding import _embedders as embedders
from mrag_eval.retrievers.embedding import _sparse_encoders as sparse_encoders
from mrag_eval.retrievers.index import _load as load
from tests.worlds.small import BASE, LANGS, TOPICS, write_task
from tests.worlds.tiny_models import bert_folder

QUESTIONS = {question for versions in TOPICS.values() for _, question, _ in versions.values()}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the folder of every index opened, in order; nothing from earlier tests is kept in memory."""
    folders: list[Path] = []
    real = Index.__init__

    def init(self: Index, path: Path, *args: Any, **kwargs: Any) -> None:
        folders.append(path)
        real(self, path, *args, **kwargs)

    monkeypatch.setattr(Index, "__init__", init)
    load._open.cache_clear()
    embedders._load.cache_clear()
    return folders


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each query went through the embedder's model."""
    from mrag_eval.retrievers.embedding._sentence_transformers import SentenceTransformersEmbedder

    counts: Counter[str] = Counter()
    real = SentenceTransformersEmbedder.embed_queries

    def embed(self: Any, texts: Any) -> Any:
        counts.update(texts)
        return real(self, texts)

    monkeypatch.setattr(SentenceTransformersEmbedder, "embed_queries", embed)
    return counts


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the name of every model that is loaded."""
    from mrag_eval.retrievers.embedding._sentence_transformers import SentenceTransformersEmbedder

    names: list[str] = []
    real = SentenceTransformersEmbedder.__init__

    def init(self: Any, spec: Any, *args: Any) -> None:
        names.append(spec.name)
        real(self, spec, *args)

    monkeypatch.setattr(SentenceTransformersEmbedder, "__init__", init)
    return names


def evaluate(folder: Path, *tasks: str) -> Any:
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    return lm_eval.simple_evaluate(model="dummy", tasks=list(tasks), task_manager=manager, bootstrap_iters=0)


@pytest.mark.model
def test_tasks_over_one_named_corpus(
    world: Path,
    tmp_path: Path,
    opened: list[Path],
    loads: list[str],
    embedded: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = bert_folder(tmp_path / "encoder", "BertModel")
    passages = [Passage(f"{t}-{lang}", lang, TOPICS[t][lang][0]) for t in TOPICS for lang in LANGS]
    index = tmp_path / "index"
    build_index(passages, index, embedder=str(model))
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    load._open.cache_clear()
    embedders._load.cache_clear()
    opened.clear()
    loads.clear()
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl")}
    modes = {"all": {}, "qlang": {}, "en_only": {}, "balanced": {}, "deeper": {"mode": "all", "depth": 4}}
    for name, block in modes.items():
        retrieval = {"mode": name, "k": 2, "corpus": str(index), "embedder": str(model), **block}
        write_task(world, name, **BASE, data=data, retrieval=retrieval)
    results = evaluate(world, *modes)
    assert {name: n["effective"] for name, n in results["n-samples"].items()} == dict.fromkeys(modes, 15)
    assert opened == [index.resolve()]
    assert loads == [str(model)]
    assert embedded == Counter(QUESTIONS)  # five tasks ask 75 times, for 15 texts


@pytest.mark.model
def test_leaves_over_a_benchmarks_own_passages(
    world: Path,
    tmp_path: Path,
    opened: list[Path],
    loads: list[str],
    embedded: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    model = bert_folder(tmp_path / "encoder", "BertModel")
    fingerprints: list[int] = []
    real = retrievers.cached_index
    monkeypatch.setattr(
        retrievers, "cached_index", lambda items, **kw: fingerprints.append(len(items)) or real(items, **kw)
    )
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    embedder = {"model": str(model), "batch_size": 4}
    for name in ("all", "qlang", "en_only"):
        retrieval = {"mode": name, "k": 2, "embedder": embedder}
        write_task(world, name, **BASE, data=data, retrieval=retrieval)
    evaluate(world, "all", "qlang", "en_only")
    assert len(opened) == 1
    assert loads == [str(model)]
    assert embedded == Counter(QUESTIONS)
    assert fingerprints == [15]  # the passages are read once for their hash, not once per leaf


def test_sparse_queries_are_encoded_once() -> None:
    class Encoder:
        name, revision, dim = "letters", "1", 26

        def __init__(self) -> None:
            self.asked: Counter[str] = Counter()

        def encode_queries(self, texts: Any) -> list[sparse_encoders.SparseVector]:
            import numpy as np

            self.asked.update(texts)
            return [
                sparse_encoders.SparseVector(
                    np.array([ord(t[0]) - 97], dtype=np.int32), np.array([1.0], dtype=np.float32)
                )
                for t in texts
            ]

        encode_passages = encode_queries

    encoder = Encoder()
    first = sparse_encoders.sparse_query_vectors(encoder, ["b", "a", "b"])
    assert [int(v.terms[0]) for v in first] == [1, 0, 1]
    assert [int(v.terms[0]) for v in sparse_encoders.sparse_query_vectors(encoder, ["c", "a"])] == [2, 0]
    assert encoder.asked == Counter("abc")
