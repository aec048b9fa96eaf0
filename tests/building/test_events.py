"""Events that connect articles in two languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._events import Meeting, article_index, capped, meetings, read_events
from mrag_eval.building.xrag._xrag_records import Article, Headline
from mrag_eval.building.xrag._xrag_settings import EventBlock, RetrieverBlock
from mrag_eval.platform import DataError, to_json
from tests.building.newsroom import TownEmbedder, write_corpus


def test_events_are_lines_or_json_lines_each_once(tmp_path: Path) -> None:
    plain = tmp_path / "events.txt"
    plain.write_text(
        "Halbfinale der Europameisterschaft\n\n 秘鲁钱凯港开港 \nHalbfinale der Europameisterschaft\n", "utf-8"
    )
    assert read_events(plain) == ["Halbfinale der Europameisterschaft", "秘鲁钱凯港开港"]
    path = write_corpus(tmp_path / "events.jsonl", [{"event": "A flood"}, {"event": "A match"}])
    assert read_events(path) == ["A flood", "A match"]
    write_corpus(path, [{"event": "A flood"}, {"name": "A match"}])
    with pytest.raises(DataError, match="line 2: 'event' must be text"):
        read_events(path)
    plain.write_text("\n")
    with pytest.raises(DataError, match="holds no event"):
        read_events(plain)


ARTICLES = [
    Article(name, lang, title, title.split()[0], date, 1)
    for name, lang, title, date in (
        ("e1", "en", "Varga 1", "2024-06-01"),
        ("e2", "en", "Varga 2", "2024-07-01"),
        ("e3", "en", "Tarnow 1", "2024-06-01"),
        ("d1", "de", "Varga 1", "2024-06-10"),
        ("d2", "de", "Varga 2", "2024-06-29"),
        ("s1", "es", "Tarnow 1", "2024-06-02"),
    )
]
HEADLINES = [Headline(a.id, a.lang, a.title, a.date) for a in ARTICLES]


@pytest.fixture
def index(tmp_path: Path) -> Any:
    library = Library(write_corpus(tmp_path / "articles.jsonl", [to_json(article) for article in ARTICLES]))
    return article_index(HEADLINES, library, RetrieverBlock(), tmp_path, TownEmbedder())


def met(index: Any, events: list[str], languages: tuple[str, ...] = ("de", "es"), **more: Any) -> list[Any]:
    by_id = {article.id: article for article in HEADLINES}
    found = meetings(events, index, by_id, languages, EventBlock(**more))
    return [(m.english, m.foreign, m.lang, m.days) for m in found]


def test_the_best_articles_of_both_languages_meet_if_they_are_near_in_time(index: Any) -> None:
    # in German, Varga's second articles are two days apart and the first ones nine; the event's figure decides
    assert met(index, ["Varga 1"], ("de",), k=2) == [("e1", "d1", "de", 9)]
    assert met(index, ["Varga 2"], ("de",), k=2) == [("e2", "d2", "de", 2)]
    assert met(index, ["Tarnow 1"], ("es",), k=1) == [("e3", "s1", "es", 1)]
    # one pair per language
    assert [pair[2] for pair in met(index, ["Varga 1"], k=3)] == ["de", "es"]


def test_time_may_be_left_out_of_it(index: Any) -> None:
    near = met(index, ["Varga 1"], ("de",), k=2, per_event=9)
    assert set(near) == {("e1", "d1", "de", 9), ("e2", "d2", "de", 2)}
    any_time = met(index, ["Varga 1"], ("de",), k=2, per_event=9, max_days=None)
    assert {(pair[0], pair[1]) for pair in any_time} == {("e1", "d1"), ("e1", "d2"), ("e2", "d1"), ("e2", "d2")}


def test_a_language_without_articles_meets_nobody(index: Any) -> None:
    assert met(index, ["Varga 1"], ("zh",)) == []


def test_a_pair_counts_once_and_pairs_per_article_and_language_are_limited() -> None:
    found = [
        Meeting("e1", "d1", "de", "a", 0),
        Meeting("e1", "d1", "de", "b", 0),
        Meeting("e1", "d2", "de", "a", 0),
        Meeting("e1", "s1", "es", "a", 0),
        Meeting("e2", "d1", "de", "a", 0),
    ]
    pairs, spare = capped(iter(found), 1)
    assert [(m.english, m.foreign) for m in pairs] == [("e1", "d1"), ("e1", "s1")]
    assert spare == 2
