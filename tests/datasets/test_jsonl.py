"""Your own benchmark file: every key is read, every fault named by file, line and key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Retrieval
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.prompts import load_template
from mrag_eval.retrieval import retrieve

FULL = {
    "id": 7,
    "query": " Wo entspringt der Fluss? ",
    "lang": "german",
    "answers": "im Gebirge",
    "choices": ["im Tal", "im Gebirge"],
    "gold_choice": "B",
    "relevant_ids": ["d1"],
    "gold_doc_lang": "arb_Arab",
    "culture_lang": "su",
    "relevant_langs": ["iw", "en"],
    "given_passages": [{"text": "Der Fluss.", "lang": "de", "is_gold": True, "date": "2024-07-01", "title": "T"}],
    "group_id": 3,
    "topic": "rivers",
}
DOCUMENTS = [
    {"id": "d1", "lang": "ar", "text": "ينبع النهر من الجبال.", "title": "النهر"},
    {"id": "d2", "lang": "zht", "text": "河流 {{ query }} {% raw %}", "doc_id": "page"},
]


def write(folder: Path, *rows: dict[str, Any], corpus: list[dict[str, Any]] | None = None) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = "\n\n".join(json.dumps(item, ensure_ascii=False) for item in (DOCUMENTS if corpus is None else corpus))
    (folder / "corpus.jsonl").write_text(lines, encoding="utf-8")
    return path


def load(path: Path, corpus: bool = True, **block: object) -> Benchmark:
    data: dict[str, Any] = {"benchmark": "jsonl", "path": str(path), **block}
    return load_benchmark(data | {"corpus": str(path.with_name("corpus.jsonl"))} if corpus else data)


def test_every_key(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, FULL))
    (doc,) = loaded.docs
    assert (doc.id, doc.query, doc.query_lang) == ("7", "Wo entspringt der Fluss?", "de")
    assert (doc.answers, doc.choices, doc.gold_choice) == (("im Gebirge",), ("im Tal", "im Gebirge"), 1)
    assert (doc.relevant_ids, doc.gold_doc_lang, doc.culture_lang) == (("d1",), "ar", "su")
    assert (doc.relevant_langs, doc.group_id, doc.extra) == (("he", "en"), "3", {"topic": "rivers"})
    (given,) = doc.given_passages
    assert (given.id, given.text, given.is_gold, given.date, given.title) == (
        "7-0",
        "Der Fluss.",
        True,
        "2024-07-01",
        "T",
    )
    assert loaded.corpus is not None
    assert [(p.id, p.lang, p.title, p.doc_id) for p in loaded.corpus] == [
        ("d1", "ar", "النهر", "d1"),
        ("d2", "zh-Hant", "", "page"),
    ]
    # braces are text
    assert loaded.corpus[1].text == DOCUMENTS[1]["text"]


@pytest.mark.parametrize(("gold", "expected"), [(0, 0), ("A", 0), ("im Gebirge", 1), (1, 1)])
def test_the_gold_option_by_position_letter_or_text(gold: object, expected: int, tmp_path: Path) -> None:
    row = {key: value for key, value in FULL.items() if key != "answers"} | {"gold_choice": gold}
    (doc,) = load(write(tmp_path, row)).docs
    assert doc.gold_choice == expected
    assert doc.answers == (FULL["choices"][expected],)  # type: ignore[index]


def test_the_language_filter(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1, "query": "a", "lang": "zh_cn"}, {"id": 2, "query": "b", "lang": "en"})
    loaded = load(path, corpus=False, language="zh")
    assert [doc.id for doc in loaded.docs] == ["1"]
    assert loaded.notes == ("1 question of 2",)
    with pytest.raises(DataError, match="no question in language 'ko'"):
        load(path, corpus=False, language="ko")
    with pytest.raises(ConfigError, match="unknown language 'qq'"):
        load(path, corpus=False, language="qq")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"id": "1"}, "id '1' was used before, on line 1"),
        ({"id": ""}, "'id' must be text or a whole number"),
        ({"query": "   "}, "'query' is empty"),
        ({"query": None}, "'query' must be text, found NoneType"),
        ({"lang": "xx"}, "'lang': unknown language 'xx'"),
        ({"culture_lang": "xx"}, "'culture_lang': unknown language 'xx'"),
        ({"answers": ["", "x"]}, "'answers' must be a list of texts, none of them empty"),
        ({"choices": ["a", "b"], "gold_choice": "C"}, "gold_choice = 'C' names none of the 2 choices"),
        ({"choices": ["a", "b"]}, "gold_choice = None names none of the 2 choices"),
        ({"choices": ["a", "b"], "gold_choice": True}, "gold_choice = True names none"),
        ({"choices": ["a"], "gold_choice": 0}, "at least two options"),
        ({"given_passages": [{"text": "t"}]}, "given_passages[0]: key 'lang' is missing"),
        ({"given_passages": "t"}, "'given_passages' must be a list"),
        ({"answer": "x"}, "the key 'answer' is called 'answers' here"),
        ({"relevant_ids": ["d9"]}, "relevant id 'd9' is not in the corpus"),
    ],
)
def test_a_wrong_question_is_named(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    first = {"id": "1", "query": "a?", "lang": "en"}
    path = write(tmp_path, first, {"id": "2", "query": "b?", "lang": "en"} | change)
    with pytest.raises(DataError, match=re.escape(expected)) as caught:
        load(path)
    assert str(path) in caught.value.message
    assert "line 2" in caught.value.message or "question '2'" in caught.value.message


@pytest.mark.parametrize(
    ("corpus", "expected"),
    [
        ([DOCUMENTS[0], DOCUMENTS[0]], "line 3: id 'd1' was used before, on line 1"),
        ([{**DOCUMENTS[0], "text": " "}], "line 1: 'text' is empty"),
        ([{"id": "d1", "text": "x"}], "line 1: key 'lang' is missing; found: id, text"),
        ([], "holds no document"),
    ],
)
def test_a_wrong_document_is_named(tmp_path: Path, corpus: list[dict[str, Any]], expected: str) -> None:
    path = write(tmp_path, {"id": "1", "query": "a?", "lang": "en"}, corpus=corpus)
    with pytest.raises(DataError, match=rf"corpus\.jsonl.*{re.escape(expected)}"):
        load(path)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'{"id": 1, "query": "a", "lang": "en"}\n{"id": 2, "query": "\xe9"}\n')
    with pytest.raises(DataError, match=r"questions\.jsonl, line 2: not valid UTF-8"):
        load(path, corpus=False)
    path.write_text('{"id": 1,\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1: not valid JSON"):
        load(path, corpus=False)
    path.write_text("[1]\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1: expected a JSON object, found list"):
        load(path, corpus=False)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no question"):
        load(path, corpus=False)
    with pytest.raises(DataError, match="is a folder"):
        load(tmp_path, corpus=False)
    with pytest.raises(ConfigError, match="'path' is missing"):
        load_benchmark({"benchmark": "jsonl"})


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"id": 1, "query": "a", "lang": "en"}\n')
    assert len(load(path, corpus=False).docs) == 1


def test_a_passage_is_found_by_its_title(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "lang": "en", "title": "Forth Bridge", "text": "It was opened in 1890."},
        {"id": "b", "lang": "en", "title": "Forth Bridge", "text": "Forth Bridge: opened in 1890."},
        {"id": "c", "lang": "en", "text": "It was opened in 1890."},
    ]
    path = write(tmp_path, {"id": 1, "query": "Forth Bridge", "lang": "en"})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "corpus.jsonl").write_text(lines, encoding="utf-8")
    loaded = load(path)
    assert loaded.corpus is not None
    assert [(p.text, p.title) for p in loaded.corpus] == [
        ("Forth Bridge. It was opened in 1890.", "Forth Bridge"),
        ("Forth Bridge: opened in 1890.", "Forth Bridge"),
        ("It was opened in 1890.", ""),
    ]
    (found,) = retrieve(loaded.docs, Retrieval(mode="all", kind="bm25", k=3), corpus=loaded.corpus)
    assert {hit.id for hit in found.passages} == {"a", "b"}
    prompt = load_template("short_answer").render(
        {"query": "q", "query_lang": "en"}, [hit.to_dict() for hit in found.passages]
    )[1]
    assert prompt.count("Forth Bridge") == 2


@pytest.mark.parametrize("key", ["id", "query", "answers", "topic"])
def test_half_a_surrogate_pair_in_a_question_is_named(key: str, tmp_path: Path) -> None:
    row = {"id": "1", "query": "a", "lang": "en"}
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": "2", key: "x\ud83dy"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"questions.jsonl, line 2: '{key}' holds half a surrogate pair"):
        load(path, corpus=False)


def test_half_a_surrogate_pair_in_a_document_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1, "query": "a", "lang": "en"})
    (tmp_path / "corpus.jsonl").write_text('{"id": 1, "lang": "en", "text": "\\udc00"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"corpus.jsonl, line 1: 'text' holds half a surrogate pair"):
        load(path)
