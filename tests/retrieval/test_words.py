"""Words of BM25 by a task's settings: stems for its own passages, and the rules of an existing index."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from mrag_eval.config import Measurement, Retrieval, differences
from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError
from mrag_eval.retrieval import index_record, open_index
from mrag_eval.retrievers import build_index

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
    # neither word has this form in a passage; Russian is a language of stems by default
    assert found(Retrieval(**BLOCK, stem=False), "памятник Москва") == []
    for settings in ({}, {"stem": True}):
        assert found(Retrieval(**BLOCK, **settings), "памятник Москва") == ["a"]


def test_an_index_must_have_been_built_with_the_words_of_the_task(tmp_path: Path) -> None:
    build_index(PASSAGES, tmp_path / "plain", kind="bm25", stem=False)
    build_index(PASSAGES, tmp_path / "stems", kind="bm25", stem=True)
    build_index(PASSAGES, tmp_path / "default", kind="bm25")
    with pytest.raises(CorpusError, match=r"was built without --stem, this run asks for retrieval.stem=true"):
        open_index(Retrieval(**BLOCK, corpus=str(tmp_path / "plain"), stem=True))
    with pytest.raises(CorpusError, match=r"was built with --stem, this run asks for retrieval.stem=false"):
        open_index(Retrieval(**BLOCK, corpus=str(tmp_path / "stems"), stem=False))
    with pytest.raises(CorpusError, match=r"was built with --stem in ar, .* tr alone, this run asks .*stem=true"):
        open_index(Retrieval(**BLOCK, corpus=str(tmp_path / "default"), stem=True))
    # an index is searched with its own words where the task says nothing
    for name, settings in (("stems", {}), ("stems", {"stem": True}), ("default", {})):
        assert found(Retrieval(**BLOCK, corpus=str(tmp_path / name), **settings), "памятник Москва") == ["a"]
    assert found(Retrieval(**BLOCK, corpus=str(tmp_path / "plain")), "памятник Москва") == []


def test_indexes_from_before_the_defaults_keep_their_words(tmp_path: Path) -> None:
    for name, stem, hits in (("plain", False, []), ("stems", True, ["a"])):
        path = tmp_path / name
        build_index(PASSAGES, path, kind="bm25", stem=stem, segment=False)
        record = json.loads((path / "manifest.json").read_text("utf-8"))["tokenizer"]
        old = {"name": "unicode-scripts", "version": 2, "folding": 1}
        assert record == old | ({"stem": {"snowballstemmer": version("snowballstemmer")}} if stem else {})
        assert found(Retrieval(**BLOCK, corpus=str(path)), "памятник Москва") == hits


def test_a_language_without_its_dictionary_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    passages = [
        Passage(id=lang, lang=lang, text=text) for lang, text in (("th", "กรุงเทพ"), ("ko", "서울"), ("zh", "北京"))
    ]
    for name in ("icu4py", "kiwipiepy"):
        monkeypatch.setitem(sys.modules, name, None)
    open_index(Retrieval(**BLOCK), passages)
    lines = [record.getMessage() for record in caplog.records if "letters" in record.getMessage()]
    assert lines == [
        'BM25 cuts Korean, Thai into pairs of letters, without icu4py and kiwipiepy: pip install "mrag-eval[segment]"'
    ]
    caplog.clear()
    # neither where it was chosen, nor for languages that need none
    open_index(Retrieval(**BLOCK, segment=False), passages)
    open_index(Retrieval(**BLOCK), PASSAGES)
    open_index(Retrieval(mode="qlang"), PASSAGES)
    assert "letters" not in caplog.text


def test_how_words_are_cut_is_part_of_what_is_measured() -> None:
    held = ("ru", "vi")
    found = {
        name: index_record(Retrieval(**BLOCK, **settings), held)["analyzer"]
        for name, settings in {"default": {}, "plain": {"stem": False}, "all": {"stem": True}}.items()
    }
    snowball = f"snowballstemmer {version('snowballstemmer')}"
    # dictionaries are of no account in these languages, installed or not
    assert found == {
        "default": f"words 2.1, stems of ru ({snowball})",
        "plain": "words 2.1",
        "all": f"words 2.1, stems ({snowball})",
    }
    one, other = (Measurement("t", data={"index": {"analyzer": found[name]}}) for name in ("default", "plain"))
    assert [differs.key for differs in differences(one, other)] == ["index.analyzer"]
