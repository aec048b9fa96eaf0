"""Calls of a retrieval that fail for some rows: a failure of these rows, which a later run asks about again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.core import Failure, Retrieved
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.models import Reply
from mrag_eval.platform import CorpusError
from mrag_eval.platform import _attempts as attempts
from mrag_eval.retrieval import TaskRows, open_folder, retrieve, retrieve_into
from mrag_eval.retrieval.rerank._listwise import ListwiseReranker
from mrag_eval.retrievers import build_index
from tests.task.test_hook import build
from tests.worlds.embedding_server import serving
from tests.worlds.judges import ScriptedJudge
from tests.worlds.model_server import Answer, ModelServer


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )


def block(**changes: Any) -> Retrieval:
    return validated(Retrieval, {"mode": "all", "kind": "bm25", "k": 2, "depth": 6} | changes, "test")


def failures_of(found: Sequence[Retrieved]) -> dict[int, list[str]]:
    return {i: [failure.why for failure in row.failures] for i, row in enumerate(found) if row.failures}


def scored(body: dict[str, Any]) -> Answer:
    return Answer(body=[{"index": i, "score": len(text)} for i, text in enumerate(body["texts"])])


BROKEN = (
    (Answer(500), "server"),
    (Answer(400, body="too long"), "rejected"),
    (Answer(body="<html>"), "malformed"),
    (Answer(body=[{"index": 0, "score": 1}] * 2), "malformed"),
)


@pytest.mark.parametrize(("answer", "reason"), BROKEN)
def test_a_reranker_that_fails_for_one_row_leaves_that_row_in_the_search_s_order(
    answer: Answer, reason: str, benchmark_: Benchmark, start: Callable[..., ModelServer]
) -> None:
    question = benchmark_.docs[1].query
    down = [question]
    server = start(lambda body, attempt: answer if body["query"] in down else scored(body))
    settings = block(rerank={"kind": "api", "url": server.url, "shape": "tei", "retries": 0})
    plain = retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus)
    found = retrieve(benchmark_.docs, settings, corpus=benchmark_.corpus)
    assert failures_of(found) == {1: [f"rerank failed ({reason})"]}
    assert (found[1].ranking, [hit.id for hit in found[1].passages]) == (
        plain[1].ranking,
        [hit.id for hit in plain[1].passages],
    )
    assert found[1].reranked is not None
    assert (found[1].reranked.ranking, found[1].reranked.fault) == ((), f"the reranker gave no scores ({reason})")
    # the same again asks about that row alone, whether it fails again or not
    asked = len(server.requests)
    again = retrieve(benchmark_.docs, settings, corpus=benchmark_.corpus)
    assert failures_of(again) == failures_of(found)
    down.clear()
    assert failures_of(retrieve(benchmark_.docs, settings, corpus=benchmark_.corpus)) == {}
    assert {body["query"] for _, _, body in server.requests[asked:]} == {question}


def test_a_reranker_that_fails_for_every_row_says_why_and_is_not_asked_further(
    benchmark_: Benchmark, start: Callable[..., ModelServer], caplog: pytest.LogCaptureFixture
) -> None:
    # slowly, so that replies are read before many more are on their way
    server = start(lambda body, attempt: Answer(body=[], delay=0.05))
    pairs = sum(len(row.ranking) for row in retrieve(benchmark_.docs, block(), corpus=benchmark_.corpus))
    rerank = {"kind": "api", "url": server.url, "shape": "tei", "batch_size": 1, "retries": 0, "max_in_flight": 1}
    with caplog.at_level(logging.ERROR, "lm_eval"):
        found = retrieve(benchmark_.docs, block(rerank=rerank), corpus=benchmark_.corpus)
    assert {row.failures[0].step for row in found} == {"rerank"}
    assert len(found) == len(benchmark_.docs)
    assert len(server.requests) < pairs / 2
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert said.startswith("15 of 15 rankings have no scores: reranker ")
    assert "gave 0 scores for 1 documents" in said
    assert "rerank.shape" in said


def test_a_list_that_the_model_is_not_asked_about_is_no_list_that_cannot_be_read(
    benchmark_: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = benchmark_.docs[0].query, benchmark_.docs[1].query

    def script(prompt: str) -> str | Reply:
        if first in prompt:
            return Reply("", error="timeout: nothing came")
        # asked a second time, too
        return "I cannot" if second in prompt or "could not be read" in prompt else "[1]"

    reranker = ListwiseReranker(ScriptedJudge(script))  # type: ignore[arg-type]
    monkeypatch.setattr("mrag_eval.retrieval.rerank.open_reranker", lambda _: reranker)
    found = retrieve(benchmark_.docs, block(rerank={"kind": "listwise", "model": "m"}), corpus=benchmark_.corpus)
    assert found[0].failures == (Failure("rerank", "scripted", "timeout", "nothing came"),)
    assert failures_of(found) == {0: ["rerank failed (timeout)"]}
    assert found[1].reranked is not None
    assert found[1].reranked.fault == "the reranker gave no order (unreadable)"


# ------------------------------------------------------------------ embedded queries


def test_a_query_that_is_not_embedded_is_not_searched_for(
    benchmark_: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = {benchmark_.docs[2].query}
    monkeypatch.setattr("mrag_eval.retrieval._search._BATCH", 1)
    with serving() as endpoint:
        whole = endpoint.embeddings
        endpoint.embeddings = lambda payload: {} if {*payload["input"]} & down else whole(payload)  # type: ignore[method-assign]
        encoder = f"openai:org/encoder@{endpoint.url}"
        build_index(benchmark_.corpus or [], tmp_path / "index", embedder=encoder, progress=False)
        settings = validated(
            Retrieval, {"mode": "all", "k": 2, "corpus": str(tmp_path / "index"), "embedder": encoder}, "test"
        )
        found = retrieve(benchmark_.docs, settings)
        assert failures_of(found) == {2: ["search failed (malformed)"]}
        assert (found[2].ranking, found[2].passages) == ((), ())
        assert all(len(row.passages) == 2 for i, row in enumerate(found) if i != 2)
        # the same again asks for that query alone, and again fails for no other
        asked = len(endpoint.requests)
        assert failures_of(retrieve(benchmark_.docs, settings)) == failures_of(found)
        assert [payload["input"] for _, _, payload in endpoint.requests[asked:]] == [[*down]]
        down.clear()
        assert failures_of(retrieve(benchmark_.docs, settings)) == {}


@pytest.mark.parametrize("batch", [1, 4, 64])
@pytest.mark.parametrize("at_fault", [(2,), (2, 3), (0, 7, 14)])
def test_a_query_that_is_not_embedded_costs_no_other(
    benchmark_: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, at_fault: tuple[int, ...]
) -> None:
    down = {benchmark_.docs[i].query for i in at_fault}
    monkeypatch.setattr("mrag_eval.retrieval._search._BATCH", batch)
    with serving() as endpoint:
        whole = endpoint.embeddings
        endpoint.embeddings = lambda payload: {} if {*payload["input"]} & down else whole(payload)  # type: ignore[method-assign]
        encoder = f"openai:org/encoder@{endpoint.url}"
        build_index(benchmark_.corpus or [], tmp_path / "index", embedder=encoder, progress=False)
        found = retrieve(benchmark_.docs, embedded(tmp_path / "index", encoder))
    assert failures_of(found) == {i: ["search failed (malformed)"] for i in at_fault}
    assert all(len(row.passages) == 2 for i, row in enumerate(found) if i not in at_fault)


def test_an_endpoint_that_embeds_no_query_says_why_and_is_not_asked_for_each(
    benchmark_: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mrag_eval.retrieval._search._BATCH", 5)
    with serving() as endpoint:
        encoder = f"openai:org/encoder@{endpoint.url}"
        build_index(benchmark_.corpus or [], tmp_path / "index", embedder=encoder, progress=False)
        endpoint.embeddings = lambda payload: {}  # type: ignore[method-assign]
        asked = len(endpoint.requests)
        with caplog.at_level(logging.ERROR, "lm_eval"):
            found = retrieve(benchmark_.docs, embedded(tmp_path / "index", encoder))
        assert len(endpoint.requests) == asked + 3
    assert failures_of(found) == {i: ["search failed (malformed)"] for i in range(15)}
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert said.startswith("15 of 15 queries are not embedded: embedder openai:org/encoder")
    assert "did not return 5 embeddings" in said


NAN = float("nan")
UNUSABLE: dict[str, list[float]] = {
    "all zero": [0.0] * 4,
    "not a number": [NAN] * 4,
    "one not a number": [1.0, NAN, 1.0, 1.0],
    "infinite": [float("inf")] * 4,
    "half as long": [1.0] * 2,
    "twice as long": [1.0] * 8,
    "empty": [],
}


def answering_for(at_fault: set[str], vector: list[float], whole: Any) -> Any:
    """Return embeddings with this vector for the texts at fault."""

    def embeddings(payload: dict[str, Any]) -> Any:
        body = whole(payload)
        for item in body["data"]:
            if payload["input"][item["index"]] in at_fault:
                item["embedding"] = vector
        return body

    return embeddings


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 4, 64])
@pytest.mark.parametrize("what", UNUSABLE)
@pytest.mark.parametrize("normalize", [None, True])
def test_a_vector_that_cannot_be_compared_is_a_failure_of_its_row_alone(
    benchmark_: Benchmark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    what: str,
    normalize: bool | None,
) -> None:
    at_fault = (2, 7)
    monkeypatch.setattr("mrag_eval.retrieval._search._BATCH", batch)
    with serving() as endpoint:
        encoder: Any = {"model": f"openai:org/encoder@{endpoint.url}", "normalize": normalize}
        build_index(benchmark_.corpus or [], tmp_path / "index", embedder=encoder, progress=False)
        down = {benchmark_.docs[i].query for i in at_fault}
        whole = endpoint.embeddings
        endpoint.embeddings = answering_for(down, UNUSABLE[what], whole)  # type: ignore[method-assign]
        found = retrieve(benchmark_.docs, embedded(tmp_path / "index", encoder))
        assert failures_of(found) == {i: ["search failed (malformed)"] for i in at_fault}
        assert all(found[i].ranking == found[i].passages == () for i in at_fault)
        assert all(len(row.passages) == 2 for i, row in enumerate(found) if i not in at_fault)
        # nothing of the fault is kept
        endpoint.embeddings = whole  # type: ignore[method-assign]
        assert failures_of(retrieve(benchmark_.docs, embedded(tmp_path / "index", encoder))) == {}


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> list[Future[Any]]:
    """Return what is sent to endpoints: a future for each group of requests, which is done when none follows."""
    started: list[Future[Any]] = []

    @contextmanager
    def running_on_loop(work: Any) -> Iterator[Future[Any]]:
        with real(work) as running:
            started.append(running)
            yield running

    real = attempts.running_on_loop
    monkeypatch.setattr(attempts, "running_on_loop", running_on_loop)
    return started


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("what", UNUSABLE)
def test_a_vector_that_cannot_be_compared_ends_a_build_and_names_the_passage(
    benchmark_: Benchmark, tmp_path: Path, batch: int, what: str, sending: list[Future[Any]]
) -> None:
    passages = list(benchmark_.corpus or [])
    with serving() as endpoint:
        encoder: Any = {"model": f"openai:org/encoder@{endpoint.url}", "batch_size": batch, "dimensions": 4}
        down = {passages[5].text}
        endpoint.embeddings = answering_for(down, UNUSABLE[what], endpoint.embeddings)  # type: ignore[method-assign]
        with pytest.raises(CorpusError) as caught:
            build_index(passages, tmp_path / "index", embedder=encoder, progress=False)
        # whoever looks at the error sends nothing more
        assert sending
        assert all(each.done() for each in sending)
    assert f"passage '{passages[5].id}'" in caught.value.message or passages[5].text[:40] in caught.value.message


def embedded(index: Path, encoder: Any) -> Retrieval:
    return validated(Retrieval, {"mode": "all", "k": 2, "corpus": str(index), "embedder": encoder}, "test")


# ------------------------------------------------------------------ run folders


def test_rows_that_failed_are_retrieved_again_into_the_same_folder(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = Failure("translation", "t", "timeout", "3 s", "documents")
    real, asked = TaskRows.retrieved, []

    def retrieved(self: TaskRows, docs: Sequence[Any]) -> list[Retrieved]:
        asked.append([doc.id for doc in docs])
        rows = real(self, docs)
        if len(asked) > 1:
            return rows
        return [Retrieved(row.passages, failures=(failure,)) if i in (0, 3) else row for i, row in enumerate(rows)]

    monkeypatch.setattr(TaskRows, "retrieved", retrieved)
    folder = tmp_path / "rows"

    def into() -> Any:
        task = build(tasks)
        return retrieve_into(open_folder(folder), "small", task.supply, task.rows_to_run())

    assert into().faults == {"translation of documents failed (timeout)": 2}
    rows = open_folder(folder)
    docs = list(build(tasks).supply.docs.values())
    read = rows.rows("small", rows.tasks["small"], docs)
    assert [i for i, row in enumerate(read) if row.failures == (failure,)] == [0, 3]
    done = into()
    assert (done.kept, done.faults) == (13, {})
    assert asked[1] == [docs[0].id, docs[3].id]
    rows = open_folder(folder)
    assert not any(row.failures for row in rows.rows("small", rows.tasks["small"], docs))
