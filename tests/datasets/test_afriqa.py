"""AfriQA: rows and pooled passages of hand-written and of the real files, and what a wrong file is refused with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import LOADERS, Benchmark, load_benchmark, validate_data
from mrag_eval.platform import ConfigError, DataError
from mrag_eval.prompts import load_template
from tests.worlds import afriqa

BOTH = ["fon", "ha"]


def load(folder: Path, language: str = "ha", **block: Any) -> Benchmark:
    return load_benchmark(
        {"benchmark": "afriqa", "path": str(folder), "language": language, "languages": BOTH, **block}
    )


def test_a_row_has_its_translation_and_its_passage(tmp_path: Path) -> None:
    loaded = load(afriqa.write(tmp_path))
    first, second, third = loaded.docs
    assert (first.id, first.query, first.query_lang, first.answers) == (
        "hau-0",
        "Ina garin Varn?",
        "ha",
        ("kogin Osk",),
    )
    assert (first.gold_doc_lang, first.relevant_langs) == ("en", ("en",))
    # two questions of one passage are resampled together
    assert first.relevant_ids == third.relevant_ids != second.relevant_ids
    assert first.group_id == third.group_id == first.relevant_ids[0]
    assert loaded.corpus is not None
    held = {passage.id: passage for passage in loaded.corpus}
    assert held[first.relevant_ids[0]].text == "Varn is a town on the river Osk."
    assert sorted(passage.lang for passage in loaded.corpus) == ["en", "en", "fr", "fr"]
    assert loaded.parallel[0] == {"ha": "Ina garin Varn?", "en": "Where is the town of Varn?"}
    assert loaded.english == dict.fromkeys(("hau-0", "hau-1", "hau-2"), "river Osk")
    assert load(tmp_path, "fon").english == {}


def test_an_answer_in_the_pivot_language_is_asked_for_by_its_name(tmp_path: Path) -> None:
    (row, *_) = load(afriqa.write(tmp_path), "fon", answers="pivot").docs
    assert (row.query, row.answers, row.query_lang) == ("Fítɛ Varn ɖe?", ("Osk",), "fon")
    template = load_template("short_answer_in")
    assert "Write the answer in French" in "\n".join(template.render(row.to_dict(), []))
    (own, *_) = load(tmp_path, "fon").docs
    assert "Write the answer in Fon" in "\n".join(template.render(own.to_dict(), []))


def test_without_the_pool_no_passage_is_known(tmp_path: Path) -> None:
    loaded = load(afriqa.write(tmp_path), corpus="none")
    assert loaded.corpus is None
    assert {doc.relevant_ids for doc in loaded.docs} == {()}
    # the other languages are not read
    (tmp_path / "gold_span_passages.afriqa.fon.fr.test.json").unlink()
    assert len(load(tmp_path, corpus="none", answers="pivot").docs) == 3


def test_the_language_asked_is_always_in_the_pool(tmp_path: Path) -> None:
    corpus = load(afriqa.write(tmp_path), languages=["fon"]).corpus
    assert corpus is not None
    assert {passage.lang for passage in corpus} == {"en", "fr"}
    alone = load(tmp_path, languages=["ha"]).corpus
    assert alone is not None
    assert {passage.lang for passage in alone} == {"en"}


def test_a_copy_of_the_repository_is_read_too(tmp_path: Path) -> None:
    afriqa.write(tmp_path / "flat")
    for code, pivot in afriqa.CODES.values():
        name = f"gold_span_passages.afriqa.{code}.{pivot}.test.json"
        home = tmp_path / "copy" / "data" / "gold_passages" / code
        home.mkdir(parents=True)
        (tmp_path / "flat" / name).rename(home / name)
    assert len(load(tmp_path / "copy").docs) == 3


def test_a_question_without_an_answer_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = afriqa.rows("ha")
    rows[0]["answer_lang"], rows[1]["answer_pivot"] = " ", {"text": [""], "answer_start": [0]}
    loaded = load(afriqa.write(tmp_path, {"ha": rows}))
    assert [doc.id for doc in loaded.docs] == ["hau-2"]
    assert "2 questions without an answer left out" in loaded.notes


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"context": ""}, r"test\.json, line 1: 'context' is empty"),
        ({"context": None}, "line 1: 'context' must be text, found NoneType"),
        ({"question_lang": " "}, "line 1: 'question_lang' is empty"),
        ({"question_translated": 5}, "line 1: 'question_translated' must be text, found int"),
        ({"answer_pivot": ["Osk"]}, "line 1: 'answer_pivot' must be an object with a list of texts"),
        ({"answer_pivot": {"text": "Osk"}}, "line 1: 'answer_pivot' must be an object with a list of texts"),
        ({"id": "1"}, "line 2: id '1' was used before"),
    ],
)
def test_a_fault_names_its_line_and_key(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    rows = afriqa.rows("ha")
    rows[0] |= change
    with pytest.raises(DataError, match=said):
        load(afriqa.write(tmp_path, {"ha": rows}))


@pytest.mark.parametrize(
    "key", ["id", "question_lang", "question_translated", "context", "answer_pivot", "answer_lang"]
)
def test_a_missing_key_is_named(key: str, tmp_path: Path) -> None:
    rows = afriqa.rows("ha")
    del rows[2][key]
    with pytest.raises(DataError, match=f"line 3: key '{key}' is missing"):
        load(afriqa.write(tmp_path, {"ha": rows}))


def test_files_and_languages_that_are_not_there_are_named(tmp_path: Path) -> None:
    afriqa.write(tmp_path)
    with pytest.raises(DataError, match=r"has no file gold_span_passages\.afriqa\.bem\.en\.test\.json") as error:
        load(tmp_path, languages=["bem"])
    assert "leave Bemba out of data.languages" in str(error.value.next_step)
    with pytest.raises(DataError, match=r"has no file .*hau\.en\.dev"):
        load(tmp_path, split="dev")
    (tmp_path / "gold_span_passages.afriqa.hau.en.test.json").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="holds no question with an answer"):
        load(tmp_path)
    for wrong, said in (({"language": "wo"}, "language"), ({"languages": []}, "at least one"),
                        ({"languages": ["ha", "ha"]}, "each once")):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            validate_data({"benchmark": "afriqa", "language": "ha", **wrong})


@pytest.mark.parametrize("language", ["fon", "ha", "ig", "sw", "zu"])
def test_the_real_files_hold_the_declared_rows(language: str, test_data: Path) -> None:
    real = {"benchmark": "afriqa", "path": str(test_data / "afriqa"), "languages": ["fon", "ha", "ig", "sw", "zu"]}
    block = {**real, "language": language}
    loaded, spec = load_benchmark(block), LOADERS["afriqa"]
    assert spec.expected is not None
    assert spec.published is not None
    assert len(loaded.docs) == spec.expected(validate_data(block)).rows
    assert not [note for note in loaded.notes if "differs from the published counts" in note]
    assert loaded.corpus is not None
    held = {passage.id: passage for passage in loaded.corpus}
    assert len(held) == len(loaded.corpus) == 1_607
    assert all(held[doc.relevant_ids[0]].lang == doc.gold_doc_lang for doc in loaded.docs)
    # a span is nearly always in its passage
    pivot = load_benchmark({**block, "answers": "pivot"})
    found = sum(any(answer in held[doc.relevant_ids[0]].text for answer in doc.answers) for doc in pivot.docs)
    assert found / len(pivot.docs) > 0.88
    assert pivot.source["content"] == loaded.source["content"]
    assert [doc.query for doc in pivot.docs] == [doc.query for doc in loaded.docs]
