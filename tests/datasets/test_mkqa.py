"""MKQA: the intersection with KILT, valid answers, aliases, pages, and messages about wrong files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import language_name
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.datasets import _mkqa as loader
from mrag_eval.datasets._kilt import usable_aliases
from mrag_eval.platform import ConfigError, DataError
from tests.worlds.mkqa import LANGS, answer, example_id, mkqa_row, page_id, question, write_all, write_jsonl


def read(folder: Path, language: str = "en", **block: object) -> Benchmark:
    files = {"path": str(folder / "mkqa.jsonl"), "kilt": str(folder / "nq-train-kilt.jsonl")}
    return load_benchmark({"benchmark": "mkqa", "language": language, **files, **block})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_all(tmp_path)


@pytest.mark.parametrize("language", LANGS)
def test_the_questions_that_kilt_holds_and_that_have_an_answer(language: str, folder: Path) -> None:
    loaded = read(folder, language)
    # twelve rows; one is not in KILT, one has no answer
    assert [doc.id for doc in loaded.docs] == [str(example_id(n)) for n in range(10)]
    for number, doc in enumerate(loaded.docs):
        assert (doc.query, doc.query_lang) == (question(number, language), language)
        assert doc.answers == (answer(number, language),)
        assert (doc.relevant_ids, doc.gold_doc_lang) == ((page_id(number),), "en")
        assert doc.group_id == doc.id
    assert loaded.notes[0].startswith("10 questions in ")
    assert "of 11 that KILT holds too, of 12 in the file (1 without an answer)" in loaded.notes[0]
    assert loaded.notes[1] == f"this copy differs from the published counts: {language_name(language)} 10 of 2,827"
    assert json.loads(json.dumps(loaded.source))["place"]["kilt"]["sha256"]


def test_every_question_without_kilt(folder: Path) -> None:
    loaded = read(folder, "ko", subset="all", kilt=None)
    assert len(loaded.docs) == 11
    assert {doc.relevant_ids for doc in loaded.docs} == {()}
    assert {doc.gold_doc_lang for doc in loaded.docs} == {None}
    assert "kilt" not in loaded.source["place"]


def test_a_folder_means_the_files_in_it(folder: Path) -> None:
    assert len(read(folder, "fr", path=str(folder), kilt=str(folder)).docs) == 10


def test_a_full_file_is_compared_with_the_papers_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(folder, "ru", seed=1).notes[1:] == ("this copy differs from the published counts: Russian 10 of 2,827",)
    monkeypatch.setattr(loader, "PAPER_ROWS", 10)
    assert read(folder, "ru", seed=2).notes[1:] == ()


def test_aliases_stay_out_of_the_answers_and_pieces_out_of_the_aliases(folder: Path) -> None:
    docs = read(folder, "en").docs
    assert docs[0].extra == {"answer_type": "entity", "aliases": ["Brandt"]}
    # an alias that repeats the answer adds nothing, and an exploded alias matches anything
    assert docs[1].extra == {"answer_type": "date", "aliases": []}
    assert docs[2].extra["aliases"] == ["Ms Solis"]


@pytest.mark.parametrize(
    ("aliases", "language", "expected"),
    [
        # a date exploded into the set of its characters, as published
        (["1", "u", ",", "2", " ", "6", "l", "y", "9", "0", "j"], "zh", ()),
        (["6", "six"], "en", ("6", "six")),
        (["6", "six", "u"], "en", ("six",)),
        (["六", "陆", "6"], "zh", ("六", "陆", "6")),
        (["七", "月", "二", "十", "七月二十日"], "zh", ("七月二十日",)),
        ([" Volk ", "Volk", "", "Irena Volk"], "de", ("Volk",)),
    ],
)
def test_exploded_aliases(aliases: list[str], language: str, expected: tuple[str, ...]) -> None:
    assert usable_aliases(aliases, ("Irena Volk",), language) == expected


def test_several_texts_are_several_answers_and_nulls_are_none(tmp_path: Path) -> None:
    row = mkqa_row(1)
    row["answers"]["en"] = [
        {"type": "date", "text": "1907"},
        {"type": "date", "text": None},
        {"type": "date", "text": " 1907-05-01 ", "aliases": []},
        {"type": "date", "text": "1907"},
    ]
    write_jsonl(tmp_path / "mkqa.jsonl", [row])
    assert read(tmp_path, subset="all", kilt=None).docs[0].answers == ("1907", "1907-05-01")


def test_rows_as_the_hub_has_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Rows(list[dict[str, Any]]):
        column_names = ("example_id", "query", "queries", "answers", "id", "output")

    def rows(repo: str, config: str, **_: object) -> Rows:
        if config == "nq":
            output = {"answer": ["x", "y"], "provenance": [[{"wikipedia_id": "7"}], {"wikipedia_id": ["9", "7"]}]}
            return Rows([{"id": str(example_id(0)), "output": output}])
        found = []
        for n in range(3):
            row = {**mkqa_row(n), "example_id": str(example_id(n))}
            # class labels are numbers, and a list of objects may arrive as an object of lists
            row["answers"] = {
                code: {"type": [3], "entity": [""], "text": [answer(n, code)], "aliases": [["x y"]]} for code in LANGS
            }
            found.append(row)
        return Rows(found)

    import datasets

    monkeypatch.setattr(datasets, "load_dataset", rows)
    loader._from_hub.cache_clear()
    monkeypatch.setattr("mrag_eval.datasets._kilt._from_hub", _uncached("mrag_eval.datasets._kilt"))
    loaded = load_benchmark({"benchmark": "mkqa", "language": "ja", "seed": 31})
    loader._from_hub.cache_clear()
    (doc,) = loaded.docs
    assert (doc.answers, doc.relevant_ids) == ((answer(0, "ja"),), ("7", "9"))
    assert doc.extra == {"answer_type": "date", "aliases": ["x y"]}
    assert loaded.source["place"]["hub"] == "apple/mkqa"


def _uncached(module: str) -> Callable[[], Any]:
    import importlib

    function: Callable[[], Any] = importlib.import_module(module)._from_hub.__wrapped__
    return function


def test_a_hub_that_only_has_the_script_gives_the_file_behind_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("Dataset scripts are no longer supported, but found mkqa.py")

    asked: list[str] = []

    class Downloads:
        def download_and_extract(self, url: str) -> str:
            asked.append(url)
            return str(folder / "mkqa.jsonl")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    monkeypatch.setattr(datasets, "DownloadManager", Downloads)
    loader._from_hub.cache_clear()
    loaded = read(folder, "fr", path=None, seed=32)
    loader._from_hub.cache_clear()
    assert len(loaded.docs) == 10
    assert asked == [loader.ORIGINAL.url]
    assert loaded.source["place"]["url"] == loader.ORIGINAL.url


def test_a_hub_that_does_not_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    loader._from_hub.cache_clear()
    with pytest.raises(DataError, match=r"apple/mkqa.*no route to host") as caught:
        read(folder, path=None, seed=33)
    assert "data.path=PATH" in str(caught.value)
    with pytest.raises(DataError, match=r"facebook/kilt_tasks.*no route to host") as caught:
        read(folder, kilt=None, seed=33)
    assert "data.kilt=PATH" in str(caught.value)


def _with(change: Callable[[dict[str, Any]], object]) -> list[dict[str, Any]]:
    rows = [mkqa_row(0), mkqa_row(1)]
    change(rows[1])
    return rows


@pytest.mark.parametrize(
    ("rows", "language", "message"),
    [
        (_with(lambda row: row.pop("queries")), "en", r"mkqa\.jsonl, line 2: key 'queries' is missing"),
        (_with(lambda row: row.pop("example_id")), "en", r"line 2: key 'example_id' is missing"),
        (_with(lambda row: row.update(example_id=1.5)), "en", r"line 2: 'example_id' must be a whole number"),
        (
            _with(lambda row: row.update(example_id=example_id(0))),
            "en",
            r"line 2: example_id -\d+ was used before .*1\)",
        ),
        (_with(lambda row: row.update(answers=[])), "en", r"line 2: 'answers' must be an object by language"),
        (_with(lambda row: row["answers"].update(en="1907")), "en", r"line 2: 'answers\.en' must be a list of objects"),
        (_with(lambda row: row["answers"]["en"][0].pop("text")), "en", r"line 2: an answer in 'en' has no key 'text'"),
        (_with(lambda row: row["queries"].pop("en")), "en", r"line 2: no question in English \(key 'en'\)"),
        ([mkqa_row(0)], "zh", r"no question with an answer in Chinese is left of 1 in .*mkqa\.jsonl"),
        ([], "en", "holds no question"),
    ],
)
def test_wrong_rows_are_named(rows: list[dict[str, Any]], language: str, message: str, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "mkqa.jsonl", rows)
    with pytest.raises(DataError, match=message):
        read(tmp_path, language, subset="all", kilt=None)


def test_a_language_that_mkqa_lacks_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"language: input should be .* \(got 'tr'\)"):
        read(folder, "tr")


def test_ids_that_do_not_meet_kilt(folder: Path) -> None:
    write_jsonl(folder / "other.jsonl", [{"id": "1", "output": []}, {"id": "2", "output": []}])
    with pytest.raises(
        DataError, match=r"none of the 12 example ids in .*mkqa\.jsonl is among the 2 of .*other\.jsonl"
    ):
        read(folder, kilt=str(folder / "other.jsonl"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "1"}], r"line 1: key 'output' is missing"),
        ([{"id": "1", "output": "text"}], r"line 1: 'output' must be a list of objects"),
        ([{"id": "1", "output": [{"provenance": "7"}]}], r"line 1: 'provenance' must be a list of objects"),
        ([], "holds no record"),
    ],
)
def test_a_wrong_kilt_file_is_named(rows: list[dict[str, Any]], message: str, folder: Path) -> None:
    write_jsonl(folder / "wrong.jsonl", rows)
    with pytest.raises(DataError, match=message):
        read(folder, kilt=str(folder / "wrong.jsonl"))


def test_a_question_without_a_page_is_counted(folder: Path) -> None:
    records = [{"id": str(example_id(n)), "output": []} for n in range(4)]
    write_jsonl(folder / "pageless.jsonl", records)
    loaded = read(folder, kilt=str(folder / "pageless.jsonl"))
    assert [doc.relevant_ids for doc in loaded.docs] == [()] * 4
    assert "KILT names no page for 4 of them" in loaded.notes


@pytest.mark.parametrize("given", [{}, {"answer": None}, {"answer": ""}])
@pytest.mark.parametrize("gold", ["page", "paragraph"])
def test_a_source_without_an_answer_does_not_count(gold: str, given: dict[str, Any], folder: Path) -> None:
    """Of four questions, the first two have an answer with a source; the second and third a source alone."""
    answered = {"answer": "1907", "provenance": [{"wikipedia_id": "100", "start_paragraph_id": 1}]}
    bare = {**given, "provenance": [{"wikipedia_id": "107", "start_paragraph_id": 1}]}
    outputs = [[answered], [bare, answered], [bare], [{"answer": "1907"}]]
    records = [{"id": str(example_id(n)), "output": each} for n, each in enumerate(outputs)]
    write_jsonl(folder / "bare.jsonl", records)
    loaded = read(folder, kilt=str(folder / "bare.jsonl"), gold=gold, paragraphs=str(folder))
    assert [doc.relevant_ids for doc in loaded.docs] == [("100",), ("100",), (), ()]
    assert f"KILT names no {gold} for 2 of them" in loaded.notes


@pytest.mark.parametrize("language", ["ar", "de", "en", "ko", "th", "zh"])
def test_the_published_sample(language: str, test_data: Path) -> None:
    path = test_data / "mkqa_sample" / "test_mkqa.jsonl.gz"
    loaded = load_benchmark({"benchmark": "mkqa", "language": language, "path": str(path), "subset": "all"})
    # six questions, three without an answer
    assert [doc.id for doc in loaded.docs] == ["36228854473990432", "-7449157003522518870", "7631360939705650347"]
    assert loaded.docs[0].answers == ("2017", "2017-05-18")
    assert [doc.extra["answer_type"] for doc in loaded.docs] == ["date", "entity", "entity"]
    assert "3 without an answer" in loaded.notes[0]
    if language == "en":
        assert loaded.docs[2].answers == ("Ridley Scott",)
        assert loaded.docs[2].extra["aliases"] == ["Sir Ridley Scott"]
