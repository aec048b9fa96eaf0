"""Known faults of other retrieval tools; none of them may come back here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mrag_eval.core import Passage
from mrag_eval.retrievers import Index

MakeIndex = Callable[..., Index]


def corpus(lang: str, *texts: str) -> list[Passage]:
    return [Passage(id=f"{lang}-{n}", lang=lang, text=text) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("lang", "texts", "query"),
    [
        ("zh", ("这座旧桥横跨宽阔的河流。", "水稻生长在湿地里。"), "旧桥"),
        ("ja", ("この古い橋は川を渡っている。", "博物館は九時に開く。"), "古い橋"),
        ("th", ("สะพานเก่าข้ามแม่น้ำกว้าง", "พิพิธภัณฑ์เปิดเก้าโมง"), "สะพาน"),
        ("ko", ("오래된 다리가 강을 건넌다.", "박물관은 아홉 시에 문을 연다."), "다리"),
        ("km", ("ស្ពានចាស់ឆ្លងទន្លេ", "សារមន្ទីរបើកម៉ោងប្រាំបួន"), "ស្ពាន"),
    ],
)
def test_scripts_without_spaces_are_found_by_a_word(
    make_index: MakeIndex, lang: str, texts: tuple[str, ...], query: str
) -> None:
    # with whitespace tokens a whole sentence is one token, and no question ever matches
    hits = make_index(corpus(lang, *texts), kind="bm25", segment=False).search([query], 5)[0]
    # the last syllable of the Korean word is in the other passage, too
    assert [hit.id for hit in hits] == {"ko": ["ko-0", "ko-1"]}.get(lang, [f"{lang}-0"])
    # by dictionaries, where these are installed, or by pairs
    assert make_index(corpus(lang, *texts), kind="bm25").search([query], 5)[0][0].id == f"{lang}-0"


@pytest.mark.parametrize(
    ("lang", "text", "query"),
    [
        ("de", "Die Straßenbrücken", "STRASSENBRÜCKEN"),
        ("tr", "İstanbul köprüsü", "istanbul"),
        ("ar", "جِسْرٌ قديم", "جسر"),
        ("ja", "カメラ", "ｶﾒﾗ"),
        ("ru", "Ёлка", "ёлка"),
    ],
)
def test_queries_are_tokenised_as_the_passages_were(make_index: MakeIndex, lang: str, text: str, query: str) -> None:
    # a stemmed index queried with plain tokens scores zero everywhere
    index = make_index(corpus(lang, text, "…"), kind="bm25")
    assert [hit.id for hit in index.search([query], 5)[0]] == [f"{lang}-0"]
    # the query goes in as text: there is no other way to ask, so no other tokens to ask with
    shard = index._shards.lexical[index.languages[0]]
    assert set(shard.tokenizer(query)) <= set(shard.model.vocab_dict)


@pytest.mark.parametrize("kind", ["bm25", "hybrid", "dense"])
def test_a_query_without_hits_keeps_its_place(make_index: MakeIndex, kind: str) -> None:
    index = make_index(corpus("en", "old bridge", "wide river"), kind=kind)
    found = index.search(["bridge", "zzz qqq", "?!", "river"], 1)
    assert len(found) == 4
    assert found[0][0].id == "en-0"
    assert found[3][0].id == "en-1"
    if kind == "bm25":
        assert found[1:3] == [[], []]


def test_nothing_is_cached_by_only_the_text_of_the_query(
    make_index: MakeIndex, passages: list[Passage], constant: Any
) -> None:
    # same question: other index, other embedder, other kind, other depth, other scope
    query = ["old bridge"]
    searches = [
        make_index(passages).search(query, 3),
        make_index(passages[1:]).search(query, 3),
        make_index(passages, embedder=constant).search(query, 3),
        make_index(passages, kind="bm25").search(query, 3),
    ]
    index = make_index(passages)
    assert len(index.search(query, 1)[0]) == 1
    assert len(index.search(query, 5)[0]) == 5
    assert {hit.lang for hit in index.search(query, 5, languages=["ko"])[0]} == {"ko"}
    assert index.search(query, 3) == searches[0]
    assert all(one != searches[0] for one in searches[1:])


@pytest.mark.parametrize("kind", ["dense", "bm25"])
def test_a_constant_scorer_does_not_look_good(make_index: MakeIndex, constant: Any, kind: str) -> None:
    # the relevant passage is first in the corpus and last by id: a constant scorer must rank it last in its language
    texts = [Passage(id=f"p{9 - n}", lang=("en", "ko")[n % 2], text="same text") for n in range(10)]
    index = make_index(texts, kind=kind, embedder=constant, joint=kind == "bm25")
    hits = index.search(["same text"], 10)[0]
    assert len({hit.score for hit in hits}) == 1
    # which language comes first, the question decides
    korean, english = ([f"p{n}" for n in range(first, 10, 2)] for first in (0, 1))
    assert [hit.id for hit in hits] in (korean + english, english + korean)
    assert [hit.id for hit in index.search(["same"], 3)[0]] in (korean[:3], english[:3])


def test_language_is_known_per_passage_not_from_the_first(make_index: MakeIndex) -> None:
    texts = [*corpus("en", "a bridge"), *corpus("zh", "这座旧桥很长")]
    index = make_index(texts, kind="bm25")
    assert [hit.lang for hit in index.search(["旧桥"], 5)[0]] == ["zh"]
