"""Searching: scopes, candidates, merging over languages, ties, bad arguments."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import Hit, Passage
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrievers import Index, build_index, merge_by_score, query_turn, reciprocal_rank_fusion
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._ordering import Rows, fuse_reciprocal, language_places
from tests.retrievers.conftest import TokenHashEmbedder, small_corpus

MakeIndex = Callable[..., Index]
KINDS = [("dense", False), ("bm25", False), ("bm25", True), ("hybrid", False), ("hybrid", True)]
QUERIES = ["old bridge river", "旧桥", "박물관 아홉", "museum nine", "الجسر القديم"]


def ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}{'-joint' if kind[1] else ''}")
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    """An index of each kind, which the tests search and do not change."""
    kind, joint = request.param
    path = tmp_path_factory.mktemp("indexes") / "index"
    return build_index(small_corpus(), path, embedder=TokenHashEmbedder(), kind=kind, joint=joint, progress=False)


def test_contents(index: Index, passages: list[Passage]) -> None:
    assert index.languages == ("ar", "de", "en", "hi", "ko", "th", "zh-Hans")
    assert len(index) == len(passages) == sum(index.counts.values())
    assert index.passages(["th-1", "en-0"]) == [passages[-1], passages[0]]
    with pytest.raises(CorpusError, match="no passage 'doc-0'"):
        index.passages(["doc-0"])


def test_hits_carry_their_passage(index: Index, passages: list[Passage]) -> None:
    by_id = {passage.id: passage for passage in passages}
    for hits in index.search(QUERIES, 20):
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        # ties between languages have an order of their own
        assert hits == sorted(hits, key=lambda hit: -hit.score)
        for lang in index.languages:
            own = [hit for hit in hits if hit.lang == lang]
            assert own == sorted(own, key=lambda hit: (-hit.score, hit.id))
        for hit in hits:
            passage = by_id[hit.id]
            assert (hit.lang, hit.text, hit.title, hit.doc_id) == (
                passage.lang,
                passage.text,
                passage.title,
                passage.doc_id,
            )


def test_only_the_languages_in_scope_come_back(index: Index) -> None:
    scopes: list[Any] = [["en"], ["zh", "ko"], ["ko", "kor_Hang"], None, ["arabic", "en"]]
    for scope, hits in zip(scopes, index.search(QUERIES, 20, languages=scopes), strict=True):
        allowed = set(index.resolve(scope))
        assert {hit.lang for hit in hits} <= allowed
        assert hits
        if index.kind != "bm25":
            assert {hit.lang for hit in hits} == allowed
    for hits in index.search(QUERIES, 20, languages=["de", "th"]):
        assert {hit.lang for hit in hits} <= {"de", "th"}


def test_a_scope_for_all_and_the_same_for_each_agree(index: Index) -> None:
    together = index.search(QUERIES, 4, languages=["en", "ko", "ar"])
    assert together == index.search(QUERIES, 4, languages=[["ar", "en", "ko"]] * len(QUERIES))
    assert together == [index.search([query], 4, languages=["en", "ko", "ar"])[0] for query in QUERIES]


def test_smaller_k_is_a_prefix(index: Index) -> None:
    deep = index.search(QUERIES, 12)
    for k in (1, 2, 5):
        assert index.search(QUERIES, k) == [hits[:k] for hits in deep]


def test_k_beyond_the_shard_returns_everything(index: Index) -> None:
    (hits,) = index.search(["old bridge rice museum"], 1_000, languages=["en"])
    assert sorted(ids(hits)) == ["en-0", "en-1", "en-2"]


def test_by_language_equals_scoring_each_language_separately(index: Index) -> None:
    scopes: list[Any] = [None, ["zh", "en"], ["ko"], ["en", "de"], ["ar"]]
    by_language = index.search_by_language(QUERIES, 2, languages=scopes)
    for query, scope, lists in zip(QUERIES, scopes, by_language, strict=True):
        assert tuple(sorted(lists)) == index.resolve(scope)
        for language, hits in lists.items():
            alone = index.search([query], 2, languages=[language])[0]
            assert ids(hits) == ids(alone)
            assert {hit.lang for hit in hits} <= {language}


def test_dense_merge_is_the_merge_of_the_languages_by_score(make_index: MakeIndex, passages: list[Passage]) -> None:
    index = make_index(passages)
    assert index.merges_by_score
    for hits, lists in zip(index.search(QUERIES, 5), index.search_by_language(QUERIES, 5), strict=True):
        assert hits == merge_by_score(lists.values(), 5)


def test_lexical_lists_are_merged_by_rank(make_index: MakeIndex, passages: list[Passage]) -> None:
    index = make_index(passages, kind="bm25")
    assert not index.merges_by_score
    queries = ["museum bridge Museum 旧桥 Brücke"]
    (lists,) = index.search_by_language(queries, 5)
    assert sum(1 for hits in lists.values() if hits) >= 3
    assert index.search(queries, 5) == [reciprocal_rank_fusion(lists.values(), 5, turn=query_turn(queries[0]))]
    # one language alone keeps its own scores
    assert index.search(queries, 5, languages=["en"])[0] == lists["en"]


def test_each_language_leads_ties_equally_often(make_index: MakeIndex) -> None:
    # the same passages in four languages: equal ranks everywhere
    languages = ["ar", "de", "en", "sw"]
    twins = [Passage(f"{lang}-{n}", lang, f"{word} bridge") for lang in languages for n, word in enumerate("xyz")]
    index = make_index(twins, kind="bm25")
    queries = [f"bridge number {number}" for number in range(400)]
    found = index.search(queries, 4)
    assert all({hit.lang for hit in hits} == set(languages) for hits in found)
    # 100 of 400 for each; a deviation is 8.7
    leads = Counter(hits[0].lang for hits in found)
    assert all(60 <= leads[lang] <= 140 for lang in languages), leads
    lists = index.search_by_language(queries, 4)
    for query, by_language, hits in zip(queries, lists, found, strict=True):
        assert hits == reciprocal_rank_fusion(by_language.values(), 4, turn=query_turn(query))


def test_fused_lists_have_ties_in_the_order_of_the_turn() -> None:
    # rows 0 to 9 are of the first language, 10 to 19 of the second, 20 to 29 of the third, which has no hit
    turns, codes = list(range(40)), ["ar", "en", "ko"]
    first, second = np.array([[5, 3]] * 40), np.array([[15, 13]] * 40)

    def places(rows: Rows) -> Rows:
        return language_places(np.where(rows < 0, -1, rows // 10), turns, codes)

    _, rows = fuse_reciprocal(40, [(None, first), (None, second)], 4, lambda rows: [str(row) for row in rows], places)
    by_turn = [merge_by_score([[Hit(code, code, "", 1.0, 1)] for code in ("ar", "en")], 2, turn) for turn in turns]
    assert rows.tolist() == [[5, 15, 3, 13] if one[0].lang == "ar" else [15, 5, 13, 3] for one in by_turn]
    assert 8 <= sum(one[0].lang == "ar" for one in by_turn) <= 32


def test_equal_vectors_of_several_languages_favour_none(make_index: MakeIndex) -> None:
    languages = ["ar", "de", "en", "sw"]
    index = make_index([Passage(f"{lang}-{n}", lang, f"bridge {n}") for lang in languages for n in range(9)])
    queries = [f"bridge number {number}" for number in range(200)]
    found = index.search(queries, 4)
    leads = Counter(hits[0].lang for hits in found)
    # 50 of 200 for each; a deviation is 6.1
    assert all(25 <= leads[lang] <= 75 for lang in languages), leads
    # fewer hits are the first of more
    assert [[hit.id for hit in hits[:4]] for hits in index.search(queries, 9)] == [[h.id for h in x] for x in found]


def test_a_joint_lexical_index_is_merged_by_score(make_index: MakeIndex, passages: list[Passage]) -> None:
    index = make_index(passages, kind="bm25", joint=True)
    assert index.merges_by_score
    queries = ["museum bridge Museum 旧桥 Brücke"]
    (lists,) = index.search_by_language(queries, 5)
    assert index.search(queries, 5) == [merge_by_score(lists.values(), 5, query_turn(queries[0]))]


def test_hybrid_in_one_language_fuses_both_lists(make_index: MakeIndex, passages: list[Passage]) -> None:
    options = {"languages": ["en"]}
    dense = make_index(passages).search(["museum at the bridge"], 3, **options)[0]
    lexical = make_index(passages, kind="bm25").search(["museum at the bridge"], 3, **options)[0]
    fused = make_index(passages, kind="hybrid").search(["museum at the bridge"], 3, **options)[0]
    assert [(h.id, h.score) for h in fused] == [(h.id, h.score) for h in reciprocal_rank_fusion([dense, lexical], 3)]


def test_hybrid_over_languages_prefers_what_both_find(make_index: MakeIndex, passages: list[Passage]) -> None:
    for joint in (False, True):
        hits = make_index(passages, kind="hybrid", joint=joint).search(["Das Museum öffnet um neun"], 3)[0]
        assert hits[0].id == "de-1"
        assert hits[0].score == 1 / 61 + 1 / 61


def test_candidates_by_passage_or_document_id(index: Index) -> None:
    query = "old bridge river museum 旧桥"
    allowed: list[Any] = [["doc-0"], ["en-2", "zh-Hans-0"], None, set(), ["doc-0"]]
    found = index.search([query] * 5, 50, candidates=allowed)
    assert {hit.doc_id for hit in found[0]} == {"doc-0"}
    assert set(ids(found[1])) == {"en-2", "zh-Hans-0"}
    assert found[2] == index.search([query], 50)[0]
    assert found[3] == []
    assert found[4] == found[0]
    # restricted and unrestricted searches give a passage the same score, unless scores are ranks
    if index.merges_by_score:
        scores = {hit.id: hit.score for hit in found[2]}
        assert all(hit.score == scores[hit.id] for hit in found[0])


def test_candidates_within_a_scope(index: Index) -> None:
    (hits,) = index.search(["old bridge 旧桥"], 9, languages=["zh"], candidates=[["doc-0"]])
    assert ids(hits) == ["zh-Hans-0"]
    (lists,) = index.search_by_language(["old bridge"], 9, languages=["zh", "en"], candidates=[["en-0"]])
    assert {language: ids(hits) for language, hits in lists.items()} == {"en": ["en-0"], "zh-Hans": []}


def test_candidates_are_counted_by_language(index: Index) -> None:
    # a passage that is named twice, by its own id and by its document's, counts once
    found = index.counts_named([["doc-0", "en-0"], ["en-0", "en-1", "th-1"], ["gone"], []])
    assert found == [dict.fromkeys(index.languages, 1), {"en": 2, "th": 1}, {}, {}]
    assert index.counts_named([]) == []


def test_unknown_candidates_are_reported(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        (hits,) = index.search(["old bridge"], 9, candidates=[["en-0", "gone"]])
    assert ids(hits) == ["en-0"]
    assert "1 of 2 candidate ids are not in the index, 'gone' among them" in caplog.text


def test_no_queries(index: Index) -> None:
    assert index.search([], 3) == []
    assert index.search_by_language([], 3, languages=[], candidates=[]) == []


@pytest.mark.parametrize("query", ["", "  \n", "\u3000"])
def test_an_empty_query_is_named(index: Index, query: str) -> None:
    with pytest.raises(DataError, match="query 1 is empty"):
        index.search(["fine", query], 3)


def test_a_language_the_index_lacks(index: Index) -> None:
    with pytest.raises(CorpusError) as caught:
        index.search(["question"], 3, languages=["en", "fr"])
    assert "has no French shard 'fr' (it holds: ar, de, en, hi, ko, th, zh-Hans)" in caught.value.message
    assert caught.value.next_step is not None
    assert "mrag-eval index build" in caught.value.next_step
    assert "retrieval.mode" in caught.value.next_step


def test_bad_arguments(index: Index) -> None:
    with pytest.raises(ConfigError, match="k is 0"):
        index.search(["q"], 0)
    with pytest.raises(ConfigError, match="unknown language 'dothraki'"):
        index.search(["q"], 1, languages=["dothraki"])
    with pytest.raises(ConfigError, match="names no language"):
        index.search(["q"], 1, languages=[[]])
    with pytest.raises(DataError, match="languages has 1 entries for 2 queries"):
        index.search(["q", "r"], 1, languages=[["en"]])
    with pytest.raises(DataError, match="candidates has 1 entries for 2 queries"):
        index.search(["q", "r"], 1, candidates=[["en-0"]])
    with pytest.raises(DataError, match="candidates holds a text"):
        index.search(["q"], 1, candidates=["en-0"])
    with pytest.raises(DataError, match="queries is one text"):
        index.search("q", 1)


@pytest.mark.parametrize(
    ("shards", "scope", "expected"),
    [
        (["zh", "zh-Hans"], "zh", ("zh",)),
        (["zh-Hans", "zh-Hant", "en"], "zh_cn", ("zh-Hans",)),
        (["zh-Hans", "zh-Hant", "en"], "cmn", ("zh-Hans", "zh-Hant")),
        (["zh", "en"], "zht", ("zh",)),
        (["pt", "en"], "pt_br", ("pt",)),
    ],
)
def test_scripts_can_replace_a_language(
    make_index: MakeIndex, shards: list[str], scope: str, expected: tuple[str, ...]
) -> None:
    index = make_index([Passage(id=lang, lang=lang, text="text") for lang in shards])
    assert index.resolve([scope]) == expected
    assert index.resolve(scope) == expected


def test_another_script_is_not_a_substitute(make_index: MakeIndex) -> None:
    index = make_index([Passage(id="1", lang="zh-Hans", text="text")])
    with pytest.raises(CorpusError, match="no Chinese \\(traditional\\) shard"):
        index.resolve(["zh-Hant"])


def test_embeddings_are_used_and_checked(make_index: MakeIndex, passages: list[Passage], token_hash: Any) -> None:
    index = make_index(passages)
    vectors = token_hash.embed_queries(QUERIES)
    token_hash.embedded.clear()
    assert index.search(["x"] * len(QUERIES), 3, embeddings=vectors) == index.search(QUERIES, 3)
    assert token_hash.embedded == QUERIES
    with pytest.raises(CorpusError, match=r"32 dimensions and there are 2 queries.*shape \(2, 31\)"):
        index.search(["a", "b"], 3, embeddings=np.zeros((2, 31), dtype=np.float32))
    with pytest.raises(DataError, match="not finite"):
        index.search(["a"], 3, embeddings=np.full((1, 32), np.nan, dtype=np.float32))


def test_questions_are_embedded_once_per_process(
    make_index: MakeIndex, passages: list[Passage], token_hash: Any
) -> None:
    index, other = make_index(passages), make_index(passages[:5])
    token_hash.embedded.clear()
    first = index.search(["same", "same", "other"], 2)
    assert index.search(["other", "same"], 2) == [first[2], first[0]]
    other.search(["same"], 2)
    assert token_hash.embedded == ["same", "other"]


def test_each_shard_is_searched_once_for_all_queries(
    make_index: MakeIndex, passages: list[Passage], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []
    search = FaissShard.search

    def counted(self: FaissShard, queries: np.ndarray, *args: Any) -> Any:
        calls.append((self.path.stem, len(queries)))
        return search(self, queries, *args)

    monkeypatch.setattr(FaissShard, "search", counted)
    index = make_index(passages)
    index.search_by_language(["a", "b", "c"], 2, languages=[["en", "ko"], ["en"], ["ko", "en"]])
    assert sorted(calls) == [("en", 3), ("ko", 2)]


def test_template_syntax_passes_through(make_index: MakeIndex) -> None:
    text = "{{ config }} {% include 'x' %} </document> bridge"
    for kind in ("dense", "bm25"):
        index = make_index([Passage(id="1", lang="en", text=text, title="{{ t }}")], kind=kind)
        (hit,) = index.search(["{{ config }} bridge"], 1)[0]
        assert (hit.text, hit.title) == (text, "{{ t }}")


def test_ties_go_by_language_and_id(make_index: MakeIndex, constant: Any) -> None:
    corpus = [Passage(id=f"{9 - number}", lang=lang, text="t") for number, lang in enumerate(["en", "ko", "ar"] * 3)]
    hits = make_index(corpus, embedder=constant).search(["q"], 9)[0]
    in_order = {"en": ["3", "6", "9"], "ko": ["2", "5", "8"], "ar": ["1", "4", "7"]}
    assert ids(hits) == [name for lang in dict.fromkeys(hit.lang for hit in hits) for name in in_order[lang]]


def test_unicode_ids_and_texts_survive(make_index: MakeIndex) -> None:
    corpus = [
        Passage(id="ид/1", lang="ru", text="мост 🌉", title="река\0", doc_id="док"),
        Passage(id="識", lang="ja", text="橋"),
    ]
    index = make_index(corpus)
    assert index.passages(["識", "ид/1"]) == [replace(corpus[1]), corpus[0]]
    assert ids(index.search(["мост"], 5, candidates=[["док"]])[0]) == ["ид/1"]
