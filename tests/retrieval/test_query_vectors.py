"""Published vectors of questions (``retrieval.query_vectors``): searches without the index's embedder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.core import Passage, RagDoc
from mrag_eval.datasets import Benchmark
from mrag_eval.platform import ConfigError, DataError, MragError
from mrag_eval.retrieval import index_record, retrieve
from mrag_eval.retrieval.sources import Lacking, source_for
from mrag_eval.retrievers import build_index, import_vectors
from tests.worlds.hub_server import serving
from tests.worlds.vectors import write_table

ROWS = [
    RagDoc("1", "Where is the bridge?", "en"),
    RagDoc("2", "Who built it?", "en"),
    RagDoc("1", "다리는 어디에?", "ko"),
]
VECTORS = np.eye(3, 4, dtype=np.float32)


class Closed:
    """An embedder that gives passages vectors, and cannot be asked for queries."""

    name, revision, dim = "closed", "1", 4

    def embed_passages(self, texts: Any) -> np.ndarray:
        return np.eye(4, dtype=np.float32)[: len(texts)]

    def embed_queries(self, texts: Any) -> np.ndarray:
        raise AssertionError("no query may be embedded")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    passages = [Passage(f"p{n}", "en", f"passage {n}") for n in range(4)]
    build_index(passages, tmp_path / "closed", embedder=Closed(), progress=False)
    return tmp_path / "closed"


def _lines(path: Path, *columns: str, vectors: Any = VECTORS, ids: Any = None) -> Path:
    values = [
        {"id": identifier, "lang": row.query_lang, "query": row.query, "emb": np.asarray(vector).tolist()}
        for row, identifier, vector in zip(ROWS, ids or [row.id for row in ROWS], vectors, strict=True)
    ]
    kept = {"emb", *columns}
    lines = [json.dumps({key: value for key, value in row.items() if key in kept}) for row in values]
    path.write_text("\n".join(lines), "utf-8")
    return path


def _best(corpus: Path, vectors: Any, rows: list[RagDoc] | None = None, **block: Any) -> list[str]:
    block = {"mode": "all", "corpus": str(corpus), "query_vectors": vectors, "k": 1, **block}
    retrieval = validated(Retrieval, block, "test")
    return [found.passages[0].id for found in retrieve(rows or ROWS, retrieval)]


@pytest.mark.parametrize("columns", [("id", "lang"), ("id", "lang", "query"), ("query",), ("id", "query")])
def test_a_vector_is_found_by_the_id_or_the_text(tmp_path: Path, corpus: Path, columns: tuple[str, ...]) -> None:
    assert _best(corpus, str(_lines(tmp_path / "q.jsonl", *columns))) == ["p0", "p1", "p2"]


def test_a_folder_of_parquet_files_by_language(tmp_path: Path, corpus: Path) -> None:
    for lang in ("en", "ko"):
        numbers = [n for n, row in enumerate(ROWS) if row.query_lang == lang]
        table = {"qid": [ROWS[n].id for n in numbers], "vec": list(VECTORS[numbers])}
        write_table(tmp_path / "set" / lang / "test.parquet", table)
    block = {"source": str(tmp_path / "set"), "vectors": "vec", "id": "qid"}
    assert _best(corpus, block) == ["p0", "p1", "p2"]


def test_a_dataset_of_the_hub_is_named_by_its_commit(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"id": [row.id for row in ROWS[:2]], "emb": list(VECTORS[:2])}
    write_table(tmp_path / "set" / "en" / "test-0.parquet", table)
    with serving() as hub:
        sha = hub.add("JRQi/MKQA-emb", tmp_path / "set")
        hub.inside(monkeypatch, tmp_path / "home")
        assert _best(corpus, "hub:JRQi/MKQA-emb", ROWS[:2]) == ["p0", "p1"]
        block = {"mode": "all", "corpus": str(corpus), "query_vectors": "hub:JRQi/MKQA-emb"}
        source = source_for(validated(Retrieval, block, "test"), Benchmark("test", ROWS[:2]))
        source.check(ROWS[:2], Lacking())
    record = source.record()["index"]
    assert record["query_vectors"] == {"source": "hub:JRQi/MKQA-emb", "revision": sha}


def test_other_vectors_are_another_search(tmp_path: Path, corpus: Path) -> None:
    path = _lines(tmp_path / "q.jsonl", "id", "lang")
    assert _best(corpus, str(path)) == ["p0", "p1", "p2"]
    other = _lines(tmp_path / "other.jsonl", "id", "lang", vectors=np.roll(VECTORS, 1, axis=1))
    assert _best(corpus, str(other)) == ["p1", "p2", "p3"]


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (("id", "lang"), {"ids": ["1", "9", "1"]}, "has no vector for row '2' (en)"),
        (("id",), {}, "row '1' has another vector"),
        (("id", "lang"), {"vectors": np.eye(3, 5)}, "line 1: the vector has 5 dimensions, the index 4"),
        (("id", "lang"), {"vectors": np.full((3, 4), np.nan)}, "not finite"),
        (("lang",), {}, "no column of ids"),
    ],
)
def test_what_does_not_fit_names_the_row(
    tmp_path: Path, corpus: Path, columns: tuple[str, ...], options: dict[str, Any], said: str
) -> None:
    if "NaN" in json.dumps(np.asarray(options.get("vectors", [])).tolist()):
        table = {"id": ["1", "2", "1"], "lang": ["en", "en", "ko"], "emb": list(options["vectors"])}
        path = write_table(tmp_path / "q.parquet", table)
    else:
        path = _lines(tmp_path / "q.jsonl", *columns, **options)
    with pytest.raises(DataError) as failed:
        _best(corpus, str(path))
    assert said in failed.value.message
    assert failed.value.next_step


def test_another_question_under_the_same_id_is_named(tmp_path: Path, corpus: Path) -> None:
    path = _lines(tmp_path / "q.jsonl", "id", "lang", "query")
    rows = [RagDoc("2", "Who paid for it?", "en")]
    with pytest.raises(DataError, match="row '2' \\(en\\): its question there is 'Who built it\\?'"):
        _best(corpus, str(path), rows)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"mode": "coral"}, "the planner writes the queries"),
        ({"mode": "translation"}, "those of the questions"),
        ({"mode": "all", "kind": "precomputed", "run": "x.trec"}, "the run is used as it is"),
        ({"mode": "all", "query_vectors": {"source": "x", "columns": 3}}, "columns"),
    ],
)
def test_what_cannot_be_combined(block: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        validated(Retrieval, {"query_vectors": "q.jsonl", **block}, "test")


def test_results_say_what_the_check_of_imported_vectors_found(tmp_path: Path, corpus: Path) -> None:
    table = {"text": [f"passage {n}" for n in range(4)], "emb": list(np.eye(4, dtype=np.float32))}
    write_table(tmp_path / "set" / "en" / "0.parquet", table)
    index = import_vectors(str(tmp_path / "set"), tmp_path / "index", embedder=Closed(), progress=False)
    record = index_record(validated(Retrieval, {"mode": "all", "corpus": str(index.path)}, "test"))
    assert record["imported"] == [{"source": "set", "revision": None, "check": "verified 4 of 4 (text alone)"}]
    assert "imported" not in index_record(validated(Retrieval, {"mode": "all", "corpus": str(corpus)}, "test"))


def test_an_index_without_vectors_takes_none(tmp_path: Path) -> None:
    build_index([Passage("p", "en", "the bridge")], tmp_path / "words", kind="bm25", progress=False)
    with pytest.raises(MragError, match="it has no vectors"):
        _best(tmp_path / "words", str(_lines(tmp_path / "q.jsonl", "id", "lang")))
