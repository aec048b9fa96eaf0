"""Merging ranked lists; expected values derived by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.core import Hit
from mrag_eval.platform import ConfigError
from mrag_eval.retrievers import (
    equal_quotas,
    merge_by_quota,
    merge_by_rank_share,
    merge_by_score,
    merge_by_turns,
    merge_by_zscore,
    query_turn,
    reciprocal_rank_fusion,
    share_quotas,
)


def hits(*scored: tuple[str, float], lang: str = "en") -> list[Hit]:
    return [Hit(id=i, lang=lang, text=i, score=s, rank=r) for r, (i, s) in enumerate(scored, start=1)]


def hit(identifier: str, score: float) -> Hit:
    return Hit(id=identifier, lang="en", text="", score=score, rank=1)


def shown(merged: list[Hit]) -> list[tuple[str, float, int]]:
    return [(hit.id, hit.score, hit.rank) for hit in merged]


def test_by_score_keeps_the_higher_of_a_duplicate() -> None:
    merged = merge_by_score([hits(("a", 0.5), ("b", 0.4)), hits(("b", 0.9), ("c", 0.1))], 2)
    assert shown(merged) == [("b", 0.9, 1), ("a", 0.5, 2)]


def test_ties_go_by_id_whatever_the_order_of_the_lists() -> None:
    lists = [hits(("c", 1.0)), hits(("a", 1.0)), hits(("b", 1.0))]
    assert [hit.id for hit in merge_by_score(lists, 3)] == ["a", "b", "c"]
    assert merge_by_score(lists, 2) == merge_by_score(lists[::-1], 2)


def test_reciprocal_rank() -> None:
    merged = reciprocal_rank_fusion([hits(("a", 9.0), ("b", 8.0)), hits(("b", 0.3), ("c", 0.2))], 3)
    # b: 1/62 + 1/61, a: 1/61, c: 1/62
    assert [hit.id for hit in merged] == ["b", "a", "c"]
    assert [hit.score for hit in merged] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62], abs=1e-15)
    assert [hit.rank for hit in merged] == [1, 2, 3]


def test_ties_between_languages_are_in_the_order_of_the_turn() -> None:
    lists = {lang: hits((f"{lang}1", 3.0), (f"{lang}2", 2.0), lang=lang) for lang in ("ar", "en", "ko")}
    counts = dict.fromkeys(lists, 9)
    # one order of languages at every rank, whatever ties
    first, second, third = (hit.lang for hit in merge_by_score([hits((x, 1.0), lang=x) for x in lists], 3, 4))
    assert {first, second, third} == {*lists}
    expected = [f"{first}1", f"{second}1", f"{third}1", f"{first}2", f"{second}2"]
    for merged in (
        reciprocal_rank_fusion(lists.values(), 5, turn=4),
        merge_by_rank_share(lists, counts, 5, 4),
        merge_by_zscore(lists, 5, 4),
        reciprocal_rank_fusion(list(lists.values())[::-1], 5, turn=4),
    ):
        assert [hit.id for hit in merged] == expected
        assert [hit.rank for hit in merged] == [1, 2, 3, 4, 5]
    # without a turn, and within a language, the id decides
    assert [hit.id for hit in reciprocal_rank_fusion(lists.values(), 3)] == ["ar1", "en1", "ko1"]
    one = [hits(("b", 1.0), ("a", 1.0)), hits(("a", 1.0), ("b", 1.0))]
    assert {tuple(hit.id for hit in reciprocal_rank_fusion(one, 2, turn=turn)) for turn in range(5)} == {("a", "b")}


def test_a_turn_leaves_everything_but_ties_unchanged() -> None:
    lists = [hits(("a1", 0.9), ("a2", 0.5), lang="ar"), hits(("e1", 0.7), ("e2", 0.6), lang="en")]
    for turn in range(4):
        assert merge_by_score(lists, 4, turn) == merge_by_score(lists, 4)
        assert merge_by_rank_share({"ar": lists[0], "en": lists[1]}, {"ar": 9, "en": 50}, 4, turn) == (
            merge_by_rank_share({"ar": lists[0], "en": lists[1]}, {"ar": 9, "en": 50}, 4)
        )


@pytest.mark.parametrize("merge", ["score", "quota", "turns", "rrf", "zscore"])
@pytest.mark.parametrize("tied", [("ar", "en"), ("ar", "ko"), ("en", "ko"), ("ar", "de", "ko")])
def test_of_those_that_tie_each_is_first_equally_often(merge: str, tied: tuple[str, ...]) -> None:
    # the others are there, and do not tie
    lists = {
        lang: hits((f"{lang}1", 1.0 if lang in tied else 1.0 - at / 9), lang=lang)
        for at, lang in enumerate(("ar", "de", "en", "fi", "ko"), 1)
    }
    if merge in ("rrf", "zscore"):
        # which tie at every rank
        lists = {lang: found for lang, found in lists.items() if lang in tied}
    leads: Counter[str] = Counter()
    for number in range(600):
        turn = query_turn(f"Frage {number}?", seed=3)
        merged = {
            "score": lambda turn=turn: merge_by_score(lists.values(), 5, turn),
            "quota": lambda turn=turn: merge_by_quota(lists, equal_quotas(lists, 5, turn), 5, turn),
            "turns": lambda turn=turn: merge_by_turns([merge_by_score(lists.values(), 5, turn)], 5, turn),
            "rrf": lambda turn=turn: reciprocal_rank_fusion(lists.values(), 5, turn=turn),
            "zscore": lambda turn=turn: merge_by_zscore(lists, 5, turn),
        }[merge]()
        leads[merged[0].lang] += 1
    # the questions are fixed, so chance has decided already; five standard deviations are far
    share = 1 / len(tied)
    assert set(leads) == set(tied)
    assert all(abs(n - 600 * share) < 5 * (600 * share * (1 - share)) ** 0.5 for n in leads.values()), leads


@pytest.mark.parametrize("places", [1, 4])
@pytest.mark.parametrize("merge", ["rrf", "rank_norm", "quota"])
def test_every_language_leads_equally_often(merge: str, places: int) -> None:
    languages = [f"{letter}{letter}" for letter in "abcdef"]
    lists = {lang: hits(*((f"{lang}{n}", 9.0 - n) for n in range(2)), lang=lang) for lang in languages}
    counts = dict.fromkeys(languages, 100)
    shown: Counter[str] = Counter()
    queries = 1200
    for number in range(queries):
        turn = query_turn(f"Question {number}?", seed=7)
        merged = {
            "rrf": lambda turn=turn: reciprocal_rank_fusion(lists.values(), places, turn=turn),
            "rank_norm": lambda turn=turn: merge_by_rank_share(lists, counts, places, turn),
            "quota": lambda turn=turn: merge_by_quota(lists, equal_quotas(lists, places, turn), places),
        }[merge]()
        shown.update(hit.lang for hit in merged)
    # the questions are fixed, so chance has decided already; five standard deviations are far
    share = places / len(languages)
    deviation = (queries * share * (1 - share)) ** 0.5
    assert set(shown) == set(languages)
    assert all(abs(count - queries * share) < 5 * deviation for count in shown.values()), shown


def test_the_turn_of_a_query_is_fixed() -> None:
    assert query_turn("Who?") == query_turn("Who?", 0)
    assert len({query_turn("Who?", seed) for seed in range(9)}) == 9
    assert len({query_turn(text) for text in ("Who?", "who?", "")}) == 3


def test_reciprocal_rank_counts_a_repeated_passage_once_per_list() -> None:
    merged = reciprocal_rank_fusion([hits(("a", 3.0), ("a", 2.0), ("b", 1.0))], 5)
    assert [(hit.id, hit.score) for hit in merged] == [("a", 1 / 61), ("b", 1 / 63)]


def test_quota_fills_each_language_then_hands_places_on() -> None:
    lists = {
        "ar": hits(("ar1", 0.2), lang="ar"),
        "en": hits(("en1", 0.9), ("en2", 0.8), ("en3", 0.7), ("en4", 0.6)),
        "ko": hits(("ko1", 0.5), ("ko2", 0.4), ("ko3", 0.3), lang="ko"),
    }
    # ar leaves one of its 2 places open; en and ko have equal quotas, so en gets it (first by code)
    merged = merge_by_quota(lists, {"ar": 2, "en": 2, "ko": 2}, 6)
    assert [hit.id for hit in merged] == ["en1", "en2", "en3", "ko1", "ko2", "ar1"]
    assert [hit.rank for hit in merged] == [1, 2, 3, 4, 5, 6]


def test_open_places_go_to_the_largest_share_first() -> None:
    lists = {"ar": hits(("a1", 0.1), ("a2", 0.05), ("a3", 0.01)), "en": hits(("e1", 0.9), ("e2", 0.8)), "ko": []}
    merged = merge_by_quota(lists, {"ar": 2, "en": 1, "ko": 1}, 4)
    assert sorted(hit.id for hit in merged) == ["a1", "a2", "a3", "e1"]


def test_quota_returns_everything_available() -> None:
    assert [hit.id for hit in merge_by_quota({"en": hits(("e1", 1.0))}, {"en": 3, "ko": 3}, 6)] == ["e1"]


def test_quota_counts_a_passage_of_two_lists_once() -> None:
    lists = {"en": hits(("x", 0.4), ("e", 0.3)), "ko": hits(("x", 0.6), ("k", 0.2))}
    merged = merge_by_quota(lists, {"en": 1, "ko": 1}, 2)
    assert shown(merged) == [("x", 0.6, 1), ("k", 0.2, 2)]


def test_quotas() -> None:
    assert equal_quotas(["ko", "en", "ar"], 20) == {"ar": 7, "en": 7, "ko": 6}
    assert share_quotas({"en": 25, "ar": 75}, 20) == {"ar": 15, "en": 5}
    # exact shares 3.33 each: one place remains, and the remainders tie
    assert share_quotas({"c": 1, "a": 1, "b": 1}, 10) == {"a": 4, "b": 3, "c": 3}
    # exact shares 9.8, 0.1, 0.1: the largest remainder takes the last place
    assert share_quotas({"en": 98, "ko": 1, "ar": 1}, 10) == {"ar": 0, "en": 10, "ko": 0}


@pytest.mark.parametrize(
    "call",
    [
        lambda: merge_by_score([], 0),
        lambda: merge_by_quota({"en": []}, {"en": -1}, 3),
        lambda: merge_by_quota({"en": []}, {"en": 4}, 3),
        lambda: share_quotas({}, 3),
        lambda: share_quotas({"en": 0}, 3),
    ],
)
def test_impossible_requests(call: object) -> None:
    with pytest.raises(ConfigError):
        call()  # type: ignore[operator]


_LISTS = st.dictionaries(
    st.sampled_from(["ar", "en", "ko", "zh"]),
    st.lists(st.tuples(st.text("abcdef", min_size=1, max_size=2), st.sampled_from([0.0, 0.5, 1.0])), max_size=6),
)


@given(_LISTS, st.integers(1, 12))
def test_every_merge_is_ranked_distinct_and_bounded(scored: dict[str, list[tuple[str, float]]], k: int) -> None:
    lists = {lang: hits(*pairs, lang=lang) for lang, pairs in scored.items()}
    distinct = {hit.id for one in lists.values() for hit in one}
    quotas = equal_quotas(lists, k) if lists else {}
    for merged in (
        merge_by_score(lists.values(), k),
        reciprocal_rank_fusion(lists.values(), k),
        merge_by_quota(lists, quotas, k),
    ):
        assert len(merged) == min(k, len(distinct))
        assert len({hit.id for hit in merged}) == len(merged)
        assert [hit.rank for hit in merged] == list(range(1, len(merged) + 1))
        assert merged == sorted(merged, key=lambda hit: (-hit.score, hit.id))


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000), min_size=1), st.integers(1, 100))
def test_shares_add_up_and_stay_within_one_of_exact(counts: dict[str, int], k: int) -> None:
    total = sum(counts.values())
    if not total:
        return
    quotas = share_quotas(counts, k)
    assert sum(quotas.values()) == k
    assert all(abs(quotas[lang] - k * count / total) < 1 for lang, count in counts.items())


def test_the_remainder_goes_round_with_the_seed() -> None:
    assert [equal_quotas(["c", "a", "b"], 1, seed) for seed in range(4)] == [
        {"a": 1, "b": 0, "c": 0},
        {"a": 0, "b": 1, "c": 0},
        {"a": 0, "b": 0, "c": 1},
        {"a": 1, "b": 0, "c": 0},
    ]
    assert equal_quotas(["a", "b", "c"], 5, 2) == {"a": 2, "b": 1, "c": 2}
    # shares of 1.5, 0.75 and 0.75: the larger remainders come first with any seed
    assert all(share_quotas({"a": 2, "b": 1, "c": 1}, 3, seed) == {"a": 1, "b": 1, "c": 1} for seed in range(3))
    # shares of 1, 0.5 and 0.5: equal remainders, the seed decides
    assert share_quotas({"a": 2, "b": 1, "c": 1}, 2, 0) == {"a": 1, "b": 1, "c": 0}
    assert share_quotas({"a": 2, "b": 1, "c": 1}, 2, 2) == {"a": 1, "b": 0, "c": 1}


@given(
    languages=st.sets(st.text(min_size=1, max_size=3), min_size=1, max_size=9),
    k=st.integers(1, 40),
    seed=st.integers(0, 2**64),
)
def test_a_deeper_quota_holds_the_shallower_one(languages: set[str], k: int, seed: int) -> None:
    quotas, deeper = equal_quotas(languages, k, seed), equal_quotas(languages, k + 1, seed)
    assert sum(quotas.values()) == k
    assert max(quotas.values()) - min(quotas.values()) <= 1
    assert sum(deeper[lang] > quotas[lang] for lang in languages) == 1
    assert all(deeper[lang] >= quotas[lang] for lang in languages)
    if k % len(languages) == 0:
        assert quotas == equal_quotas(languages, k)


@given(
    st.dictionaries(
        st.sampled_from(["ar", "en", "ko"]),
        st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=6, unique=True),
        min_size=1,
    ),
    st.integers(1, 12),
)
def test_zscores_keep_the_order_within_a_language(scores: dict[str, list[float]], k: int) -> None:
    lists = {
        lang: hits(*((f"{lang}{n}", score) for n, score in enumerate(sorted(values, reverse=True))), lang=lang)
        for lang, values in scores.items()
    }
    merged = merge_by_zscore(lists, k)
    for lang, own in lists.items():
        # scores that differ in their last digits may become equal, and then go by id, which is their order here
        assert [hit.id for hit in merged if hit.lang == lang] == [hit.id for hit in own][: len(merged)][
            : sum(hit.lang == lang for hit in merged)
        ]


def test_a_page_alone_in_its_language_competes_by_its_score() -> None:
    english = [hit(f"e{n}", 0.9 - n / 100) for n in range(60)]
    for score, expected in ((0.95, 1), (0.87, 4), (0.4, 57)):
        merged = merge_by_zscore({"en": english, "ar": [replace(hit("a1", score), lang="ar")]}, 61)
        place = next(found.rank for found in merged if found.id == "a1")
        # near its place by score: its own moments alone would leave it in the middle, whatever its score
        assert abs(place - expected) <= 10, (score, place)


def test_turns_take_the_first_by_score_and_then_from_each_ranking() -> None:
    score = hits(("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5))
    centered = hits(("d", 3.0), ("a", 2.0), ("e", 1.0), ("f", 0.5))
    normal = hits(("c", 9.0), ("d", 8.0), ("b", 7.0))
    # a; then d, c, e (a and d are taken), b; the scores are those of the first ranking
    for k, expected in ((1, "a"), (2, "ad"), (3, "adc"), (4, "adce"), (5, "adceb")):
        merged = merge_by_turns([score, centered, normal], k)
        assert {found.id for found in merged} == set(expected)
        assert [found.score for found in merged] == sorted((found.score for found in merged), reverse=True)
        assert [found.rank for found in merged] == list(range(1, k + 1))
        assert all(found.score == next(one.score for one in score if one.id == found.id) for found in merged)
    # one that has none left is passed over, and equal rankings are that ranking
    assert {found.id for found in merge_by_turns([score, centered, []], 9)} == {"a", "d", "e"}
    assert merge_by_turns([score, score, score], 3) == merge_by_score([score], 3)
    assert merge_by_turns([[], [], []], 3) == []


def test_zscores_lift_outliers_within_their_language() -> None:
    lists = {
        "en": [hit("e1", 0.90), hit("e2", 0.88), hit("e3", 0.86)],
        "ar": [hit("a1", 0.70), hit("a2", 0.50), hit("a3", 0.48)],
        "de": [hit("d1", 0.60)],
        "ru": [hit("r1", 0.10), hit("r2", 0.10)],
        "zh": [],
    }
    merged = merge_by_zscore(lists, 5)
    # By hand, with three values of all: mean (.90 + ... + .10) / 9 = .568889; squares around the means of the lists:
    # .0008, .0296, 0, 0, so a variance of .0304 / 9 = .003378. en: mean (2.64 + 3 * .568889) / 6 = .724444, deviation
    # sqrt((.0008 + 3 * .003378) / 6) = .042687: z = 4.112576, 3.644054, 3.175533. ar: mean .564444, deviation .081377:
    # z = 1.665772, -.791924, -1.037694. de: mean .576667, deviation sqrt(3 * .003378 / 4) = .050332: z = .463586.
    assert [h.id for h in merged] == ["e1", "e2", "e3", "a1", "d1"]
    assert [h.score for h in merged] == pytest.approx([4.112576, 3.644054, 3.175533, 1.665772, 0.463586], abs=1e-6)
    assert [h.rank for h in merged] == [1, 2, 3, 4, 5]
    assert merge_by_zscore({"en": [hit("e1", 0.1 + 0.2), hit("e2", 0.3)]}, 2)[0].score == 0.0


def test_rank_shares_give_places_by_the_size_of_a_language_in_one_ranking() -> None:
    lists = {
        "ar": [hit(f"a{i}", 0.9 - i / 100) for i in range(1, 7)],
        "en": [hit(f"e{i}", 0.1 - i / 100) for i in range(1, 7)],
    }
    merged = merge_by_rank_share(lists, {"ar": 30, "en": 10}, 8)
    # 1 - (rank - 1/2) / n: ar .9833 .95 .9167 .8833 .85 .8167, en .95 .85 .75
    assert [h.id for h in merged] == ["a1", "a2", "e1", "a3", "a4", "a5", "e2", "a6"]
    assert [h.score for h in merged[:3]] == pytest.approx([59 / 60, 0.95, 0.95])
    with pytest.raises(ConfigError, match="'en' has 6 hits of 5 passages"):
        merge_by_rank_share(lists, {"ar": 30, "en": 5}, 8)
    with pytest.raises(ConfigError, match="'en' has 6 hits of 0 passages"):
        merge_by_rank_share(lists, {"ar": 30}, 8)
