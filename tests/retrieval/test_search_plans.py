"""Dependencies of a search: places by quota, cached results and vectors, the languages an index holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import Retrieval
from mrag_eval.core import Passage, RagDoc, matching_languages
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.platform import CorpusError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval._texts import passages_by_id
from mrag_eval.retrieval.sources import Lacking, source_for
from mrag_eval.retrievers import build_index
from mrag_eval.retrievers.embedding._api_embeddings import ApiEmbedder
from mrag_eval.retrievers.shards._bm25_shard import Bm25Parameters
from tests.retrieval.test_ir_modes import search
from tests.worlds.small import LANGS, TOPICS


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )


def test_with_fewer_places_than_languages_every_language_gets_its_turn(benchmark_: Benchmark) -> None:
    words = " ".join(TOPICS["ferry"][lang][1] for lang in LANGS)
    docs = [replace(benchmark_.docs[0], id=str(i), query=f"{words} {i}") for i in range(60)]

    def shown(seed: int) -> list[tuple[str, ...]]:
        found = search(benchmark_, docs, mode="balanced", k=2, seed=seed)
        return [tuple(sorted(hit.lang for hit in got.passages)) for got in found]

    first = shown(0)
    assert all(len(set(langs)) == 2 for langs in first)
    assert {lang for langs in first for lang in langs} == set(LANGS)
    assert shown(0) == first
    assert shown(1) != first  # the cache separates the seeds


@pytest.mark.parametrize("merge", ["rrf", "rank_norm"])
def test_ties_between_languages_are_rotated_by_question_and_seed(benchmark_: Benchmark, merge: str) -> None:
    words = " ".join(TOPICS["ferry"][lang][1] for lang in LANGS)
    docs = [replace(benchmark_.docs[0], id=str(i), query=f"{words} {i}") for i in range(100)]

    def leading(seed: int) -> list[str]:
        return [got.passages[0].lang for got in search(benchmark_, docs, mode="all", merge=merge, k=5, seed=seed)]

    first = leading(0)
    # one of five languages each: 20 of 100, a deviation is 4
    assert set(Counter(first)) == set(LANGS)
    assert max(Counter(first).values()) <= 36
    assert leading(0) == first
    assert leading(1) != first  # the cache separates the seeds


def test_an_index_with_other_lexical_parameters_finds_no_old_results(benchmark_: Benchmark, tmp_path: Path) -> None:
    scores = []
    for parameters in (Bm25Parameters(), Bm25Parameters(k1=0.3, b=0.0)):
        path = tmp_path / "index"
        index = build_index(benchmark_.corpus or [], path, kind="bm25", bm25=parameters, overwrite=True, progress=False)
        found = retrieve(benchmark_.docs, Retrieval(mode="qlang", corpus=str(path)))
        fresh = index.search(
            [doc.query for doc in benchmark_.docs], 5, languages=[[d.query_lang] for d in benchmark_.docs]
        )
        assert [[p.score for p in got.ranking] for got in found] == [[h.score for h in hits] for hits in fresh]
        scores.append(found[0].ranking[0].score)
    assert scores[0] != scores[1]


def test_vectors_of_one_address_are_not_used_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def vectors(
        self: ApiEmbedder, batches: list[list[str]], task: str | None, failed: Any = None
    ) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
        asked.append(self._url)
        yield from ((number, np.ones((len(texts), 4), dtype=np.float32)) for number, texts in enumerate(batches))

    monkeypatch.setattr(ApiEmbedder, "_arriving", vectors)
    corpus = [Passage(id=str(n), lang="en", text=f"text {n}") for n in range(3)]
    for host in ("one", "two"):
        encoder = f"openai:org/encoder@http://{host}/v1"
        build_index(corpus, tmp_path / host, embedder=encoder, progress=False)
        asked.clear()
        block = Retrieval(mode="all", corpus=str(tmp_path / host), embedder=encoder)
        for _ in range(2):
            retrieve([RagDoc("q", "Which text?", "en")], block)
        assert asked == [f"http://{host}/v1/embeddings"]


@pytest.mark.parametrize(
    ("asked", "held", "found"),
    [
        ("zh", ("zh-Hans", "zh-Hant", "en"), {"zh-Hans", "zh-Hant"}),
        ("zh-Hant", ("zh-Hans", "en"), set()),
        ("zh-Hant", ("zh", "en"), {"zh"}),
        ("zh_tw", ("zh-Hant", "zh"), {"zh-Hant"}),
        ("ko", ("en",), set()),
    ],
)
def test_a_task_finds_the_shards_that_its_search_will_find(
    asked: str, held: tuple[str, ...], found: set[str], tmp_path: Path
) -> None:
    corpus = [Passage(id=lang, lang=lang, text="text") for lang in held]
    docs = [RagDoc("q", "text", asked)]
    index = build_index(corpus, tmp_path / "index", kind="bm25", progress=False)
    retrieval = Retrieval(mode="qlang", corpus=str(tmp_path / "index"))
    assert matching_languages(asked, held) == found
    if found:
        assert set(index.resolve([asked])) == found
        source_for(retrieval, Benchmark("test", docs)).check(docs, Lacking())
        source_for(Retrieval(mode="qlang"), Benchmark("test", docs, corpus)).check(docs, Lacking())
        return
    with pytest.raises(CorpusError, match="has no"):
        index.resolve([asked])
    for block, passages in ((retrieval, None), (Retrieval(mode="qlang"), corpus)):
        with pytest.raises(CorpusError, match="has no"):
            source_for(block, Benchmark("test", docs, passages)).check(docs, Lacking())


def test_the_texts_of_a_whole_ranking_can_be_read(benchmark_: Benchmark) -> None:
    block = Retrieval(mode="all", kind="bm25", k=1, depth=6)
    found = retrieve(benchmark_.docs, block, corpus=benchmark_.corpus)
    source = source_for(block, benchmark_)
    texts = passages_by_id((place.id for row in found for place in row.ranking), source)
    by_id = {p.id: p for p in benchmark_.corpus or ()}
    ranked = {place.id for row in found for place in row.ranking}
    shown = {hit.id for row in found for hit in row.passages}
    assert set(texts) == ranked > shown
    assert all(texts[pid].text == by_id[pid].text and texts[pid].lang == by_id[pid].lang for pid in ranked)
    assert passages_by_id((), source_for(block, replace(benchmark_, corpus=None))) == {}  # without opening anything


@pytest.mark.parametrize(
    ("mode", "places"), [("balanced_weighted", {"ar": 10, "en": 10}), ("balanced_passages", {"ar": 14, "en": 6})]
)
def test_weighted_places_go_by_documents_and_only_by_passages_under_that_name(
    mode: str, places: dict[str, int]
) -> None:
    # two documents in each language; the Arabic ones are cut into 35 passages each, the English ones into 15
    corpus = [
        Passage(id=f"{lang}{d}-{n}", lang=lang, text=f"zebra {d} {n}", doc_id=f"{lang}{d}")
        for lang, passages in (("ar", 35), ("en", 15))
        for d in range(2)
        for n in range(passages)
    ]
    block = Retrieval(mode=mode, k=20, kind="bm25", query_text="question")
    (found,) = retrieve([RagDoc("q", "zebra", "en")], block, corpus=corpus)
    assert dict(Counter(place.lang for place in found.ranking)) == places
