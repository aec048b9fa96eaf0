"""NoMIRACL on hand-written files: rows, passages, answerability, the draw, and what is wrong with a copy."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, get_args

import pytest

from mrag_eval import score
from mrag_eval._front import read_log
from mrag_eval.core import ANSWERABLE
from mrag_eval.datasets import LOADERS, Benchmark, load_benchmark
from mrag_eval.datasets._nomiracl import _FOLDERS, BENCHMARK, Language
from mrag_eval.platform import ConfigError, DataError
from tests.worlds import nomiracl


def load(folder: Path, **block: Any) -> Benchmark:
    return load_benchmark({"benchmark": "nomiracl", "path": str(folder), "language": "de", **block})


def test_rows_have_their_passages_in_the_order_of_the_judgements(tmp_path: Path) -> None:
    loaded = load(nomiracl.write(tmp_path))
    judged = {f"{subset}-{name}": grades for subset, found in nomiracl.JUDGED.items() for name, grades in found.items()}
    assert [doc.id for doc in loaded.docs] == list(judged)
    for doc in loaded.docs:
        grades = judged[doc.id]
        assert [passage.id for passage in doc.given_passages] == list(grades)
        assert [passage.is_gold for passage in doc.given_passages] == [bool(grade) for grade in grades.values()]
        assert doc.relevant_ids == tuple(name for name, grade in grades.items() if grade)
        assert doc.extra[ANSWERABLE] is bool(doc.relevant_ids) is (doc.extra["subset"] == "relevant")
        assert all(passage.text and passage.title and passage.lang == "de" for passage in doc.given_passages)
    # a quotation mark of a question is text
    assert loaded.docs[0].query == 'Wo steht "Lindes" Mühle?'
    assert loaded.notes[-1] == "5 questions with another number of passages than ten"


def test_the_folder_of_the_data_may_be_given_too(tmp_path: Path) -> None:
    nomiracl.write(tmp_path)
    assert load(tmp_path / "data").docs == load(tmp_path).docs
    assert load(tmp_path, language="sw").docs[0].query_lang == "sw"


def test_a_sample_is_part_of_a_larger_one_and_keeps_the_subsets_apart(tmp_path: Path) -> None:
    nomiracl.write(tmp_path)
    every = [doc.id for doc in load(tmp_path, sample=None).docs]
    drawn = [[doc.id for doc in load(tmp_path, sample=n).docs] for n in (1, 2, 3)]
    assert [len(ids) for ids in drawn] == [2, 4, 5]
    assert {*drawn[0]} < {*drawn[1]} < {*drawn[2]} == {*every}
    assert {len([one for one in ids if one.startswith("non_")]) for ids in drawn} == {1, 2, 3}
    assert {tuple(doc.id for doc in load(tmp_path, sample=1, seed=seed).docs) for seed in range(8)} > {tuple(drawn[0])}
    assert {doc.extra["subset"] for doc in load(tmp_path, subset="relevant").docs} == {"relevant"}


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("qrels/test.relevant.tsv", "1#0\tQ0\t10#0\t0\n", "question '1#0' is not relevant by its judgements"),
        ("qrels/test.non_relevant.tsv", "3#0\tQ0\t10#0\t1\n", "question '3#0' is not non_relevant by its"),
        ("qrels/test.relevant.tsv", "1#0\t10#0\n", "line 1: 2 columns, judgements have three or four"),
        ("topics/test.relevant.tsv", "1#0\t \n", "'query' is empty"),
    ],
)
def test_a_fault_of_the_files_is_named(file: str, text: str, message: str, tmp_path: Path) -> None:
    nomiracl.write(tmp_path)
    (tmp_path / "data" / "german" / file).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_a_question_without_the_text_of_a_passage_is_left_out_and_counted(tmp_path: Path) -> None:
    nomiracl.write(tmp_path)
    file = tmp_path / "data" / "german" / "qrels" / "test.relevant.tsv"
    file.write_text(file.read_text("utf-8").replace("2#0\tQ0\t14#0", "2#0\tQ0\t99#0"), encoding="utf-8")
    loaded = load(tmp_path)
    assert "relevant-2#0" not in [doc.id for doc in loaded.docs]
    assert "1 question left out, without a passage or without the text of one" in loaded.notes


def test_a_passage_may_have_no_title(tmp_path: Path) -> None:
    nomiracl.write(tmp_path)
    file = tmp_path / "data" / "german" / "corpus.jsonl.gz"
    lines = gzip.decompress(file.read_bytes()).decode().replace('"T10#0"', "null")
    file.write_bytes(gzip.compress(lines.encode()))
    titles = {passage.id: passage.title for doc in load(tmp_path).docs for passage in doc.given_passages}
    assert titles["10#0"] == ""
    assert titles["11#0"] == "T11#0"


def test_a_copy_without_the_language_names_the_folder(tmp_path: Path) -> None:
    nomiracl.write(tmp_path)
    with pytest.raises(DataError, match="has no folder data/french"):
        load(tmp_path, language="fr")


def test_every_language_has_a_folder() -> None:
    assert tuple(_FOLDERS) == get_args(Language) == BENCHMARK.languages
    assert len({*_FOLDERS.values()}) == 18


def test_published_replies_join_by_the_ids_of_questions(tmp_path: Path) -> None:
    folder = nomiracl.write(tmp_path)
    said = {"relevant": "Yes, answer is present.", "non_relevant": "I don't know."}
    rows = [
        {"query_id": name, "docids": [*grades], "prompt": "Read ...", "results": {"m": said[subset], "other": "Yes"}}
        for subset, found in nomiracl.JUDGED.items()
        for name, grades in found.items()
    ]
    block = {"benchmark": "nomiracl", "path": str(folder), "language": "de"}
    survey = read_log(rows, benchmark=block, columns={"answer": "results.m"}, lang="de")
    assert survey.counts["joined"] == len({doc.id for doc in load(folder).docs})
    results = score(rows, "nomiracl_accuracy", benchmark=block, columns={"answer": "results.m"}, lang="de")
    whole = results.frame[(results.frame.dimension == "") & (results.frame.metric == "nomiracl_accuracy")].iloc[0]
    assert (whole.value, whole.n) == (1.0, len(rows))


@pytest.mark.parametrize("name", [name for name in LOADERS if name != "jsonl"])
def test_a_key_that_a_block_needs_is_asked_for_by_option(name: str) -> None:
    needed = [key for key, field in LOADERS[name].block.model_fields.items() if field.is_required()]
    for key in needed:
        if key != "benchmark":
            with pytest.raises(ConfigError, match=f"'{key}' is missing") as caught:
                load_benchmark({"benchmark": name})
            assert str(caught.value.next_step).startswith(f"name it: --metadata data.{key}=")
            return
