"""Retrieval files with texts (RAG-evaluation-harnesses, DPR): alignment by id and question, scores, invalid lines."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Retrieval, validated
from mrag_eval.core import RagDoc, Retrieved
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval.sources._ctxs_file import form_of_question, forms_of
from tests.task.test_hook import run as run_task
from tests.worlds.small import BASE, ScriptedLM, write_task

DOCS = [
    RagDoc("q1", "When was the bridge built?", "en", ("1890",)),
    RagDoc("q2", "Wann wurde die Brücke gebaut?", "de", ("1890",)),
]
OPENED = {"retrieval text": "It opened in 1890."}
LAKE = {"retrieval text": "The lake is in the north."}


def write(folder: Path, *records: Any, name: str = "found.jsonl") -> Path:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def found(path: Path, docs: list[RagDoc] = DOCS, **changes: Any) -> list[Retrieved]:
    block = {
        "mode": "all",
        "kind": "precomputed",
        "run": str(path),
        "run_language": "en",
        "k": 1,
        "depth": 2,
        **changes,
    }
    return retrieve(docs, validated(Retrieval, block, "test"))


@pytest.mark.parametrize("name", ["found.jsonl", "found.jsonl.gz"])
def test_the_forks_file(tmp_path: Path, name: str) -> None:
    prompts = ["Question: When was the bridge built??\nAnswer:", "Frage: Wann wurde die Brücke gebaut?\nAntwort:"]
    lines = [{"query": prompt, "ctxs": [OPENED, LAKE, {"retrieval text": "third"}]} for prompt in prompts]
    first, second = found(write(tmp_path, *lines, name=name))
    assert first == second
    (hit,) = first.passages
    assert (hit.text, hit.lang, hit.rank, hit.score) == ("It opened in 1890.", "en", 1, 2.0)
    assert [(place.lang, place.score) for place in first.ranking] == [("en", 2.0), ("en", 1.0)]
    assert first.ranking[0].id.startswith("text-")


def test_ids_scores_titles_and_languages_are_the_files(tmp_path: Path) -> None:
    wiki = {"id": 7, "doc_id": "d", "title": "Bridge", "text": "Es wurde 1890 eröffnet.", "score": "1.5", "lang": "de"}
    path = write(tmp_path, {"id": "q1", "ctxs": [wiki, {**LAKE, "source": "wiki", "id": [3, 9], "retrieval score": 1}]})
    row = found(path, DOCS[:1])[0]
    assert [(p.id, p.doc_id, p.lang, p.score) for p in row.ranking] == [
        ("7", "d", "de", 1.5),
        ("wiki:3-9", "wiki:3-9", "en", 1.0),
    ]
    assert row.passages[0].title == "Bridge"


@pytest.mark.parametrize(
    ("scores", "kept"),
    [((None, None), (2.0, 1.0)), ((1.0, 2.0), (2.0, 1.0)), ((1.0, 1.0), (2.0, 1.0)), ((-1.0, -2.0), (-1.0, -2.0))],
)
def test_the_order_of_the_file_counts(tmp_path: Path, scores: Any, kept: Any) -> None:
    ctxs = [{**text, "retrieval score": score} for text, score in zip((OPENED, LAKE), scores, strict=True)]
    row = found(write(tmp_path, {"question": "When was the bridge built", "ctxs": ctxs}), DOCS[:1])[0]
    assert tuple(place.score for place in row.ranking) == kept
    assert row.passages[0].text == OPENED["retrieval text"]


def test_rows_and_passages_that_are_missing_or_twice_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lm_eval")
    path = write(tmp_path, {"id": "q1", "ctxs": [OPENED, OPENED]}, {"id": "z", "question": "?", "ctxs": [None]})
    rows = found(path)
    assert [len(row.ranking) for row in rows] == [1, 0]
    assert "2 lines, 1 row found by id, 0 by question" in caplog.text
    assert "no line for 1 of 2 rows, which count as having retrieved nothing: q2" in caplog.text
    assert "1 passages are in their list twice" in caplog.text


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "the file is empty"),
        ([[]], "line 1: expected a JSON object"),
        ([{"ctxs": []}], "line 1: neither a question nor an id is there; keys: ctxs"),
        ([{"query": 5, "ctxs": []}], "line 1: neither a question nor an id is there"),
        ([{"id": "q1"}], "line 1: 'ctxs' is no list of passages"),
        ([{"id": "q1", "ctxs": ["text"]}], "line 1: 'text' among the passages is no object"),
        ([{"id": "q1", "ctxs": [{"title": "T"}]}], "line 1: a passage has no text"),
        ([{"id": "q1", "ctxs": [{**OPENED, "score": "high"}]}], "line 1: the score 'high' is not a finite number"),
        ([{"id": "q1", "ctxs": [{**OPENED, "score": "nan"}]}], "line 1: the score 'nan' is not a finite number"),
        ([{"id": "q1", "ctxs": [{**OPENED, "id": "a\tb"}]}], "line 1: the id 'a\\tb' holds a tab"),
        ([{"id": "q1", "ctxs": [{**OPENED, "lang": "xx"}]}], "line 1: unknown language 'xx'"),
        (
            [{"id": "q1", "ctxs": [{**OPENED, "id": 1}]}, {"id": "q2", "ctxs": [{**LAKE, "id": 1}]}],
            "line 2: passage '1' has another text than before",
        ),
        ([{"id": "1", "question": "Who?", "ctxs": []}], "none of the 2 rows is among its 1 lines"),
        ([{"id": "q1", "question": "Who was it?", "ctxs": []}], "line 1: its question is not that of row 'q1'"),
        (
            [{"question": "When was the bridge built?", "ctxs": [text]} for text in (OPENED, LAKE)],
            "lines 1 and 2: other passages for one question, row 'q1'",
        ),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, records: list[Any], message: str) -> None:
    path = write(tmp_path, *records)
    with pytest.raises(DataError) as caught:
        found(path)
    assert message in caught.value.message
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.next_step


def test_a_language_has_to_be_named_somewhere(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "q1", "ctxs": [OPENED]})
    with pytest.raises(DataError, match=r"line 1: its passages do not say their language.*\n.*retrieval.run_language"):
        found(path, run_language=None)
    with pytest.raises(ConfigError, match="'run_language' requires 'run', the file of another system"):
        validated(Retrieval, {"mode": "all", "run_language": "en"}, "test")


def test_the_question_in_a_prompt() -> None:
    shots = "Question: Who?\nAnswer: He.\n\nQuestion: What is\n the  point ?\nAnswer:"
    assert form_of_question("What is the point?") in {*forms_of(shots)}
    assert form_of_question("Who?") not in {*forms_of(shots)}
    assert form_of_question("哪座桥？") in {*forms_of("问题：哪座桥？\n答案：")}
    assert form_of_question("Which one?") in {*forms_of("Which one?\nA. this\nB. that\nAnswer:")}


def test_a_task_with_such_a_file(world: Path, tmp_path: Path) -> None:
    questions = [json.loads(line) for line in (world / "questions.jsonl").read_text("utf-8").splitlines()]
    path = write(
        tmp_path,
        *({"question": row["query"], "ctxs": [{**OPENED, "id": row["relevant_ids"][0]}, LAKE]} for row in questions),
    )
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl")}
    block = {"mode": "all", "k": 1, "depth": 2, "kind": "precomputed", "run": str(path), "run_language": "en"}
    write_task(tmp_path, "forked", **BASE, data=data, retrieval=block)
    model = ScriptedLM(lambda prompt: "1890")
    config = run_task(tmp_path, "forked", model)["configs"]["forked"]
    assert len(model.prompts) == len(questions)
    assert all("It opened in 1890." in prompt for prompt in model.prompts)
    assert config["measurement"]["data"]["index"]["kind"] == "precomputed"
