"""Reading Wikipedia and KILT: documents, exclusions, and messages about wrong files."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrag_eval.platform import ConfigError, DataError, MissingExtraError
from mrag_eval.retrievers import Document, chunk_documents, kilt_edition, wikipedia_edition
from mrag_eval.retrievers.corpora import _wikipedia as module
from tests.retrievers.wiki_files import (
    KILT_LINES,
    KOREAN,
    PAGES,
    VARN,
    VARN_SHOWN,
    article,
    write_copy,
    write_dump,
    write_kilt,
)


@pytest.fixture
def markup() -> None:
    """Skip the test if the extra that reads markup is missing; in CI, let it fail."""
    if os.environ.get("CI", "").lower() != "true":
        pytest.importorskip("mwparserfromhell", reason="the extra 'wikipedia' is not installed")


def read(lang: str, **keys: Any) -> list[Document]:
    return list(wikipedia_edition(lang, **keys).documents())


# ------------------------------------------------------------------ markup


def shown(source: str) -> str:
    from mrag_eval.retrievers.corpora._wiki_pages import plain_text

    return plain_text(source, {"datei"})


@pytest.mark.usefixtures("markup")
def test_a_page_contains_all_that_its_readers_need() -> None:
    assert shown(VARN) == VARN_SHOWN


@pytest.mark.usefixtures("markup")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[[Datei:Turm.svg|mini|Der Turm]]Varn", "Varn"),
        ("-{zh-hans:计算机; zh-hant:電腦}- -{A|zh-cn:a;zh-tw:b}- -{R|维}- -{H|zh-cn:x;zh-tw:y}-.", "计算机 a 维 ."),
        ("a [[b]]s [[c|d ''e'']] [[f (g)|f]]", "a bs d e f"),
        ("&lt;ref&gt; &#8211; &amp;", "<ref> – &"),
        ("x<ref>y</ref> <math>a^2</math> <small>z</small> <nowiki>[[k]]</nowiki>", "x z [[k]]"),
        ("== A ==\n=== B ===\ntext\n== C ==\n=== D ===\n", "A\nB\ntext"),
        ("{{unclosed [[link]] text", "{{unclosed link text"),
        ("ಠ_ಠ __NOTOC__ a__b__", "ಠ_ಠ a__b__"),
        ("", ""),
    ],
)  # fmt: skip
def test_markup(source: str, expected: str) -> None:
    assert shown(source) == expected


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mwparserfromhell", None)
    with pytest.raises(MissingExtraError, match=r"wikipedia") as caught:
        shown("x")
    assert caught.value.next_step == 'pip install "mrag-eval[wikipedia]"'


# ------------------------------------------------------------------ XML dumps


@pytest.mark.usefixtures("markup")
@pytest.mark.parametrize("streams", [1, 2])
def test_a_dump_gives_its_articles(tmp_path: Path, streams: int) -> None:
    path = write_dump(tmp_path, "en", PAGES, streams=streams)
    edition = wikipedia_edition("en", source=tmp_path)
    assert edition.source == "Wikimedia dump, enwiki-20251020-pages-articles.xml.bz2"
    documents = list(edition.documents())
    assert documents == list(edition.documents())
    assert [(d.id, d.lang, d.title) for d in documents] == [("12", "en", "Varn"), ("20", "en", "Olm")]
    assert documents[0].text == VARN_SHOWN
    assert read("en", source=path) == documents
    # outside the English edition a page's number follows the language
    write_dump(tmp_path, "ko", KOREAN)
    (korean,) = read("korean", source=tmp_path)
    assert (korean.id, korean.lang) == ("ko:12", "ko")
    assert korean.text == "바른은 항구 도시이다. 등대는 1841년에 세워졌다."


@pytest.mark.parametrize(
    ("names", "read_are"),
    [
        (["articles.xml.bz2", "articles-multistream.xml.bz2"], ["articles.xml.bz2"]),
        (["articles-multistream.xml.bz2", "articles-multistream-index.txt.bz2"], ["articles-multistream.xml.bz2"]),
        (
            ["articles1.xml-p1p9.bz2", "articles2.xml-p10p99.bz2", "articles-multistream1.xml-p1p9.bz2"],
            ["articles1.xml-p1p9.bz2", "articles2.xml-p10p99.bz2"],
        ),
        (["articles.xml.bz2", "articles1.xml-p1p9.bz2", "articles.xml.bz2.part"], ["articles.xml.bz2"]),
    ],
)
def test_of_a_dump_in_several_forms_one_is_read(tmp_path: Path, names: list[str], read_are: list[str]) -> None:
    for name in names:
        (tmp_path / f"enwiki-20251020-pages-{name}").touch()
    expected = ", ".join(f"enwiki-20251020-pages-{name}" for name in read_are)
    assert wikipedia_edition("en", source=tmp_path).source == f"Wikimedia dump, {expected}"


@pytest.mark.usefixtures("markup")
def test_a_page_that_cannot_be_parsed_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import mwparserfromhell

    real = mwparserfromhell.parse

    def parse(text: str, **keys: Any) -> Any:
        if "Infobox" in text:
            raise mwparserfromhell.parser.ParserError("tokenizer exited early")
        return real(text, **keys)

    monkeypatch.setattr(mwparserfromhell, "parse", parse)
    write_dump(tmp_path, "en", PAGES)
    assert [d.title for d in read("en", source=tmp_path)] == ["Olm"]
    (record,) = caplog.records
    assert "page 'Varn' is left out" in record.getMessage()
    assert "tokenizer exited early" in record.getMessage()


@pytest.mark.usefixtures("markup")
def test_dumps_that_are_not_right_are_named(tmp_path: Path) -> None:
    path = write_dump(tmp_path, "en", PAGES)
    with pytest.raises(DataError, match=r"is a dump of 'enwiki', not of 'kowiki'"):
        read("ko", source=path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 20])
    with pytest.raises(DataError, match=r"pages-articles\.xml\.bz2: cannot be read after page"):
        read("en", source=path)
    (tmp_path / "x.xml").write_text("<html></html>", encoding="utf-8")
    with pytest.raises(DataError, match="not a dump of a wiki"):
        read("en", source=tmp_path / "x.xml")
    (tmp_path / "y.xml").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"y\.xml: cannot be read after page 'none'"):
        read("en", source=tmp_path / "y.xml")
    with pytest.raises(DataError, match=r"neither 20231101\.de/\*\.parquet nor dewiki-DATE-pages") as caught:
        wikipedia_edition("de", source=tmp_path)
    assert "enwiki-20251020" in str(caught.value.next_step)
    with pytest.raises(DataError, match="does not exist"):
        wikipedia_edition("de", source=tmp_path / "nowhere")
    write_dump(tmp_path, "en", PAGES, date="20240101")
    with pytest.raises(DataError, match=r"dumps of 'en' of 20240101, 20251020") as caught:
        wikipedia_edition("en", source=tmp_path)
    assert caught.value.next_step == "choose one: --dump 20251020"
    older = wikipedia_edition("en", source=tmp_path, dump="20240101")
    assert older.source == "Wikimedia dump, enwiki-20240101-pages-articles.xml.bz2"


# ------------------------------------------------------------------ the hub's dataset, and copies of it


ARTICLES = [
    article(7, "서울", "서울은 수도이다."),
    article(8, "부산", "부산은 항구이다."),
    article(9, "한강", "한강은 강이다."),
]


def test_a_copy_of_the_hubs_dataset_is_read_file_by_file(tmp_path: Path) -> None:
    write_copy(tmp_path, "20231101.ko", ARTICLES)
    edition = wikipedia_edition("ko", source=tmp_path)
    assert edition.source == "wikimedia/wikipedia, 20231101.ko (local copy)"
    documents = list(edition.documents())
    assert [d.id for d in documents] == ["ko:7", "ko:8", "ko:9"]
    assert documents[0] == Document("ko:7", "ko", "서울은 수도이다.", "서울")
    with pytest.raises(DataError, match=r"neither 20240101\.ko/"):
        wikipedia_edition("ko", source=tmp_path, dump="20240101")
    # the Norwegian edition has a different code from the language
    write_copy(tmp_path, "20231101.no", [article(1, "Olm", "Olm er en elv.")] * 2)
    assert read("nb", source=tmp_path)[0].lang == "nb"


def test_limits_read_no_more_than_requested_and_say_so(tmp_path: Path) -> None:
    write_copy(tmp_path, "20231101.ko", ARTICLES)
    edition = wikipedia_edition("ko", source=tmp_path).first(2)
    assert [d.id for d in edition.documents()] == ["ko:7", "ko:8"]
    assert edition.source.endswith("first 2 documents")
    with pytest.raises(ConfigError, match="at least 1"):
        edition.first(0)


def test_without_the_hub_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match=r"wikimedia/wikipedia cannot be reached: HF_HUB_OFFLINE is set") as caught:
        wikipedia_edition("ko")
    assert "--from FOLDER" in str(caught.value.next_step)


def test_an_unreachable_hub_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreachable:
        def dataset_info(self, name: str) -> Any:
            raise RuntimeError("[Errno -2] Name or service not known\nmore")

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("huggingface_hub.HfApi", Unreachable)
    with pytest.raises(DataError, match=r"cannot be reached: \[Errno -2\] Name or service not known\n") as caught:
        wikipedia_edition("ko")
    assert str(caught.value.next_step).startswith("check the network, or read a copy:  --from FOLDER")


def test_a_broken_stream_gives_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        yield ARTICLES[0]
        raise RuntimeError("connection reset")

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setattr("datasets.load_dataset", broken)
    documents = wikipedia_edition("ko").documents()
    assert next(documents).id == "ko:7"
    with pytest.raises(DataError, match=r"broke off after row 1: connection reset") as caught:
        next(documents)
    assert str(caught.value.next_step).startswith("give the same command again")


class Hub:
    """Stands in for the hub's interface: a dataset with three configurations."""

    def dataset_info(self, name: str) -> Any:
        files = ["20231101.ko/train-0.parquet", "20231101.en/train-0.parquet", "20220301.ko/a.parquet", "README.md"]
        return SimpleNamespace(sha="abc123", siblings=[SimpleNamespace(rfilename=file) for file in files])


def test_the_hubs_editions_are_streamed_at_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load(*args: Any, **keys: Any) -> Any:
        asked.append((args, keys))
        return iter(ARTICLES)

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setattr("datasets.load_dataset", load)
    edition = wikipedia_edition("ko")
    assert edition.source == "wikimedia/wikipedia, 20231101.ko, revision abc123"
    assert asked == []
    assert [d.id for d in edition.documents()] == ["ko:7", "ko:8", "ko:9"]
    assert asked == [
        (("wikimedia/wikipedia", "20231101.ko"), {"split": "train", "revision": "abc123", "streaming": True})
    ]
    with pytest.raises(DataError, match=r"has no dump 20251020 of 'ko'") as caught:
        wikipedia_edition("ko", dump="20251020")
    assert caught.value.next_step == "it has: --dump 20220301, 20231101"
    with pytest.raises(DataError, match=r"has no '20231101\.am'"):
        wikipedia_edition("am")


def test_unknown_languages_are_named() -> None:
    with pytest.raises(ConfigError, match="unknown language 'xx1'"):
        wikipedia_edition("xx1")
    with pytest.raises(ConfigError, match=r"one edition for all scripts of Chinese, none for 'zh-Hans'"):
        wikipedia_edition("zh-Hans")
    assert module.edition_code("he") == "he"
    assert module.edition_code("yue") == "zh-yue"


# ------------------------------------------------------------------ KILT


def test_kilt_pages_lose_list_items_and_keep_their_ids(tmp_path: Path) -> None:
    write_kilt(tmp_path)
    edition = kilt_edition(tmp_path)
    assert edition.source == "KILT, Wikipedia of 2019-08-01, kilt_knowledgesource.json"
    varn, olm = edition.documents()
    text = "Varn Varn is a port town. Section:History. Founded in 1841. Section:History.:Ships. Three ships."
    assert varn == Document("12", "en", text, "Varn")
    assert olm.text == "Olm The Olm is a river."
    (passage,) = chunk_documents([varn], "words")
    assert passage.text.startswith("Varn. Varn Varn is a port town. Section:History.")
    assert passage.doc_id == "12"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"wikipedia_id": "1", "text": ["x"]}, "line 2: no wikipedia_id, wikipedia_title or text"),
        ({"wikipedia_id": "1", "wikipedia_title": "t", "text": "x"}, "line 2: no wikipedia_id"),
        ({"wikipedia_id": "1", "wikipedia_title": "t", "text": [1]}, "line 2: no wikipedia_id"),
        ([1], "line 2: expected a JSON object, found list"),
    ],
)
def test_lines_that_are_not_pages_are_named(tmp_path: Path, line: Any, message: str) -> None:
    write_kilt(tmp_path, [KILT_LINES[0], line])
    with pytest.raises(DataError, match=message):
        list(kilt_edition(tmp_path).documents())
    with pytest.raises(DataError, match="does not exist"):
        kilt_edition(tmp_path / "nowhere")
