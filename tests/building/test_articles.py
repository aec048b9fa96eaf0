"""Articles as crawlers write them: layouts, dates, languages, and exclusions."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.building.steps._records import Outcome
from mrag_eval.building.xrag._articles import Library, article_files, corpus_identity, day_of, read_articles, sampled
from mrag_eval.building.xrag._xrag_records import Article, Headline
from mrag_eval.building.xrag._xrag_settings import ArticleBlock
from mrag_eval.platform import DataError, to_json
from tests.building.newsroom import BODY, article, write_corpus

BLOCK = ArticleBlock(min_words=10)


def settled(source: Path, block: ArticleBlock = BLOCK, languages: tuple[str, ...] = ("en", "de")) -> list[Outcome]:
    out: list[Outcome] = []
    read_articles(article_files(source), block, languages, lambda where, outcome: out.append(outcome))
    return out


def records(source: Path, **more: Any) -> list[Any]:
    return [record for outcome in settled(source, **more) for record in outcome.made]


def reasons(source: Path, **more: Any) -> Counter[str]:
    return Counter(drop.reason for outcome in settled(source, **more) for drop in outcome.drops)


def test_news_please_and_cc_news_layouts_are_read_as_they_are(tmp_path: Path) -> None:
    text = BODY["en"].format(town="Varga", n=7)
    folder = tmp_path / "news"
    folder.mkdir()
    # news-please: JSON Lines, and one file per article; the hub's CC-News; the variant with plain_text
    (folder / "a.jsonl").write_text(json.dumps({**article(1, "en", "Varga", 2), "text": "not this"}))
    (folder / "b.json").write_text(json.dumps(article(2, "en", "Tarnow", 2)))
    hub = {"title": "T", "text": text, "date": "2024-06-09 00:00:00", "url": "https://x.example/1", "domain": "x"}
    (folder / "c.jsonl").write_text(json.dumps(hub))
    plain = {"title": "U", "plain_text": text + " More.", "published_date": "2024-06-10", "language": "en"}
    (folder / "d.jsonl").write_text(json.dumps(plain))
    got = records(folder)
    assert [(r.title, r.lang, r.date) for r in got] == [
        ("Varga and Halden plant 1 trees", "en", "2024-06-03"),
        ("Tarnow and Halden plant 2 trees", "en", "2024-06-03"),
        ("T", "en", "2024-06-09"),  # has no language field: detected
        ("U", "en", "2024-06-10"),
    ]
    assert got[0].text.startswith("The council of Varga")
    assert got[0].id == got[0].url == "https://news.example/en/1"
    assert len(got[3].id) == 32


def test_parquet_with_its_own_dates(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{**article(n, "de", "Varga", n), "date_publish": dt.datetime(2024, 7, n, 8)} for n in (1, 2)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert [(r.lang, r.date) for r in records(tmp_path / "a.parquet")] == [
        ("de", "2024-07-01"),
        ("de", "2024-07-02"),
    ]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        settled(tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2024-06-03 12:30:00", "2024-06-03"),
        ("2024-06-03T23:30:00-05:00", "2024-06-03"),
        ("2024-06-03T08:00:00Z", "2024-06-03"),
        ("2024-06-03", "2024-06-03"),
        ("Mon, 03 Jun 2024 08:00:00 GMT", "2024-06-03"),
        (1717401600, "2024-06-03"),
        (1717401600000, "2024-06-03"),
        (dt.date(2024, 6, 3), "2024-06-03"),
        ("None", None),
        ("", None),
        (None, None),
        ("last week", None),
        ("2024-13-45", None),
        (True, None),
        (-5, None),
    ],
)
def test_dates_of_every_form(value: Any, day: str | None) -> None:
    found = day_of(value)
    assert (found.isoformat() if found else None) == day


def test_exclusions_are_counted_by_reason(tmp_path: Path) -> None:
    good = article(1, "en", "Varga", 2)
    bad = [
        good,
        {**good, "url": "https://other.example"},  # the same text at another address
        {**article(2, "en", "Varga", 2), "url": good["url"]},
        {**article(3, "en", "Varga", 2), "date_publish": "None"},
        {**article(4, "en", "Varga", 2), "date_publish": "some day"},
        {**article(5, "en", "Varga", 2), "title": None},
        {**article(6, "en", "Varga", 2), "maintext": "  "},
        {**article(7, "en", "Varga", 2), "language": "xx"},
        article(8, "es", "Varga", 2),
        {**article(9, "en", "Varga", 2), "maintext": "Trees in Varga."},
        article(10, "en", "Varga", 40),
        article(11, "en", "Varga", 0),
    ]
    path = write_corpus(tmp_path / "a.jsonl", bad)
    block = ArticleBlock(min_words=10, since=dt.date(2024, 6, 2), until=dt.date(2024, 7, 1))
    assert reasons(path, block=block) == {
        "duplicate": 2,
        "no date": 1,
        "unreadable date": 1,
        "no title": 1,
        "no text": 1,
        "unknown language": 1,
        "other language": 1,
        "too short": 1,
        "outside the dates": 2,
    }
    assert len(records(path, block=block)) == 1


def test_length_is_counted_in_words_where_there_are_no_spaces(tmp_path: Path) -> None:
    text = BODY["zh"].format(town="", n=1)
    han = sum(c.isalpha() for c in text)
    path = write_corpus(tmp_path / "a.jsonl", [{**article(1, "zh", "", 1), "maintext": text}])
    (record,) = records(path, block=ArticleBlock(min_words=10), languages=("zh",))
    # 1.5 characters count as a word, and so does the number
    assert record.words == -(-han * 2 // 3) + 1
    assert reasons(path, block=ArticleBlock(min_words=record.words + 1), languages=("zh",)) == {"too short": 1}
    assert reasons(path, block=ArticleBlock(min_words=1, max_words=5), languages=("zh",)) == {"too long": 1}


def test_a_language_given_for_all_is_taken_and_codes_are_normalised(tmp_path: Path) -> None:
    one = {**article(1, "de", "Varga", 1), "language": None}
    two = {**article(2, "zh", "Varga", 1), "language": "zh-cn"}
    path = write_corpus(tmp_path / "a.jsonl", [one, two])
    block = ArticleBlock(min_words=5, lang="de")
    assert [r.lang for r in records(path, block=block, languages=("de", "zh"))] == ["de", "zh"]


def test_other_names_of_fields(tmp_path: Path) -> None:
    row = {"k": 5, "h": "T", "b": BODY["en"].format(town="Varga", n=3), "when": "2024-06-03", "l": "en"}
    path = write_corpus(tmp_path / "a.jsonl", [row])
    keys: Any = {"id": "k", "title": "h", "text": "b", "date": "when", "lang": "l"}
    (record,) = records(path, block=ArticleBlock(min_words=5, keys=keys))
    assert (record.id, record.title, record.date) == ("5", "T", "2024-06-03")


def test_invalid_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        article_files(tmp_path / "nothing")
    with pytest.raises(DataError, match="holds no file of articles"):
        article_files(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match="is not one of"):
        article_files(tmp_path / "a.txt")
    (tmp_path / "a.jsonl").write_text('{"title": "x"}\n{broken\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2"):
        settled(tmp_path / "a.jsonl")
    (tmp_path / "b.json").write_text("3")
    with pytest.raises(DataError, match="expected an object"):
        settled(tmp_path / "b.json")


def test_identity_follows_the_content(tmp_path: Path) -> None:
    path = write_corpus(tmp_path / "a.jsonl", [article(1, "en", "Varga", 1)])
    before = corpus_identity([path])
    write_corpus(path, [article(2, "en", "Varga", 1)])
    assert corpus_identity([path]).keys() == before.keys()
    assert corpus_identity([path]) != before


def test_control_characters_and_half_surrogates_reach_no_prompt(tmp_path: Path) -> None:
    row = {**article(1, "en", "Varga", 1), "title": "Va\x00rga \ud83d"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (record,) = records(tmp_path / "a.jsonl")
    assert record.title == "Varga ?"


def test_a_sample_is_drawn_by_language_and_seed() -> None:
    items = [Headline(f"{lang}{n}", lang, "", "2024-06-01") for lang in ("en", "de") for n in range(20)]

    def drawn(seed: int) -> list[str]:
        out: dict[str, Outcome] = {}
        sampled(items, 5, seed, out.__setitem__)
        assert len(out) == 40
        return [name for name, outcome in out.items() if outcome.made]

    assert len(drawn(0)) == 10
    assert sum(name.startswith("en") for name in drawn(0)) == 5
    assert drawn(0) == drawn(0) != drawn(1)


def test_the_library_finds_every_article(tmp_path: Path) -> None:
    path = write_corpus(
        tmp_path / "a.jsonl", [to_json(Article(f"ä{n}", "fr", "", f"té {n}", "2024-06-01", 2)) for n in range(5)]
    )
    library = Library(path)
    assert [library.article(f"ä{n}").text for n in (3, 0, 4)] == ["té 3", "té 0", "té 4"]
