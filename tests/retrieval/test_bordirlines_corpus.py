"""Your own corpus for BordIRlines: pages to paragraphs, candidates by subject, live retrieval in the modes."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import ConfigError, CorpusError, DataError, tasks_folder
from mrag_eval.retrieval import TitledPage, build_bordirlines, paragraphs
from mrag_eval.retrieval._bordirlines_pages import with_texts
from mrag_eval.retrieval._bordirlines_titles import language_links, read_titles
from mrag_eval.retrievers import Document, Edition, load_index
from tests.programs import Programs
from tests.retrievers.wiki_files import Page as WikiPage
from tests.retrievers.wiki_files import write_dump
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
    found = list(paragraphs([TitledPage("Ceuta", "es", "7", "Ceuta", text)]))
    assert [(p.id, p.doc_id) for p in found] == [("es:7_p0", "Ceuta"), ("es:7_p1", "Ceuta")]
    assert found[0].text == long


def test_texts_come_from_a_copy_of_wikipedia() -> None:
    pages = [TitledPage("Ceuta", "es", "Ceuta", "Ceuta", None), TitledPage("Spain", "es", "9", "España", "given")]
    documents = [Document("1", "es", "x", "Otra"), Document("2", "es", "text", "Ceuta")]
    edition = Edition("es", "test", lambda: iter(documents))
    assert [page.text for page in with_texts(pages, lambda lang: edition)] == ["text", "given"]
    with pytest.raises(DataError, match="no page 'Melilla' in this copy of the 'es' Wikipedia"):
        with_texts([TitledPage("Ceuta", "es", "m", "Melilla", None)], lambda lang: edition)


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


# ---------------------------------------------------------------------------------------- from titles and a date

ROCKS = (
    "The '''rocks''' are two islets in the sea between both countries.\n\n"
    "== Rule ==\nA police unit lives on the larger islet."
)
# ids, titles, and text: Dokdo and Takeshima are one page in either edition; the English title is neither's name.
ENGLISH: list[WikiPage] = [
    (10, "Liancourt Rocks", 0, False, ROCKS),
    (11, "South Korea", 0, False, "'''South Korea''' is a country on a peninsula."),
    (12, "Japan", 0, False, "'''Japan''' is a country of many islands."),
    (13, "Somewhere", 0, False, "'''Somewhere''' is a page that no question is about."),
]
KOREAN: list[WikiPage] = [
    (70, "독도", 0, False, "'''독도'''는 동해에 있는 두 개의 섬으로 이루어진 작은 섬이다. 등대가 하나 있다."),
    (71, "대한민국", 0, False, "'''대한민국'''은 동아시아의 한반도 남부에 있는 나라이며 수도는 서울이다."),
]
LINKS = (
    "-- comment\n"
    "INSERT INTO `langlinks` VALUES (10,'ko','독도'),(10,'fr','Rochers'),(11,'ko','대한민국'),(99,'ko','제주');\n"
    "INSERT INTO `langlinks` VALUES (12,'ja','日本'),(11,'it','L\\'altra');\n"
)


def write_dumps(folder: Path) -> Path:
    folder.mkdir()
    write_dump(folder, "en", ENGLISH, date="20230520")
    write_dump(folder, "ko", KOREAN, date="20230520")
    with gzip.open(folder / "enwiki-20230520-langlinks.sql.gz", "wt", encoding="utf-8") as file:
        file.write(LINKS)
    return folder


@pytest.mark.slow
def test_the_corpus_is_rebuilt_from_titles_and_a_date(
    tmp_path: Path, test_data: Path, lines: dict[str, str], programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five pages: the rocks, South Korea and Japan in English; the rocks and South Korea in Korean, by language links.

    The rocks have two paragraphs in English (the heading is short) and one in Korean, each country's page has one: 6.
    """
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))
    titles = tmp_path / "titles.csv"
    titles.write_text("subject,lang,title\nDokdo,en,Liancourt Rocks\nTakeshima,en,Liancourt Rocks\n", encoding="utf-8")
    dumps = write_dumps(tmp_path / "dumps")
    command = [programs / "mrag-eval", "corpus", "bordirlines", "--wikipedia", str(dumps), "--dump", "20230520"]
    command += ["--titles", str(titles), "--borderlines", lines["borderlines"], "--kind", "bm25"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "5 pages, 6 paragraphs" in done.stdout
    assert "pages in 'ja' are missing: " in done.stderr
    index = load_index(tmp_path / "cache" / "corpora" / "bordirlines")
    assert index.counts == {"en": 4, "ko": 2}
    found = {passage.id: passage for passage in index.passages(["en:10_p0", "en:10_p1", "ko:70_p0", "en:12_p0"])}
    assert {key: passage.doc_id for key, passage in found.items()} == {
        **dict.fromkeys(("en:10_p0", "en:10_p1", "ko:70_p0"), "Dokdo"),
        "en:12_p0": "Japan",
    }
    assert found["en:10_p1"].text == "A police unit lives on the larger islet."
    assert found["ko:70_p0"].title == "독도"


def test_pages_without_dumps_or_a_file_are_refused(lines: dict[str, str], programs: Programs) -> None:
    command = [programs / "mrag-eval", "corpus", "bordirlines", "--borderlines", lines["borderlines"], "--name", "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no pages" in done.stderr
    assert "--wikipedia PATH" in done.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Dokdoo,en,X", "row 1: no question is about 'Dokdoo'; did you mean 'Dokdo'"),
        ("Dokdo,xx,X", "row 1: unknown language 'xx'"),
        ("Dokdo,en,", "row 1: 'Dokdo' has no title, or a second one, in 'en'"),
        ("Dokdo,en,A\nDokdo,en,B", "row 2: 'Dokdo' has no title, or a second one, in 'en'"),
    ],
)
def test_a_faulty_title_is_named(tmp_path: Path, lines: dict[str, str], line: str, expected: str) -> None:
    file = tmp_path / "titles.csv"
    file.write_text(f"subject,lang,title\n{line}\n", encoding="utf-8")
    docs = load_benchmark({"benchmark": "bordirlines", **lines}).docs
    with pytest.raises(DataError, match=expected):
        read_titles(file, docs)


def test_language_links_are_read_from_wikimedias_table(tmp_path: Path) -> None:
    file = tmp_path / "links.sql"
    file.write_text(LINKS, encoding="utf-8")
    assert language_links(file, {"10", "11"}, {"ko", "it"}) == {
        ("10", "ko"): "독도",
        ("11", "ko"): "대한민국",
        ("11", "it"): "L'altra",
    }
    file.write_text("CREATE TABLE `langlinks`;", encoding="utf-8")
    with pytest.raises(DataError, match="holds no language links"):
        language_links(file, {"10"}, {"ko"})
    cut = tmp_path / "cut.sql.gz"
    cut.write_bytes(gzip.compress(LINKS.encode())[:-12])
    with pytest.raises(DataError, match="cannot be read after"):
        language_links(cut, {"10"}, {"ko"})
