"""Corpora in which one language dominates: the draw, its consequences, and impossible draws."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrag_eval.config import Retrieval
from mrag_eval.datasets import Benchmark, load_benchmark, validate_data
from mrag_eval.datasets._imbalance import Imbalance, kept_versions
from mrag_eval.platform import ConfigError, CorpusError, DataError
from mrag_eval.retrieval import retrieve
from tests.datasets.test_xquad import WORDS, article


def kept(share: float, n: int = 4_000, seed: int = 5, languages: tuple[str, ...] = ("ar", "en")) -> list[str]:
    names = [str(i) for i in range(n)]
    return kept_versions(names, [languages] * n, Imbalance(keep_english=share), seed)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_english_is_kept_with_the_probability_given(share: float) -> None:
    found = np.mean([code == "en" for code in kept(share)])
    # four standard deviations of a proportion of 4,000
    assert abs(found - share) <= 4 * np.sqrt(share * (1 - share) / 4_000)


def test_the_draw_is_the_documented_one_and_grows_with_the_probability() -> None:
    rng = np.random.default_rng(5)
    u, v = rng.random(300), rng.random(300)
    others = ["ar", "de", "zh"]
    expected = ["en" if a < 0.25 else others[int(b * 3)] for a, b in zip(u, v, strict=True)]
    assert kept(0.25, 300, languages=("en", "zh", "ar", "de")) == expected
    quarter, half = kept(0.25), kept(0.5)
    assert all(more == "en" for less, more in zip(quarter, half, strict=True) if less == "en")
    assert kept(0.25, seed=6) != quarter
    own = kept_versions([str(i) for i in range(4_000)], [("ar", "en")] * 4_000, Imbalance(keep_english=0.25, seed=6), 5)
    assert own == kept(0.25, seed=6)


# ---------------------------------------------------------------------------------------------------------- XQuAD


@pytest.fixture
def xquad(tmp_path: Path) -> Path:
    for code in WORDS:
        text = json.dumps(article(code, paragraphs=60, questions=2))
        (tmp_path / f"xquad.{code}.json").write_text(text, encoding="utf-8")
    return tmp_path


def load(folder: Path, **block: Any) -> Benchmark:
    return load_benchmark({"benchmark": "xquad", "path": str(folder), "languages": ["ar", "en"], **block})


def test_xquad_keeps_its_questions_and_draws_its_paragraphs(xquad: Path) -> None:
    plain, found = load(xquad), load(xquad, imbalance={"keep_english": 0.25})
    languages = [p.lang for p in found.corpus or ()]
    assert languages == kept(0.25, 60, seed=0)
    assert [(d.id, d.query, d.query_lang) for d in found.docs] == [(d.id, d.query, d.query_lang) for d in plain.docs]
    by_id = {p.id: p for p in found.corpus or ()}
    for doc in found.docs:
        passage = by_id[doc.relevant_ids[0]]
        assert doc.gold_doc_lang == passage.lang
        assert passage.text.startswith(WORDS[passage.lang])
    assert found.source["imbalance"] == {"seed": 0, "keep_english": 0.25}
    counts = Counter(languages)
    expected = f"60 documents, in English with probability 0.25: {counts['ar']} ar, {counts['en']} en"
    assert expected in found.notes


@pytest.mark.parametrize(("share", "only"), [(0, "ar"), (1, "en")])
def test_at_zero_and_one_the_corpus_has_one_language(xquad: Path, share: int, only: str) -> None:
    found = load(xquad, imbalance={"keep_english": share})
    assert {p.lang for p in found.corpus or ()} == {only}
    assert {d.gold_doc_lang for d in found.docs} == {only}
    assert {d.query_lang for d in found.docs} == {"ar", "en"}
    for mode in ("all", "gold_lang", "balanced", "balanced_weighted"):
        rows = retrieve(found.docs, Retrieval(mode=mode, k=5, kind="bm25"), corpus=found.corpus)
        # with quotas for one language, it gets all places
        assert all(len(row.ranking) == 5 for row, d in zip(rows, found.docs, strict=True) if d.query_lang == only)
        assert {place.lang for row in rows for place in row.ranking} == {only}
    with pytest.raises(CorpusError, match=f"no .* shard .it holds: {only}."):
        retrieve(found.docs, Retrieval(mode="qlang", kind="bm25"), corpus=found.corpus)


def test_weighted_quotas_go_by_the_draw(xquad: Path) -> None:
    found = load(xquad, imbalance={"keep_english": 0.25, "seed": 3})
    counts = Counter(p.lang for p in found.corpus or ())
    words = " ".join(WORDS.values())
    docs = [replace(d, query=f"{words} {d.query}") for d in found.docs]
    for mode, english in (("balanced", 10), ("balanced_weighted", round(20 * counts["en"] / 60))):
        block = Retrieval(mode=mode, k=20, kind="bm25", query_text="question")
        rows = retrieve(docs, block, corpus=found.corpus)
        assert {Counter(place.lang for place in row.ranking)["en"] for row in rows} == {english}
    assert 20 * counts["en"] / 60 != pytest.approx(10, abs=3)


def test_xquad_needs_english_and_another_language(xquad: Path) -> None:
    for languages in (["ar", "de"], ["en"]):
        with pytest.raises(ConfigError, match="imbalance needs English and another language"):
            load(xquad, languages=languages, imbalance={"keep_english": 0.5})


# ------------------------------------------------------------------------------------------------------ your own files

DOCUMENTS = [
    {"id": "e1", "lang": "en", "text": "The mill stands by the brook.", "title": "Mill", "parallel_id": "mill"},
    {"id": "a1", "lang": "ar", "text": "تقف الطاحونة قرب الجدول.", "title": "الطاحونة", "parallel_id": "mill"},
    {"id": "e2a", "lang": "en", "text": "The bridge is old.", "doc_id": "e2", "parallel_id": "bridge"},
    {"id": "e2b", "lang": "en", "text": "It has three arches.", "doc_id": "e2", "parallel_id": "bridge"},
    {"id": "a2", "lang": "ar", "text": "الجسر قديم وله ثلاث أقواس.", "doc_id": "a2", "parallel_id": "bridge"},
]
QUESTIONS = [
    {"id": "q1", "query": "Where is the mill?", "lang": "en", "relevant_ids": ["a1"], "gold_doc_lang": "ar"},
    {"id": "q2", "query": "How many arches?", "lang": "en", "relevant_ids": ["e2b"], "gold_doc_lang": "en"},
    {"id": "q3", "query": "Which is older?", "lang": "en", "relevant_ids": ["e1", "e2"]},
    {"id": "q4", "query": "Why?", "lang": "en", "gold_doc_lang": "en"},
]


def own(folder: Path, documents: list[dict[str, Any]], **block: Any) -> Benchmark:
    for name, rows in (("questions", QUESTIONS), ("corpus", documents)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    files = {"path": str(folder / "questions.jsonl"), "corpus": str(folder / "corpus.jsonl")}
    return load_benchmark({"benchmark": "jsonl", **files, **block})


def test_the_relevant_documents_are_those_of_the_version_that_is_kept(tmp_path: Path) -> None:
    english = own(tmp_path, DOCUMENTS, imbalance={"keep_english": 1})
    assert [p.id for p in english.corpus or ()] == ["e1", "e2a", "e2b"]
    assert [d.relevant_ids for d in english.docs] == [("e1",), ("e2b",), ("e1", "e2"), ()]
    arabic = own(tmp_path, DOCUMENTS, imbalance={"keep_english": 0})
    assert [p.id for p in arabic.corpus or ()] == ["a1", "a2"]
    assert [d.relevant_ids for d in arabic.docs] == [("a1",), ("a2",), ("a1", "a2"), ()]
    assert [d.gold_doc_lang for d in arabic.docs] == ["ar", "ar", "ar", None]
    assert arabic.notes[-1] == "2 documents, in English with probability 0: 2 ar"
    # without a draw the order of the file is kept
    assert [d.relevant_ids for d in own(tmp_path, DOCUMENTS).docs] == [("a1",), ("e2b",), ("e1", "e2"), ()]


def test_documents_kept_in_two_languages_leave_a_question_without_a_gold_language(tmp_path: Path) -> None:
    seed = next(s for s in range(99) if len(set(kept(0.5, 2, seed=s))) == 2)
    mixed = own(tmp_path, DOCUMENTS, imbalance={"keep_english": 0.5, "seed": seed})
    assert mixed.docs[2].gold_doc_lang is None
    block = Retrieval(mode="gold_lang", kind="bm25")
    with pytest.raises(DataError, match=r"row 'q3' has relevant documents that .* kept in ar and en") as error:
        retrieve(mixed.docs[:3], block, corpus=mixed.corpus)
    # gold_doc_lang in the file would be overwritten by the draw
    assert str(error.value.next_step).startswith("take the row out of the questions' file")
    assert len(retrieve(mixed.docs[:2], block, corpus=mixed.corpus)) == 2
    assert len(retrieve(mixed.docs, Retrieval(mode="all", kind="bm25"), corpus=mixed.corpus)) == 4


def test_a_question_without_relevant_documents_gives_the_next_step(tmp_path: Path) -> None:
    drawn = own(tmp_path, DOCUMENTS, imbalance={"keep_english": 1})
    assert drawn.docs[3].extra["kept_langs"] == []
    with pytest.raises(DataError, match="row 'q4' names no relevant document") as error:
        retrieve(drawn.docs, Retrieval(mode="gold_lang", kind="bm25"), corpus=drawn.corpus)
    assert str(error.value.next_step).startswith("add relevant_ids to the row")


def test_a_number_instead_of_a_block_is_refused_with_the_expected_keys() -> None:
    with pytest.raises(ConfigError) as error:
        validate_data({"benchmark": "xquad", "imbalance": 0.5})
    expected = "expected keys and values (keep_english, seed), got float (got 0.5)"
    assert error.value.message == f"data (benchmark 'xquad'): imbalance: {expected}"


def test_versions_of_one_passage_are_parallel_texts(tmp_path: Path) -> None:
    assert list(own(tmp_path, DOCUMENTS).parallel) == [
        {"en": "The mill stands by the brook.", "ar": "تقف الطاحونة قرب الجدول."},
        {"en": "Mill", "ar": "الطاحونة"},
    ]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([*DOCUMENTS, {"id": "x", "lang": "en", "text": "Alone."}], "document 'x' has no 'parallel_id'"),
        (
            [*DOCUMENTS, {"id": "x", "lang": "en", "text": "A.", "parallel_id": "y"}],
            "document 'y' exists only in en",
        ),
        (
            [*DOCUMENTS, {"id": "x", "lang": "ar", "text": "A.", "parallel_id": "y"}],
            "document 'y' exists only in ar",
        ),
    ],
)
def test_a_document_with_one_version_is_named(tmp_path: Path, documents: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        own(tmp_path, documents, imbalance={"keep_english": 0.5})


@pytest.mark.parametrize("benchmark", ["click", "demo"])
def test_a_benchmark_whose_documents_have_one_version_says_so(benchmark: str) -> None:
    with pytest.raises(ConfigError, match="one version of each"):
        validate_data({"benchmark": benchmark, "imbalance": {"keep_english": 0.5}})


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"keep_english": 1.5}, "keep_english"),
        ({"keep_englsh": 0.5}, "keep_englsh"),
        ({}, "keep_english"),
        ({"keep_english": 0.5, "seed": -1}, "seed"),
    ],
)
def test_a_block_that_cannot_be_is_refused(block: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_data({"benchmark": "xquad", "imbalance": block})
