"""Your own corpus for BordIRlines: pages to paragraphs, candidates by subject, live retrieval in the modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.cli._catalog import tasks_folder
from mrag_eval.core import ConfigError, CorpusError, DataError
from mrag_eval.retrieval import Page, build_bordirlines, paragraphs
from mrag_eval.retrieval._bordirlines_pages import with_texts
from mrag_eval.retrievers import Document, Edition
from tests.task.test_hook import run
from tests.worlds.bordirlines import _TEXTS
from tests.worlds.small import ScriptedLM


def pages_of_crimea() -> list[dict[str, Any]]:
    """Territory and both claimants in Russian, Ukrainian and English, and one page that no query on Crimea may find."""
    out = []
    for code in ("ru", "uk", "en"):
        for subject in ("Crimea", "Russia", "Ukraine"):
            text = "\n\n".join([*(t.format(t=subject, c=subject) for t in _TEXTS[code]), "short", "short"])
            out.append({"subject": subject, "lang": code, "title": subject, "id": f"{subject[:2]}1", "text": text})
    spain = {"subject": "Spain", "lang": "en", "title": "Spain", "text": "Crimea Crimea Crimea is a word on this page."}
    return [*out, spain]


def write(path: Path, pages: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(page, ensure_ascii=False) + "\n" for page in pages), encoding="utf-8")
    return path


@pytest.fixture
def lines(test_data: Path) -> dict[str, str]:
    return {"borderlines": str(test_data / "borderlines")}


def test_live_retrieval_searches_the_rows_own_subjects(
    tmp_path: Path, lines: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    built = build_bordirlines(write(tmp_path / "pages.jsonl", pages_of_crimea()), lines)
    # five paragraphs per page; the short one is left out
    assert (built.pages, len(built.index)) == (10, 46)
    assert ("Abyei", "ar") in built.missing
    assert ("Crimea", "uk") not in built.missing
    data = {**lines, "territories": ["Crimea"]}
    langs = {}
    for short in ("qlang", "en_only", "rel_langs", "swap_docs"):
        name = f"bordirlines_{short}_direct_own"
        samples = run(tasks_folder(), name, lm=ScriptedLM(lambda _: "A)"), metadata={"data": data})["samples"][name]
        (sample,) = [s for s in samples if s["doc"]["id"] == "Crimea_ru"]
        passages = sample["doc"]["passages"]
        langs[short] = {passage["lang"] for passage in passages}
        assert {passage["doc_id"] for passage in passages} <= {"Crimea", "Russia", "Ukraine"}
        assert 0 < len(passages) <= 10
    assert langs.pop("rel_langs") in ({"ru", "uk"}, {"ru", "en"}, {"ru", "uk", "en"})
    assert langs == {"qlang": {"ru"}, "en_only": {"en"}, "swap_docs": {"uk"}}
    with pytest.raises(CorpusError, match="corpus 'bordirlines' is there already"):
        build_bordirlines(tmp_path / "pages.jsonl", lines, kind="bm25")


def test_the_preference_for_a_language_is_relative_to_the_candidates_of_the_row(
    tmp_path: Path, lines: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of three languages has 15 passages on Crimea and its claimants; the page on Spain is never a candidate."""
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    build_bordirlines(write(tmp_path / "pages.jsonl", pages_of_crimea()), lines)
    data = {**lines, "territories": ["Crimea"]}
    name = "bordirlines_rel_langs_direct_own"
    for _ in range(2):  # the second time everything comes from the cache
        out = run(tasks_folder(), name, lm=ScriptedLM(lambda _: "A)"), metadata={"data": data})
        languages = out["configs"][name]["scores"]["languages"]
        (sample,) = [s for s in out["samples"][name] if s["doc"]["id"] == "Crimea_ru"]
        shown = [passage["lang"] for passage in sample["doc"]["passages"]]
        russian = shown.count("ru")
        assert languages["retrieved"]["ru->ru"] == russian
        native, foreign = russian / 15, (10 - russian) / 30
        preference = languages["preference"]["ru"]
        assert preference["normalised"] == pytest.approx(native / (native + foreign))
        if foreign:
            assert preference["ratio"]["value"] == pytest.approx(native / foreign)
    name = "bordirlines_qlang_direct_own"
    out = run(tasks_folder(), name, lm=ScriptedLM(lambda _: "A)"), metadata={"data": data})
    # only Russian was searched: the other side is undefined and says so
    ratio = out["configs"][name]["scores"]["languages"]["preference"]["ru"]["ratio"]
    assert (ratio["value"], ratio["reason"]) == (None, "nothing to search in another language")


def test_paragraphs_are_stripped_and_kept_once() -> None:
    long = "A paragraph that is long enough."
    text = f"  {long}  \n\nshort one\n\n{long}\n\nAnother one, also long."
    found = list(paragraphs([Page("Ceuta", "es", "7", "Ceuta", text)]))
    assert [(p.id, p.doc_id) for p in found] == [("es:7_p0", "Ceuta"), ("es:7_p1", "Ceuta")]
    assert found[0].text == long


def test_texts_come_from_a_copy_of_wikipedia() -> None:
    pages = [Page("Ceuta", "es", "Ceuta", "Ceuta", None), Page("Spain", "es", "9", "España", "given")]
    documents = [Document("1", "es", "x", "Otra"), Document("2", "es", "text", "Ceuta")]
    edition = Edition("es", "test", lambda: iter(documents))
    assert [page.text for page in with_texts(pages, lambda lang: edition)] == ["text", "given"]
    with pytest.raises(DataError, match="no page 'Melilla' in this copy of the 'es' Wikipedia"):
        with_texts([Page("Ceuta", "es", "m", "Melilla", None)], lambda lang: edition)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"subject": "Crimae"}, "line 1: no question is about 'Crimae'; did you mean 'Crimea'"),
        ({"lang": "xx"}, "line 1: unknown language 'xx'"),
        ({"title": ""}, "line 1: 'title' must be text"),
    ],
)
def test_a_damaged_page_is_named(
    tmp_path: Path, lines: dict[str, str], change: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    file = write(tmp_path / "pages.jsonl", [{**pages_of_crimea()[0], **change}])
    with pytest.raises(DataError, match=expected):
        build_bordirlines(file, lines, kind="bm25")


def test_pages_without_text_need_a_copy(tmp_path: Path, lines: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    page = {key: value for key, value in pages_of_crimea()[0].items() if key != "text"}
    with pytest.raises(ConfigError, match="pages without 'text'"):
        build_bordirlines(write(tmp_path / "p.jsonl", [page]), lines, kind="bm25")
    with pytest.raises(DataError, match="was given before, on line 1"):
        build_bordirlines(write(tmp_path / "p.jsonl", [page, page]), lines, kind="bm25")
