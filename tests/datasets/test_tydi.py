"""XOR-TyDi QA and the English questions of TyDi QA: rows, counts, yes and no, and messages about wrong files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import _tydiqa as tydiqa
from mrag_eval.datasets import _xor_tydi as xor_tydi
from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import ConfigError, DataError
from tests.worlds.mkqa import answer, question, tydi_file, write_all, write_jsonl, xor_rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_all(tmp_path)


def xor(path: Path, language: str, **block: object) -> Any:
    return load_benchmark({"benchmark": "xor_tydi", "path": str(path), "language": language, **block})


def test_questions_of_one_language(folder: Path) -> None:
    loaded = xor(folder, "ru")
    assert [doc.id for doc in loaded.docs] == ["xor-ru-0", "xor-ru-1", "xor-ru-2", "xor-ru-no"]
    assert {doc.query_lang for doc in loaded.docs} == {"ru"}
    assert (loaded.docs[0].query, loaded.docs[0].answers) == (question(0, "ru"), (answer(0, "ru"),))
    assert {(doc.relevant_ids, doc.gold_doc_lang) for doc in loaded.docs} == {((), None)}
    assert loaded.notes == ("4 questions in Russian", "this copy differs from the published counts: Russian 4 of 568")
    assert loaded.source["place"]["sha256"]


def test_yes_and_no_are_answered_in_the_questions_language_too(folder: Path) -> None:
    assert xor(folder, "ko").docs[-1].answers == ("yes", "예")
    assert xor(folder, "ru").docs[-1].answers == ("No", "нет")
    assert xor_tydi.YES_NO["ar"]["yes"] == ("نعم", "أجل", "بلى")
    assert xor_tydi.YES_NO["fi"] == {"yes": ("kyllä", "joo"), "no": ("ei",)}
    assert set(xor_tydi.YES_NO) == set(xor_tydi.LANGUAGES)


def test_the_papers_counts_are_those_of_the_full_file(tmp_path: Path) -> None:
    rows = [{"id": str(n), "question": "Какой это мост?", "lang": "ru", "answers": ["да"]} for n in range(568)]
    assert xor(write_jsonl(tmp_path / "xor.jsonl", rows), "ru").notes == ("568 questions in Russian",)
    # Table 4
    assert xor_tydi.PAPER_ROWS == {"ar": 708, "fi": 615, "ja": 433, "ko": 371, "ru": 568}


def test_questions_without_an_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [*xor_rows(), {"id": "empty", "question": "?", "lang": "ru", "answers": [" "]}]
    loaded = xor(write_jsonl(tmp_path / "xor.jsonl", rows), "ru")
    assert len(loaded.docs) == 4
    assert "1 without an answer were left out" in loaded.notes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, r"line 2: key 'id' is missing"),
        ({"lang": None}, r"line 2: key 'lang' is missing"),
        # the form of the hub's copies
        ({"answers": "da, net"}, r"line 2: 'answers' must be a list of texts .*xor_dev_full_v1_1"),
        ({"question": " "}, r"line 2: 'question' is empty"),
        ({"id": "xor-ko-0"}, r"line 2: id 'xor-ko-0' was used before"),
    ],
)
def test_wrong_rows_are_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    rows = xor_rows()
    rows[1] = {key: value for key, value in (rows[1] | change).items() if value is not None}
    with pytest.raises(DataError, match=message):
        xor(write_jsonl(tmp_path / "xor.jsonl", rows), "ko")


def test_missing_languages(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no question in 'fi' \(10 rows, languages ko, ru\)"):
        xor(folder, "fi")
    with pytest.raises(ConfigError, match=r"language: input should be .* \(got 'bn'\)"):
        xor(folder, "bn")


def test_no_answers_left(tmp_path: Path) -> None:
    rows = [{"id": "1", "question": "?", "lang": "ja", "answers": []}]
    with pytest.raises(DataError, match="none of the 1 questions in 'ja'"):
        xor(write_jsonl(tmp_path / "xor.jsonl", rows), "ja")


def test_a_failed_download_gives_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    class Downloads:
        def download_and_extract(self, url: str) -> str:
            raise ConnectionError("no route to host")

    monkeypatch.setattr(datasets, "DownloadManager", Downloads)
    with pytest.raises(
        DataError, match=r"xor_dev_full_v1_1\.jsonl could not be downloaded .*no route to host"
    ) as caught:
        load_benchmark({"benchmark": "xor_tydi", "language": "ko", "seed": 5})
    assert "data.path=PATH" in str(caught.value)


# -------------------------------------------------------------------- TyDi QA


def test_english_questions_with_their_passages(folder: Path) -> None:
    loaded = load_benchmark({"benchmark": "tydiqa", "path": str(folder)})
    assert [doc.id for doc in loaded.docs] == ["english-0-1", "english-1-1", "english-2-1"]
    for number, doc in enumerate(loaded.docs):
        assert (doc.query, doc.answers, doc.query_lang) == (question(number, "en"), (answer(number, "en"),), "en")
        (passage,) = doc.given_passages
        assert passage.is_gold
        assert answer(number, "en") in passage.text
    assert loaded.notes == (
        "3 questions in English, of 4 in the file",
        "this copy differs from the published counts: English 3 of 440",
    )


def test_the_hubs_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rows(list[dict[str, Any]]):
        column_names = ("id", "title", "context", "question", "answers")

    made = {"title": "T", "context": "It opened in 1894.", "question": "When?"}
    rows = Rows(
        [
            {**made, "id": "english-1", "answers": {"text": ["1894", "1894"], "answer_start": [13, 13]}},
            {**made, "id": "korean-1", "answers": {"text": ["1894"], "answer_start": [13]}},
        ]
    )
    monkeypatch.setattr(tydiqa, "hub_dataset", lambda *_, **__: rows)
    (doc,) = load_benchmark({"benchmark": "tydiqa", "seed": 6}).docs
    assert (doc.id, doc.answers) == ("english-1", ("1894",))


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda file: file.pop("data"), "not SQuAD v1.1 JSON"),
        (lambda file: file["data"][0]["paragraphs"][0].pop("context"), "not SQuAD v1.1 JSON"),
        (lambda file: file["data"][0]["paragraphs"][0]["qas"][0].update(answers=[]), "english-0-1: has no answer"),
        (lambda file: file["data"][0]["paragraphs"].__delitem__(slice(0, 3)), "none of the 1 questions is in English"),
        (
            lambda file: file["data"][0]["paragraphs"][1]["qas"][0].update(id="english-0-1"),
            "question id 'english-0-1' occurs twice",
        ),
    ],
)
def test_wrong_tydi_files_are_named(break_it: Any, message: str, tmp_path: Path) -> None:
    file = tydi_file()
    break_it(file)
    path = tmp_path / "tydi.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_benchmark({"benchmark": "tydiqa", "path": str(path)})
