"""Words of BM25 by a task's settings: stems for its own passages, and the rules of an existing index."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval.config import Retrieval
from mrag_eval.core import CorpusError, Passage
from mrag_eval.retrieval import open_index
from mrag_eval.retrievers import build_index

pytest.importorskip("snowballstemmer")

PASSAGES = [
    Passage(id="a", lang="ru", text="Памятники Москвы стоят на площадях."),
    Passage(id="b", lang="ru", text="Река течёт мимо старого города."),
]
BLOCK = {"mode": "qlang", "kind": "bm25"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


def found(retrieval: Retrieval, query: str) -> list[str]:
    hits = open_index(retrieval, PASSAGES).search([query], k=1, languages=["ru"])
    return [hit.id for hit in hits[0]]


def test_a_task_stems_the_words_of_its_own_passages() -> None:
    assert found(Retrieval(**BLOCK), "город река") == ["b"]
    # neither word has this form in a passage
    assert found(Retrieval(**BLOCK), "памятник Москва") == []
    assert found(Retrieval(**BLOCK, stem=True), "памятник Москва") == ["a"]


def test_an_index_must_have_been_built_with_the_words_of_the_task(tmp_path: Path) -> None:
    build_index(PASSAGES, tmp_path / "plain", kind="bm25")
    build_index(PASSAGES, tmp_path / "stems", kind="bm25", stem=True)
    with pytest.raises(CorpusError, match=r"was built without --stem, this run asks for retrieval.stem=true"):
        open_index(Retrieval(**BLOCK, corpus=str(tmp_path / "plain"), stem=True))
    # an index of stems is searched with stems, whether or not the task says so
    for settings in ({}, {"stem": True}):
        assert found(Retrieval(**BLOCK, corpus=str(tmp_path / "stems"), **settings), "памятник Москва") == ["a"]
