"""BERGEN's processed documents as the corpus of its runs, in folders that ``datasets`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from mrag_eval.config import Retrieval, validated
from mrag_eval.core import RagDoc, Retrieved
from mrag_eval.platform import CorpusError
from mrag_eval.retrieval import retrieve

DOCS = [RagDoc("77", "Wann?", "de", ("1890",))]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Write three passages in French and two in English, as BERGEN's processors do."""
    for name, texts in (("wiki-100w-fr_train", ("un", "deux", "trois")), ("kilt-100w_full", ("one", "two"))):
        rows = {
            "id": [str(place) for place in range(len(texts))],
            "content": [f"Title. {text}" for text in texts],
            "wikipedia_id": [str(40 + place) for place in range(len(texts))],
        }
        Dataset.from_dict(rows).save_to_disk(str(tmp_path / "datasets" / name))
    return tmp_path / "datasets"


def found(folder: Path, *ids: str, **changes: Any) -> Retrieved:
    run = folder.parent / "run.trec"
    run.write_text("".join(f"77\tq0\t{pid}\t{n}\t{9 - n}.5\trun\n" for n, pid in enumerate(ids, 1)), "utf-8")
    block = {"mode": "all", "kind": "precomputed", "run": str(run), "corpus": str(folder), "k": 2, **changes}
    return retrieve(DOCS, validated(Retrieval, block, "test"))[0]


def test_a_run_in_one_language(documents: Path) -> None:
    row = found(documents / "wiki-100w-fr_train", "2", "0")
    assert [(p.id, p.lang, p.text, p.doc_id) for p in row.passages] == [
        ("2", "fr", "Title. trois", "fr:42"), ("0", "fr", "Title. un", "fr:40")
    ]  # fmt: skip
    assert row.searchable == {"fr": 3}


def test_a_run_in_several_languages(documents: Path) -> None:
    row = found(documents, "wiki-100w-fr_1", "kilt-100w_1")
    # the pages of KILT are named as in the benchmarks
    assert [(p.lang, p.text, p.doc_id) for p in row.passages] == [
        ("fr", "Title. deux", "fr:41"), ("en", "Title. two", "41")
    ]  # fmt: skip
    assert row.searchable == {"en": 2, "fr": 3}


@pytest.mark.parametrize(
    ("name", "pid", "message"),
    [
        ("wiki-100w-fr_train", "3", "line 1: corpus '.*' holds no passage '3'"),
        ("wiki-100w-fr_train", "x", "holds no passage 'x'"),
        (".", "wiki-100w-de_1", "holds no passage 'wiki-100w-de_1'"),
        (".", "1", "holds no passage '1'"),
    ],
)
def test_a_passage_of_other_documents_is_named(documents: Path, name: str, pid: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        found(documents / name, pid)


def test_documents_whose_order_changed_are_refused(documents: Path) -> None:
    rows = {"id": ["1", "0"], "content": ["b", "a"]}
    Dataset.from_dict(rows).save_to_disk(str(documents.parent / "wiki-100w-it_train"))
    with pytest.raises(CorpusError, match="holds no passage '0'"):
        found(documents.parent / "wiki-100w-it_train", "0")


def test_a_language_that_no_name_says(documents: Path) -> None:
    folder = documents.parent / "pubmed_full"
    Dataset.from_dict({"id": ["0"], "content": ["a"]}).save_to_disk(str(folder))
    with pytest.raises(CorpusError, match="does not say the language"):
        found(folder, "0")
    assert found(folder, "0", run_language="en").passages[0].lang == "en"


def test_a_folder_that_is_damaged_or_of_others(documents: Path) -> None:
    folder = documents / "wiki-100w-fr_train"
    Dataset.from_dict({"a": ["0"]}).save_to_disk(str(documents.parent / "wiki-100w-es_train"))
    with pytest.raises(CorpusError, match="are no documents of BERGEN"):
        found(documents.parent / "wiki-100w-es_train", "0")
    next(folder.glob("*.arrow")).unlink()
    with pytest.raises(CorpusError, match="cannot be read"):
        found(folder, "0")
