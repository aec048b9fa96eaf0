"""Related articles by the entities of their titles: what is found, what is not, and that all pairs were considered."""

from __future__ import annotations

import datetime as dt
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_eval.building.xrag._events import entity_key
from mrag_eval.building.xrag._pairing import related_pairs
from mrag_eval.building.xrag._xrag_records import Headline

START = dt.date(2024, 6, 1)


def article(n: int, day: int, *entities: str, title: str = "") -> Headline:
    date = (START + dt.timedelta(days=day)).isoformat()
    return Headline(f"a{n}", "en", title or f"title {n}", date, entities)


def found(articles: list[Headline], **more: Any) -> list[tuple[int, int]]:
    return [(pair.first, pair.second) for pair in related_pairs(articles, **more).pairs]


def test_two_shared_entities_within_two_weeks_make_a_pair() -> None:
    articles = [
        article(0, 0, "walmart", "helene", "aldi"),
        article(1, 14, "helene", "walmart"),
        article(2, 15, "helene", "walmart"),  # 15 days from the first article, 1 from the second
        article(3, 1, "walmart", "target"),  # shares one entity
        article(4, 1),
    ]
    result = related_pairs(articles)
    assert [(p.first, p.second, set(p.shared), p.days) for p in result.pairs] == [
        (0, 1, {"helene", "walmart"}, 14),
        (1, 2, {"helene", "walmart"}, 1),
    ]


def test_the_earlier_article_comes_first_whatever_the_order_of_the_corpus() -> None:
    assert found([article(0, 5, "a", "b"), article(1, 2, "b", "a")]) == [(1, 0)]


def test_reprints_make_no_pair() -> None:
    assert found([article(0, 0, "a", "b", title="same"), article(1, 1, "a", "b", title="same")]) == []


def test_an_entity_named_twice_in_a_title_counts_once() -> None:
    assert found([article(0, 0, "a", "a"), article(1, 1, "a", "a")]) == []


def test_general_entities_count_only_together_with_another() -> None:
    crowd = [article(n, 0, "us", "china") for n in range(5)]
    two = [article(10, 0, "us", "kestrel"), article(11, 0, "us", "kestrel")]
    result = related_pairs([*crowd, *two], max_titles=4, per_article=9)
    # us: 7 titles, china: 5; kestrel leads from 10 to 11, and us is the second shared entity
    assert result.general == 2
    assert [(p.first, p.second) for p in result.pairs] == [(5, 6)]
    assert len(related_pairs([*crowd, *two], max_titles=7, per_article=9).pairs) == 10 + 1


def test_pairs_per_article_are_limited_to_the_best() -> None:
    articles = [
        article(0, 0, "a", "b", "c"),
        article(1, 3, "a", "b"),
        article(2, 1, "a", "b", "c"),
    ]
    # 0-2 share three entities; 1-2 are two days apart, 0-1 three
    result = related_pairs(articles, per_article=1)
    assert [(p.first, p.second) for p in result.pairs] == [(0, 2)]
    assert result.spare == 2
    assert len(related_pairs(articles, per_article=2).pairs) == 3


TITLES = st.lists(
    st.tuples(st.integers(0, 30), st.lists(st.sampled_from("abcdefgh"), max_size=5)), min_size=2, max_size=25
)


@settings(max_examples=150)
@given(TITLES, st.integers(1, 3), st.integers(0, 20), st.integers(2, 12))
def test_the_outcome_is_that_of_trying_all_pairs(
    titles: list[tuple[int, list[str]]], shared: int, max_days: int, max_titles: int
) -> None:
    articles = [article(n, day, *names) for n, (day, names) in enumerate(titles)]
    frequency = {name: sum(name in names for _, names in titles) for name in "abcdefgh"}
    expected = set()
    for i, j in combinations(range(len(titles)), 2):
        common = set(titles[i][1]) & set(titles[j][1])
        near = abs(titles[i][0] - titles[j][0]) <= max_days
        if len(common) >= shared and near and any(frequency[name] <= max_titles for name in common):
            expected.add(frozenset((i, j)))
    result = related_pairs(articles, shared=shared, max_days=max_days, max_titles=max_titles, per_article=99)
    assert {frozenset((p.first, p.second)) for p in result.pairs} == expected
    assert len(result.pairs) == len(expected)
    assert result.spare == 0
    capped = related_pairs(articles, shared=shared, max_days=max_days, max_titles=max_titles, per_article=2)
    degrees = [n for p in capped.pairs for n in (p.first, p.second)]
    assert all(degrees.count(n) <= 2 for n in degrees)
    assert len(capped.pairs) + capped.spare == len(expected)


def test_mentions_of_one_entity_are_one() -> None:
    assert entity_key("Joe  Biden’s") == entity_key("joe biden") == entity_key("“Joe Biden”,") == "joe biden"
    assert entity_key("Super_Bowl_50") == "super bowl 50"
    assert entity_key("慕尼黑") == "慕尼黑"
