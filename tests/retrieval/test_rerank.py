"""The second stage: shown passages, measures, disk cache, settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import Retrieval, split_config, validated
from mrag_eval.core import Passage, RagDoc, Ranked, Reranking, Retrieved, Scored
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval.rerank import _rerank as stage
from mrag_eval.retrieval.rerank._listwise import ListwiseReranker
from mrag_eval.retrievers import load_cross_encoder
from mrag_eval.scoring import METRIC_NAMES, row_record, score_rows, summarize
from tests.task.test_hook import run
from tests.worlds.judges import ScriptedJudge, failing
from tests.worlds.model_server import Answer, ModelServer
from tests.worlds.small import BASE, write_task
from tests.worlds.tiny_models import bert_folder


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )


class ByLength:
    """Prefers long passages; records every pair it receives."""

    def __init__(self, name: str = "by-length", revision: str = "1", sign: float = 1.0) -> None:
        self.name, self.revision, self.sign = name, revision, sign
        self.pairs: list[tuple[str, str]] = []

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Any]:
        self.pairs += [(query, text) for query, texts in zip(queries, passages, strict=True) for text in texts]
        return [np.array([self.sign * len(text) for text in texts]) for texts in passages]


@pytest.fixture
def by_length(monkeypatch: pytest.MonkeyPatch) -> ByLength:
    reranker = ByLength()
    monkeypatch.setattr(
        "mrag_eval.retrieval.rerank.open_reranker", lambda retrieval: reranker if retrieval.rerank else None
    )
    return reranker


def block(**changes: Any) -> Retrieval:
    return validated(
        Retrieval, {"mode": "all", "kind": "bm25", "k": 2, "depth": 6, "rerank": "some/reranker"} | changes, "test"
    )


def test_the_best_of_all_that_is_retrieved_are_shown(benchmark_: Benchmark, by_length: ByLength) -> None:
    plain = retrieve(benchmark_.docs, block(rerank=None), corpus=benchmark_.corpus)
    found = retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    texts = {p.id: p.text for p in benchmark_.corpus or ()}
    assert any(len(row.ranking) > 2 for row in found)
    for row, before in zip(found, plain, strict=True):
        assert row.ranking == before.ranking
        assert row.searchable == before.searchable
        assert before.reranked is None
        expected = sorted(row.ranking, key=lambda p: (-len(texts[p.id]), p.id))
        assert row.reranked is not None
        assert row.reranked.fault is None
        assert [p.id for p in row.reranked.ranking] == [p.id for p in expected]
        assert [hit.id for hit in row.passages] == [p.id for p in expected[:2]]
        assert [hit.rank for hit in row.passages] == list(range(1, len(row.passages) + 1))
        for hit in row.passages:
            assert hit.rerank_score == len(hit.text)
            assert hit.score == next(p.score for p in row.ranking if p.id == hit.id)


def test_equal_scores_are_ordered_by_id(benchmark_: Benchmark, by_length: ByLength) -> None:
    by_length.sign = 0.0
    found = retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    for row in found:
        assert row.reranked is not None
        assert [p.id for p in row.reranked.ranking] == sorted(p.id for p in row.ranking)


def test_only_the_head_of_the_list_is_reranked_if_the_block_says_so(benchmark_: Benchmark, by_length: ByLength) -> None:
    found = retrieve(benchmark_.docs, block(rerank={"model": "some/reranker", "depth": 3}), corpus=benchmark_.corpus)
    for row in found:
        assert row.reranked is not None
        assert {p.id for p in row.reranked.ranking} == {p.id for p in row.ranking[:3]}


def test_a_row_without_hits_has_nothing_to_rerank(benchmark_: Benchmark, by_length: ByLength) -> None:
    docs = [RagDoc("nothing", "xyzzy", "en", relevant_ids=("ferry-en",)), benchmark_.docs[0]]
    nothing, other = retrieve(docs, block(), corpus=benchmark_.corpus)
    assert nothing == Retrieved((), (), nothing.searchable, reranked=Reranking())
    assert other.passages
    rows = [
        Scored(doc, "", found.ranking, reranked=found.reranked)
        for doc, found in zip(docs, (nothing, other), strict=True)
    ]
    scores = score_rows(rows, ["hit@6", "rerank_hit@2"], searched=True, reranked=True)
    assert scores[0].values == {"hit@6": 0.0, "rerank_hit@2": 0.0}


class ByPlace(ByLength):
    """Reads whole lists: a passage's score depends on the others."""

    reads_lists = True

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Any]:
        super().scores(queries, passages)
        return [np.array([len(texts) * 100.0 + len(text) for text in texts]) for texts in passages]


def test_scores_of_a_list_are_those_of_that_list(benchmark_: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = ByPlace()
    monkeypatch.setattr("mrag_eval.retrieval.rerank.open_reranker", lambda retrieval: reranker)
    # the same question twice, with lists of different lengths
    docs = [benchmark_.docs[0]]
    for depth in (6, 2):
        settings = block(rerank={"model": "some/reranker", "depth": depth})
        (found,) = retrieve(docs, settings, corpus=benchmark_.corpus)
        assert found.reranked is not None
        held = len(found.reranked.ranking)
        assert {place.score // 100 for place in found.reranked.ranking} == {held}
        asked = len(reranker.pairs)
        retrieve(docs, settings, corpus=benchmark_.corpus)
        assert len(reranker.pairs) == asked


def test_no_pair_is_scored_twice(benchmark_: Benchmark, by_length: ByLength, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_CHUNK", 7)  # several batches
    first = retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    assert len(by_length.pairs) == len(set(by_length.pairs)) == sum(len(row.ranking) for row in first)
    by_length.pairs.clear()
    assert retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus) == first
    retrieve(benchmark_.docs, block(mode="qlang"), corpus=benchmark_.corpus)  # a subset of the same pairs
    assert by_length.pairs == []
    retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus, use_cache=False)
    assert len(by_length.pairs) == sum(len(row.ranking) for row in first)


@pytest.mark.parametrize("change", [{"name": "other"}, {"revision": "2"}])
def test_scores_of_another_model_or_setting_are_not_found(
    change: dict[str, str], benchmark_: Benchmark, by_length: ByLength, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    other = ByLength(sign=-1.0, **{"name": by_length.name, "revision": by_length.revision} | change)
    monkeypatch.setattr("mrag_eval.retrieval.rerank.open_reranker", lambda retrieval: other)
    after = retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    assert other.pairs
    assert [r.passages for r in after] != [r.passages for r in before]


def test_a_stopped_run_resumes_where_it_stopped(
    benchmark_: Benchmark, by_length: ByLength, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_CHUNK", 1)
    score, calls = by_length.scores, 0

    def stops(queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Any]:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return score(queries, passages)

    monkeypatch.setattr(by_length, "scores", stops)
    with pytest.raises(KeyboardInterrupt):
        retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    done = set(by_length.pairs)
    by_length.pairs.clear()
    found = retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    assert done
    assert done.isdisjoint(by_length.pairs)
    assert len(done) + len(by_length.pairs) == sum(len(row.ranking) for row in found)


def test_the_title_is_read_and_the_query_is_the_one_asked_for(by_length: ByLength) -> None:
    corpus = [Passage("p", "en", "It leaves from pier seven.", title="Ferry"), Passage("q", "en", "Tea leaves.")]
    docs = [RagDoc("r", "What leaves?", "en", choices=("tea", "the ferry"), gold_choice=1)]
    retrieve(docs, block(), corpus=corpus)
    assert set(by_length.pairs) == {
        ("What leaves?\nA. tea\nB. the ferry", "Ferry. It leaves from pier seven."),
        ("What leaves?\nA. tea\nB. the ferry", "Tea leaves."),
    }
    by_length.pairs.clear()
    retrieve(docs, block(rerank={"model": "some/reranker", "query": "question"}), corpus=corpus)
    assert {query for query, _ in by_length.pairs} == {"What leaves?"}


def test_a_listwise_reranker_gives_places_and_keeps_the_order_where_it_fails(
    benchmark_: Benchmark, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Ranker(ScriptedJudge):
        name = "ranker"

    def backwards(prompt: str) -> Any:
        n = prompt.count("</passage_")
        return failing()(prompt) if "Varn built?" in prompt else "[" + ", ".join(map(str, range(n, 0, -1))) + "]"

    model: Any = ListwiseReranker(Ranker(backwards))  # type: ignore[arg-type]
    monkeypatch.setattr("mrag_eval.retrieval.rerank.open_reranker", lambda retrieval: model)
    docs = [doc for doc in benchmark_.docs if doc.query_lang == "en"]
    listwise = block(rerank={"kind": "listwise", "model": "ranker"})
    plain = retrieve(docs, block(rerank=None), corpus=benchmark_.corpus)
    with caplog.at_level("WARNING"):
        found = retrieve(docs, listwise, corpus=benchmark_.corpus)
    failed = 0
    for row, before in zip(found, plain, strict=True):
        assert row.reranked is not None
        ids = [place.id for place in before.ranking]
        if row.reranked.fault is None:
            assert [place.id for place in row.reranked.ranking] == ids[::-1]
            assert [place.score for place in row.reranked.ranking] == list(range(len(ids), 0, -1))
            assert [hit.id for hit in row.passages] == ids[::-1][:2]
        else:
            failed += 1
            assert row.reranked.ranking == ()
            assert row.passages == before.passages
    assert 0 < failed < len(docs)
    assert f"{failed} rows keep the search's order: the reranker gave no order (timeout)" in caplog.text


@pytest.mark.model
def test_a_real_cross_encoder_from_the_block_to_the_passages(benchmark_: Benchmark, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", minversion="6.0")
    folder = bert_folder(tmp_path / "reranker")
    settings = block(rerank={"model": str(folder), "max_length": 32})
    found = retrieve(benchmark_.docs, settings, corpus=benchmark_.corpus)
    model = load_cross_encoder(str(folder), max_length=32)
    texts = {p.id: p.text for p in benchmark_.corpus or ()}
    for doc, row in zip(benchmark_.docs, found, strict=True):
        assert row.reranked is not None
        ids = [place.id for place in row.reranked.ranking]
        (expected,) = model.scores([doc.query], [[texts[pid] for pid in ids]])
        assert [place.score for place in row.reranked.ranking] == pytest.approx(expected.tolist(), abs=1e-5)
        assert [hit.rerank_score for hit in row.passages] == [place.score for place in row.reranked.ranking[:2]]


def test_an_endpoint_from_the_block_to_the_passages(benchmark_: Benchmark) -> None:
    def tei(body: dict[str, Any], attempt: int) -> Answer:
        return Answer(body=[{"index": i, "score": len(text)} for i, text in enumerate(body["texts"])])

    server = ModelServer(tei)
    try:
        settings = block(rerank={"kind": "api", "url": server.url, "shape": "tei"})
        found = retrieve(benchmark_.docs, settings, corpus=benchmark_.corpus)
        asked = len(server.requests)
        assert retrieve(benchmark_.docs, settings, corpus=benchmark_.corpus) == found
        assert len(server.requests) == asked == sum(bool(row.ranking) for row in found)
    finally:
        server.close()
    assert all(hit.rerank_score == len(hit.text) for row in found for hit in row.passages)


# --- measures ---------------------------------------------------------------------------------------------------------


def ranked(*ids: str) -> tuple[Ranked, ...]:
    return tuple(Ranked(pid, "", "en", float(-place)) for place, pid in enumerate(ids))


def test_measures_before_and_after() -> None:
    docs = [RagDoc(str(n), "q", "en", answers=("x",), relevant_ids=("gold",), gold_doc_lang="de") for n in range(4)]
    stages = [
        # the gold passage is third, then first; first, then third; not found; found, but the reranker failed
        (ranked("a", "b", "gold"), Reranking(ranked("gold", "b", "a"))),
        (ranked("gold", "a", "b"), Reranking(ranked("b", "a", "gold"))),
        (ranked("a", "b", "c"), Reranking(ranked("c", "b", "a"))),
        (ranked("gold", "a", "b"), Reranking((), fault="the reranker gave no order (timeout)", windows=1)),
    ]
    rows = [Scored(doc, "x", before, reranked=after) for doc, (before, after) in zip(docs, stages, strict=True)]
    names = ["match", "hit@3", "mrr@3", "rerank_hit@1", "rerank_mrr@3"]
    scores = score_rows(rows, names, searched=True, reranked=True)
    assert [s.values["hit@3"] for s in scores] == [1, 1, 0, 1]
    assert [s.values["mrr@3"] for s in scores] == pytest.approx([1 / 3, 1, 0, 1])
    assert [s.values.get("rerank_hit@1") for s in scores] == [1, 0, 0, None]
    assert [s.values.get("rerank_mrr@3") for s in scores] == [1, pytest.approx(1 / 3), 0, None]
    assert scores[3].unscored["rerank_hit@1"] == "the reranker gave no order (timeout)"
    assert not any(name.startswith("rerank_") for s in score_rows(rows, names, searched=True) for name in s.values)

    def shown(before: tuple[Ranked, ...], after: Reranking) -> Any:
        from mrag_eval.core import Hit

        return tuple(Hit(p.id, "en", "", 0.0, 1) for p in (after.ranking or before)[:1])

    records = [
        row_record(doc, score, Retrieved(shown(*both), both[0], {"en": 3}, reranked=both[1]))
        for doc, score, both in zip(docs, scores, stages, strict=True)
    ]
    # retrieved counts the search's three, kept the one that is shown after the second stage
    assert [(r.retrieved, r.kept) for r in records] == [(1, 1), (1, 0), (0, 0), (1, 1)]
    summary = summarize(records).to_dict()
    assert summary["metrics"]["rerank_hit@1"]["n"] == 3
    assert summary["metrics"]["rerank_hit@1"]["by"]["pair"]["en->de"]["value"] == pytest.approx(1 / 3)
    assert summary["unscored"]["rerank_hit@1"] == {"the reranker gave no order (timeout)": 1}
    overall = summary["attribution"]["overall"]
    assert overall["kept_if_retrieved"]["value"] == pytest.approx(2 / 3)  # of the three retrieved
    assert summary["rerank"] == {
        "rows": 1, "lists": 1, "repaired": 0, "faults": {"the reranker gave no order (timeout)": 1}
    }  # fmt: skip


def test_through_the_harness(world: Path, by_length: ByLength) -> None:
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    names = ["match", "hit@6", "rerank_hit@2"]
    retrieval = {"mode": "all", "k": 2, "kind": "bm25", "rerank": {"model": "some/reranker"}}
    write_task(world, "second", **BASE | {"metrics": names}, data=data, retrieval=retrieval)
    out = run(world, "second", log_samples=True)
    assert {"hit@6,none", "rerank_hit@2,none"} <= set(out["results"]["second"])
    sample = out["samples"]["second"][0]
    assert sorted(sample["doc"]["reranked"]["ids"]) == sorted(sample["doc"]["ranking"]["ids"])
    assert [p["id"] for p in sample["doc"]["passages"]] == sample["doc"]["reranked"]["ids"][:2]
    assert out["configs"]["second"]["measurement"]["setting"]["retrieval"]["rerank"]["model"] == "some/reranker"
    assert "rerank_hit@2" in out["configs"]["second"]["scores"]["metrics"]
    off = run(world, "second", metadata={"retrieval.rerank": None})
    assert "rerank_hit@2,none" not in off["results"]["second"]


def test_a_reranker_that_has_nothing_to_choose_from_causes_a_warning(
    world: Path, by_length: ByLength, caplog: pytest.LogCaptureFixture
) -> None:
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    retrieval = {"mode": "all", "k": 2, "kind": "bm25", "rerank": {"model": "some/reranker"}}
    write_task(world, "second", **BASE | {"metrics": ["match"]}, data=data, retrieval=retrieval)
    run(world, "second", metadata={"retrieval.depth": 6})
    assert "that are shown anyway" not in caplog.text
    run(world, "second")
    assert "the reranker orders the 2 passages that are shown anyway" in caplog.text
    assert "set retrieval.depth" in caplog.text


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rerank", "message"),
    [
        ({"modle": "x"}, r"rerank: unknown key 'modle'; did you mean 'model'\?"),
        ({"kind": "api", "model": "m"}, "kind 'api' needs 'url'"),
        ({"kind": "api", "url": "http://x/rerank"}, "'model' is missing"),
        ({"kind": "api", "model": "m", "url": "ftp://x"}, "expected an http"),
        ({"kind": "api", "url": "http://x", "extra": {"api_key": "k3y0f5erver9q"}}, "holds a secret"),
        ({"kind": "listwise"}, "kind 'listwise' needs 'model'"),
        ({"kind": "listwise", "model": "m", "window": 5, "step": 6}, "'step' is 6, more than the window of 5"),
        ({"model": "m", "url": "http://x"}, "'url' requires kind 'api'; kind 'cross-encoder' takes"),
        (
            {"kind": "listwise", "model": "m", "max_length": 256},
            "'max_length' requires kind 'cross-encoder' or",
        ),
        ({"depth": 1}, "'rerank.depth' is 1, outside k = 2 to depth = 6"),
        ({"depth": 7}, "'rerank.depth' is 7, outside k = 2 to depth = 6"),
        ({"max_length": 3}, "greater than or equal to 16"),
    ],
)
def test_impossible_settings_are_errors(rerank: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        block(rerank=rerank)
    assert "pw" not in str(caught.value)
    assert "abc" not in str(caught.value)
    assert "\n" not in caught.value.message


def test_passages_known_beforehand_are_not_reranked() -> None:
    with pytest.raises(ConfigError, match=r"'rerank' cannot be combined with mode 'given'"):
        validated(Retrieval, {"mode": "given", "rerank": "x"}, "test")
    # the passages of the gold documents are shown, if there are more of them than places
    for mode in ("no_ir", "oracle"):
        assert validated(Retrieval, {"mode": mode, "rerank": "x"}, "test").rerank is not None


def test_a_metric_deeper_than_the_reranked_list_is_an_error() -> None:
    task = {
        "task": "t",
        "data": {"benchmark": "demo"},
        "metrics": ["hit@20", "rerank_hit@10"],
        "retrieval": {"mode": "all", "rerank": {"depth": 5}},
    }
    with pytest.raises(ConfigError, match="5 reranked are too few for a metric at 10"):
        split_config(task, METRIC_NAMES)
    with pytest.raises(ConfigError, match="unknown metric 'rerank_hit'"):
        split_config(task | {"metrics": ["rerank_hit"]}, METRIC_NAMES)
