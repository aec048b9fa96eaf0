"""Every IR mode on a corpus of five languages: languages searched, and languages returned."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from mrag_eval.config import MODES, Retrieval, validated
from mrag_eval.core import GivenPassage, RagDoc, Retrieved
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval._plan import plan_rows, query_text, swap_partners
from mrag_eval.retrieval.sources import source_for
from tests.worlds.small import LANGS, TOPICS


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )


def search(bench: Benchmark, docs: list[RagDoc] | None = None, **block: object) -> list[Retrieved]:
    retrieval = validated(Retrieval, {"kind": "bm25", **block}, "test")
    return retrieve(docs or bench.docs, retrieval, corpus=bench.corpus, siblings=bench.docs)


def langs_of(found: Retrieved) -> Counter[str]:
    return Counter(place.lang for place in found.ranking)


EXPECTED = {
    "qlang": lambda doc: {doc.query_lang},
    "en_only": lambda doc: {"en"},
    "qlang+en": lambda doc: {doc.query_lang, "en"},
    "rel_langs": lambda doc: {*doc.relevant_langs, "en"},
    "all": lambda doc: set(LANGS),
    "own": lambda doc: {doc.culture_lang},
    "own+en": lambda doc: {doc.culture_lang, "en"},
    "gold_lang": lambda doc: {doc.gold_doc_lang},
    "balanced": lambda doc: set(LANGS),
    "balanced_weighted": lambda doc: set(LANGS),
    "balanced_passages": lambda doc: set(LANGS),
}


@pytest.mark.parametrize("mode", EXPECTED)
def test_only_the_languages_of_the_mode_come_back(benchmark_: Benchmark, mode: str) -> None:
    # 15 places: as many as passages in the corpus, so that every language in scope can appear
    found = search(benchmark_, mode=mode, k=15)
    for doc, got in zip(benchmark_.docs, found, strict=True):
        wanted = EXPECTED[mode](doc)
        assert set(langs_of(got)) <= wanted
        # a lexical search returns passages that share a word with the query; its own language always does
        assert set(langs_of(got)) & {doc.query_lang} == wanted & {doc.query_lang}
        assert len(got.passages) <= 15
        assert [hit.rank for hit in got.passages] == list(range(1, len(got.passages) + 1))


def test_every_mode_of_the_table_is_tested_here() -> None:
    # a loop has no plan by row: tests/retrieval/agents; a system retrieves itself: tests/systems
    elsewhere = {"oracle", "trag", "crossrag", "translation", "coral", "system"}
    assert set(MODES) == {*EXPECTED, "no_ir", "given", "swap_docs", *elsewhere}


def test_no_ir_returns_nothing_and_needs_no_corpus(benchmark_: Benchmark) -> None:
    assert retrieve(benchmark_.docs, Retrieval(mode="no_ir")) == [Retrieved()] * 15


def test_balanced_takes_the_same_number_from_each_language(benchmark_: Benchmark) -> None:
    # identical queries in all five languages at once, so that every shard has hits
    docs = [replace(d, query=" ".join(TOPICS[d.group_id][lang][1] for lang in LANGS)) for d in benchmark_.docs]
    found = search(benchmark_, docs, mode="balanced", k=5)
    for got in found:
        assert langs_of(got) == dict.fromkeys(LANGS, 1)
        assert {hit.lang for hit in got.passages} == set(LANGS)


def test_swap_docs_gives_the_next_claimants_documents(benchmark_: Benchmark) -> None:
    ring = ("de", "ru", "zh")
    docs = [replace(d, extra={"claimant_langs": ring}) for d in benchmark_.docs]
    bench = replace(benchmark_, docs=docs)
    selected = source_for(Retrieval(mode="swap_docs"), bench).select(docs)
    # en and es are nobody's language here: control queries
    assert (len(selected.docs), len(selected.skipped)) == (9, 6)
    assert selected.why == "no sibling in another language"
    kept = selected.docs
    found = search(bench, kept, mode="swap_docs", k=2)
    following = {"de": "ru", "ru": "zh", "zh": "de"}
    for doc, got in zip(kept, found, strict=True):
        assert set(langs_of(got)) == {following[doc.query_lang]}
        assert got.passages[0].id == f"{doc.group_id}-{following[doc.query_lang]}"


def test_swap_docs_skips_languages_without_a_query_and_groups_of_one(benchmark_: Benchmark) -> None:
    de, ru = (next(d for d in benchmark_.docs if d.query_lang == lang) for lang in ("de", "ru"))
    de, ru = (replace(d, extra={"claimant_langs": ("de", "fr", "de", "ru")}) for d in (de, ru))
    assert swap_partners([de, ru]) == {de.id: ru, ru.id: de}
    assert swap_partners([de]) == {}
    ring = ("zh-Hans", "zh-Hant", "ja")
    three = [replace(de, id=lang, query_lang=lang, extra={"claimant_langs": ring}) for lang in ring]
    assert {row: partner.id for row, partner in swap_partners(three).items()} == {
        "zh-Hans": "zh-Hant",
        "zh-Hant": "ja",
        "ja": "zh-Hans",
    }
    with pytest.raises(DataError, match="no group_id"):
        swap_partners([replace(de, group_id=None)])


@pytest.mark.parametrize(
    ("mode", "field"),
    [
        ("own", "culture_lang"),
        ("own+en", "culture_lang"),
        ("gold_lang", "gold_doc_lang"),
        ("rel_langs", "relevant_langs"),
    ],
)
def test_a_row_that_lacks_a_field_of_the_mode_is_named(benchmark_: Benchmark, mode: str, field: str) -> None:
    broken = [*benchmark_.docs[:3], replace(benchmark_.docs[3], **{field: () if field.endswith("s") else None})]
    with pytest.raises(DataError, match=f"row '{broken[3].id}' has no {field}") as caught:
        search(benchmark_, broken, mode=mode)
    assert "choose another retrieval.mode" in str(caught.value)


def test_a_language_the_corpus_lacks_is_named_with_those_it_has(benchmark_: Benchmark) -> None:
    stranger = replace(benchmark_.docs[0], query_lang="ko")
    with pytest.raises(CorpusError, match=r"no Korean shard \(it holds: de, en, es, ru, zh\)"):
        search(benchmark_, [stranger], mode="qlang")


def test_an_empty_query_is_named(benchmark_: Benchmark) -> None:
    with pytest.raises(DataError, match="empty query"):
        search(benchmark_, [replace(benchmark_.docs[0], query="  ")], mode="all")


def test_languages_may_be_set_by_hand(benchmark_: Benchmark) -> None:
    for doc, got in zip(benchmark_.docs, search(benchmark_, mode="all", languages=["query", "zh"], k=15), strict=True):
        assert set(langs_of(got)) <= {doc.query_lang, "zh"}


def test_candidates_restrict_the_search_to_the_rows_documents(benchmark_: Benchmark) -> None:
    docs = [replace(d, extra={"candidates": [f"{d.group_id}-en", f"{d.group_id}-zh"]}) for d in benchmark_.docs]
    for doc, got in zip(docs, search(benchmark_, docs, mode="all", k=15, candidates="row"), strict=True):
        assert {place.id for place in got.ranking} <= set(doc.extra["candidates"])
        assert got.searchable == {"de": 0, "en": 1, "es": 0, "ru": 0, "zh": 1}
    (own,) = search(benchmark_, [replace(docs[0], query_lang="zh")], mode="qlang", k=15, candidates="row")
    assert own.searchable == {"zh": 1}
    with pytest.raises(DataError, match="names no candidate documents"):
        search(benchmark_, mode="all", candidates="row")


def test_lexical_scores_are_not_merged_across_languages(benchmark_: Benchmark) -> None:
    with pytest.raises(ConfigError, match="do not compare across languages"):
        search(benchmark_, mode="all", merge="score")


def test_options_are_part_of_the_query_by_default() -> None:
    doc = RagDoc("1", "Which?", "en", choices=("x", "y"))
    assert query_text(doc, Retrieval(mode="all")) == "Which?\nA. x\nB. y"
    assert query_text(doc, Retrieval(mode="all", query_text="question")) == "Which?"


def test_plans_say_all_languages_by_none() -> None:
    doc = RagDoc("1", "Which?", "zh_cn")
    assert plan_rows([doc], Retrieval(mode="all"))[0].languages is None
    assert plan_rows([doc], Retrieval(mode="qlang+en"))[0].languages == ("zh-Hans", "en")


def test_only_quota_modes_lack_a_single_ranking() -> None:
    assert {m for m in MODES if not Retrieval(mode=m).has_single_ranking} == {
        "balanced",
        "balanced_weighted",
        "balanced_passages",
    }
    assert not Retrieval(mode="all", merge="quota").has_single_ranking


# ------------------------------------------------------------------ given passages


def given_doc(row: str = "r") -> RagDoc:
    passages = tuple(
        GivenPassage(f"p{i}", "en", f"text {i}", is_gold=i in (2, 5), date=f"2024-06-0{i + 1}") for i in range(8)
    )
    return RagDoc(row, "Q?", "de", given_passages=passages)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"]),
        ({"subset": "gold"}, ["p2", "p5"]),
        ({"subset": "none"}, []),
        ({"subset": "distractors", "n": 0}, ["p2", "p5"]),
        ({"subset": "distractors", "n": 6}, ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"]),
    ],
)
def test_given_passages_keep_their_order(given: dict[str, object], kept: list[str]) -> None:
    block = validated(Retrieval, {"mode": "given", "given": given}, "test")
    hits = retrieve([given_doc()], block)[0].passages
    assert [hit.id for hit in hits] == kept
    assert [hit.is_gold for hit in hits] == [pid in ("p2", "p5") for pid in kept]


def test_distractors_are_drawn_by_row_and_seed() -> None:
    def drawn(row: str, seed: int) -> list[str]:
        block = validated(Retrieval, {"mode": "given", "given": {"subset": "distractors", "n": 3}, "seed": seed}, "t")
        return [hit.id for hit in retrieve([given_doc(row)], block)[0].passages]

    assert drawn("r", 0) == drawn("r", 0)
    assert len(drawn("r", 0)) == 5
    assert {"p2", "p5"} <= set(drawn("r", 0))
    assert len({tuple(drawn(f"r{i}", 0)) for i in range(20)}) > 3
    assert len({tuple(drawn("r", seed)) for seed in range(20)}) > 3


def test_given_without_passages_is_named() -> None:
    with pytest.raises(DataError, match="comes with no passages"):
        retrieve([RagDoc("r9", "Q?", "de")], Retrieval(mode="given"))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"mode": "given", "given": {"subset": "distractors"}}, "subset 'distractors' needs 'n'"),
        ({"mode": "all", "given": {"subset": "gold"}}, "'given' requires mode 'given'"),
        ({"mode": "no_ir", "languages": ["en"]}, "searches nothing"),
        ({"mode": "all", "languages": ["xx"]}, "unknown language 'xx'"),
        ({"mode": "all", "k": 0}, "greater than or equal to 1"),
        ({"mode": "all", "k": 5, "depth": 3}, "less than k = 5"),
        ({"mode": "all", "merge": "votes"}, "merge"),
    ],
)
def test_impossible_combinations_are_named(block: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        validated(Retrieval, block, "retrieval")
    assert "\n" not in caught.value.message
