"""The modes that translate, on a corpus of five languages: what is searched, returned and shown."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval.config import Retrieval, validated
from mrag_eval.core import Failure, GivenPassage, Passage, RagDoc, Retrieved, TextKind, base_language
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.models import Translation, Translator, write_table
from mrag_eval.models.translate._translator import OUTCOMES
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval._pipeline import translator_for
from mrag_eval.retrievers import build_index, load_index
from tests.worlds.small import BASE, LANGS, TOPICS, ScriptedLM, write_task


@pytest.fixture
def benchmark_(world: Path) -> Benchmark:
    return load_benchmark(
        {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Every question and document of the small world, in every language."""
    parallel = [{lang: versions[lang][part] for lang in LANGS} for versions in TOPICS.values() for part in (0, 1)]
    write_table(parallel, tmp_path / "table.jsonl")
    return tmp_path / "table.jsonl"


def search(bench: Benchmark, table: Path, docs: list[RagDoc] | None = None, **block: object) -> list[Retrieved]:
    translator = {"backend": "table", "path": str(table), "strict": True}
    retrieval = validated(Retrieval, {"kind": "bm25", "translator": translator, **block}, "test")
    return retrieve(docs or bench.docs, retrieval, corpus=bench.corpus, siblings=bench.docs)


def langs_of(found: Retrieved) -> set[str]:
    return {place.lang for place in found.ranking}


# ------------------------------------------------------------------------------------------------- the three modes


def test_trag_searches_english_with_the_english_question(benchmark_: Benchmark, table: Path) -> None:
    found = search(benchmark_, table, mode="trag", k=15)
    for doc, got in zip(benchmark_.docs, found, strict=True):
        assert langs_of(got) == {"en"}
        assert got.queries == (TOPICS[str(doc.group_id)]["en"][1],)
        # a Russian or Chinese question shares no word with the English document, but its translation does
        assert got.passages[0].id == f"{doc.group_id}-en"


def test_crossrag_searches_all_with_the_original_and_shows_english(benchmark_: Benchmark, table: Path) -> None:
    found = search(benchmark_, table, mode="crossrag", k=15)
    plain = search(benchmark_, table, mode="all", k=15)
    seen = Counter(lang for got in found for lang in langs_of(got))
    assert set(seen) == set(LANGS)
    for got, same in zip(found, plain, strict=True):
        assert got.ranking == same.ranking
        assert got.queries == ()
        for hit, original in zip(got.passages, same.passages, strict=True):
            topic, lang = hit.id.rsplit("-", 1)
            assert (hit.text, hit.lang) == (TOPICS[topic]["en"][0], "en")
            assert (hit.id, hit.score, hit.rank) == (original.id, original.score, original.rank)
            if lang == "en":
                assert (hit.original_text, hit.original_lang) == (None, None)
            else:
                assert (hit.original_text, hit.original_lang) == (original.text, lang)


def test_translation_searches_all_languages_with_every_version(benchmark_: Benchmark, table: Path) -> None:
    found = search(benchmark_, table, mode="translation", k=15)
    for doc, got in zip(benchmark_.docs, found, strict=True):
        versions = TOPICS[str(doc.group_id)]
        assert got.queries[0] == doc.query
        assert set(got.queries) == {versions[lang][1] for lang in LANGS}
        assert langs_of(got) == set(LANGS)
        # every version finds the document in its own language; the original alone does not
        wanted = {f"{doc.group_id}-{lang}" for lang in LANGS}
        assert wanted <= {place.id for place in got.ranking}
        assert got.passages[0].id in wanted
    direct = search(benchmark_, table, mode="all", k=15)
    missed = [doc.id for doc, got in zip(benchmark_.docs, direct, strict=True) if "zh" not in langs_of(got)]
    assert len(missed) == 12  # no word of the other languages is in a Chinese document


# --------------------------------------------------------------------------------------------- merging the versions


class Letters:
    """Vectors that a test can predict: the counts of four words."""

    name, revision, dim, spec = "letters", "1", 4, None

    def embed_queries(self, texts: Any) -> Any:
        return np.array([[text.split().count(word) for word in "abcd"] for text in texts], dtype=np.float32)

    embed_passages = embed_queries


@pytest.fixture
def dense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """A dense index over five languages, opened as ``retrieval.corpus``; every search of a shard is recorded."""
    from mrag_eval.retrievers.shards._faiss_shard import FaissShard

    texts = {"en": ["a", "a a", "d"], "de": ["b", "c"], "ru": ["c c c", "d"], "es": ["b b", "a"], "zh": ["d d"]}
    corpus = [Passage(f"{lang}{i}", lang, text) for lang, mine in texts.items() for i, text in enumerate(mine)]
    path = tmp_path / "dense"
    embedder: Any = Letters()
    build_index(corpus, path, embedder=embedder, progress=False)
    opened = load_index(path, embedder=embedder)
    monkeypatch.setattr("mrag_eval.retrieval.sources._index.open_index", lambda *_: opened)
    calls: list[list[int]] = []
    original = FaissShard.search

    def counted(self: FaissShard, vectors: Any, *rest: Any) -> Any:
        calls.append([self.first_row, len(vectors)])
        return original(self, vectors, *rest)

    monkeypatch.setattr(FaissShard, "search", counted)
    return calls


@pytest.fixture
def words(tmp_path: Path) -> dict[str, Any]:
    """``a`` in English is ``b`` in German and ``c`` in Russian; the other languages have no version."""
    write_table([{"en": "a", "de": "b", "ru": "c"}], tmp_path / "words.jsonl")
    return {"backend": "table", "path": str(tmp_path / "words.jsonl")}


def test_versions_merge_by_inner_product_and_a_duplicate_keeps_its_higher_score(
    dense: list[list[int]], words: dict[str, Any]
) -> None:
    block = validated(Retrieval, {"mode": "translation", "k": 4, "translator": words}, "test")
    (got,) = retrieve([RagDoc("q", "a", "en")], block, use_cache=False)
    # Inner products by hand. With a: en1 2, en0 1, es1 1, the others 0. With b: es0 2, de0 1. With c: ru0 3, de1 1.
    # Each passage counts with the best of the three; the question decides which of equal languages is first.
    found = [(hit.id, hit.score) for hit in got.passages]
    assert (found[0], {*found[1:3]}) == (("ru0", 3.0), {("en1", 2.0), ("es0", 2.0)})
    assert found[3] in [("en0", 1.0), ("es1", 1.0), ("de0", 1.0), ("de1", 1.0)]
    assert got.queries == ("a", "b", "c")  # a text without a translation is searched for once, in the original


@pytest.mark.parametrize(
    "mode", ["all", "balanced", "balanced_weighted", "translation", "crossrag", "zscore", "rank_norm", "rrf"]
)
def test_no_policy_searches_a_shard_twice(dense: list[list[int]], words: dict[str, Any], mode: str) -> None:
    preset = {"mode": "all", "merge": mode} if mode in ("zscore", "rank_norm", "rrf") else {"mode": mode}
    block = validated(Retrieval, {**preset, "k": 3, "depth": 8, "translator": words}, "test")
    docs = [RagDoc(f"q{i}", "a" + " a" * i, "en") for i in range(7)]
    retrieve(docs, block, use_cache=False)
    shards = [first_row for first_row, _ in dense]
    assert len(shards) == len(set(shards)) == 5
    # one of the seven questions has two further versions
    assert {queries for _, queries in dense} == {9 if mode == "translation" else 7}


def test_gold_language_searches_only_the_shards_of_its_rows(dense: list[list[int]]) -> None:
    docs = [RagDoc(f"q{i}", "a" + " a" * i, "en", gold_doc_lang=("ru", "de")[i % 2]) for i in range(5)]
    retrieve(docs, Retrieval(mode="gold_lang", k=2), use_cache=False)
    assert sorted(queries for _, queries in dense) == [2, 3]


# -------------------------------------------------------------------------------------------------- the free choices


def test_choices_may_be_set_by_hand(benchmark_: Benchmark, table: Path) -> None:
    found = search(benchmark_, table, mode="qlang", query_translation="each", document_translation="query", k=15)
    for doc, got in zip(benchmark_.docs, found, strict=True):
        assert langs_of(got) == {doc.query_lang}
        assert got.queries == (doc.query,)  # the scope has one language, and it is the question's
        assert all(hit.original_lang is None for hit in got.passages)
    found = search(benchmark_, table, mode="balanced", query_translation="each", document_translation="query", k=5)
    for doc, got in zip(benchmark_.docs, found, strict=True):
        assert Counter(hit.original_lang or hit.lang for hit in got.passages) == dict.fromkeys(LANGS, 1)
        assert {hit.lang for hit in got.passages} == {doc.query_lang}
    # a mode's translation can be switched off
    (got,) = search(benchmark_, table, [benchmark_.docs[3]], mode="trag", query_translation="none", k=15)
    assert got == search(benchmark_, table, [benchmark_.docs[3]], mode="en_only", k=15)[0]


def test_options_are_translated_one_by_one(benchmark_: Benchmark, tmp_path: Path) -> None:
    parallel = [
        {"de": "Was ist das?", "en": "What is this?"},
        {"de": "Hund", "en": "dog"},
        {"de": "Katze", "en": "cat"},
    ]
    write_table(parallel, tmp_path / "options.jsonl")
    doc = RagDoc("q", "Was ist das?", "de", choices=("Hund", "Katze"), gold_choice=0)
    for choice, expected in (("question+options", "What is this?\nA. dog\nB. cat"), ("question", "What is this?")):
        (got,) = search(benchmark_, tmp_path / "options.jsonl", [doc], mode="trag", query_text=choice)
        assert got.queries == (expected,)


def test_titles_are_translated_separately_and_come_first_once(tmp_path: Path) -> None:
    parallel = [{"de": "Der Turm ist hoch.", "en": "The tower is high."}, {"de": "Leuchtturm", "en": "Lighthouse"}]
    write_table(parallel, tmp_path / "titles.jsonl")
    corpus = [
        Passage("in-front", "de", "Leuchtturm. Der Turm ist hoch.", "Leuchtturm"),
        Passage("apart", "de", "Der Turm ist hoch.", "Leuchtturm"),
        Passage("missing", "de", "Der Turm ist niedrig.", "Leuchtturm"),
    ]
    bench = Benchmark("x", [RagDoc("q", "Turm", "de")], corpus)
    translator = {"backend": "table", "path": str(tmp_path / "titles.jsonl")}
    block = validated(Retrieval, {"mode": "crossrag", "kind": "bm25", "translator": translator}, "test")
    (got,) = retrieve(bench.docs, block, corpus=bench.corpus)
    by_id = {hit.id: hit for hit in got.passages}
    assert (by_id["in-front"].title, by_id["in-front"].text) == ("Lighthouse", "Lighthouse. The tower is high.")
    assert (by_id["apart"].title, by_id["apart"].text) == ("Lighthouse", "The tower is high.")
    missing = by_id["missing"]
    assert (missing.lang, missing.title, missing.text) == ("de", "Leuchtturm", "Der Turm ist niedrig.")
    assert missing.original_text is None
    assert got.failures == (Failure("translation", "table titles.jsonl", "missing", texts="documents"),)


def broken(table: Path, gone: list[str]) -> dict[str, str]:
    """Return a translator without the translations of these texts."""
    lines = [line for line in table.read_text("utf-8").splitlines() if json.loads(line)["source"] not in gone]
    path = table.with_name("broken.jsonl")
    path.write_text("\n".join(lines), "utf-8")
    return {"backend": "table", "path": str(path)}


@pytest.mark.parametrize("mode", ["trag", "translation"])
def test_a_row_whose_question_has_no_translation_has_a_failure(benchmark_: Benchmark, table: Path, mode: str) -> None:
    lost = next(doc for doc in benchmark_.docs if doc.id == "q-ferry-ru")
    translator = broken(table, [lost.query])
    block = validated(Retrieval, {"kind": "bm25", "translator": translator, "mode": mode}, "test")
    found = retrieve(benchmark_.docs, block, corpus=benchmark_.corpus, siblings=benchmark_.docs)
    failure = Failure("translation", "table broken.jsonl", "missing", texts="queries")
    for doc, got in zip(benchmark_.docs, found, strict=True):
        # four languages lack a version: one failure
        assert got.failures == ((failure,) if doc is lost else ())
        assert (got.queries == (lost.query,)) is (doc is lost)


def test_a_question_of_which_an_option_has_no_translation_is_not_searched_in_part(
    benchmark_: Benchmark, tmp_path: Path
) -> None:
    write_table([{"de": "Was ist das?", "en": "What is this?"}, {"de": "Hund", "en": "dog"}], tmp_path / "some.jsonl")
    doc = RagDoc("q", "Was ist das?", "de", choices=("Hund", "Katze"), gold_choice=0)
    translator = {"backend": "table", "path": str(tmp_path / "some.jsonl")}
    retrieval = {"kind": "bm25", "translator": translator, "query_text": "question+options"}
    for mode in ("trag", "translation"):
        block = validated(Retrieval, {**retrieval, "mode": mode}, "test")
        (got,) = retrieve([doc], block, corpus=benchmark_.corpus, siblings=[doc])
        assert got.queries == ("Was ist das?\nA. Hund\nB. Katze",)
        assert [failure.step for failure in got.failures] == ["translation of queries"]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_passage_is_shown_in_translation_or_its_row_has_a_failure(outcome: str) -> None:
    class Scripted(Translator):
        def __init__(self) -> None:
            self.counts = {}

        def translate(self, texts: Any, sources: Any, targets: Any, *, kind: TextKind = "queries") -> list[Translation]:
            there = outcome in ("translated", "cached")
            return [
                Translation(f"[{text}]" if there else text, goal if there else source, outcome, by="s", texts=kind)
                for text, source, goal in zip(texts, sources, targets, strict=True)
            ]

    given = (
        GivenPassage("a", "de", "schlecht", title="Titel", shown_in="en"),
        GivenPassage("b", "de", "schlecht", shown_in="en"),
        GivenPassage("c", "de", "auf Deutsch"),
    )
    docs = [RagDoc("q", "?", "de", given_passages=given), RagDoc("r", "?", "de", given_passages=given[2:])]
    block = validated(Retrieval, {"mode": "given"}, "test")
    first, second = retrieve(docs, block, translator=Scripted())
    assert second.failures == ()
    assert [hit.text for hit in second.passages] == ["auf Deutsch"]
    for hit, passage in zip(first.passages, given, strict=True):
        if outcome in ("translated", "cached") and passage.shown_in:
            assert (hit.lang, hit.text, hit.original_text, hit.original_lang) == ("en", "[schlecht]", "schlecht", "de")
        else:
            assert (hit.lang, hit.text, hit.title) == (passage.lang, passage.text, passage.title)
            assert (hit.original_text, hit.original_lang) == (None, None)
    regular = outcome in ("translated", "cached", "same_language")
    assert first.failures == (() if regular else (Failure("translation", "s", outcome, texts="documents"),))


def test_a_title_that_stays_as_it_is_may_be_a_name(benchmark_: Benchmark) -> None:
    class Scripted(Translator):
        def __init__(self) -> None:
            self.counts = {}

        def translate(self, texts: Any, sources: Any, targets: Any, *, kind: TextKind = "queries") -> list[Translation]:
            made = {
                "Der Turm ist hoch.": ("塔很高。", "translated"),
                "Leuchtturm Varn": ("Leuchtturm Varn", self.title),
            }
            return [Translation(made[text][0], "zh", made[text][1], by="s", texts=kind) for text in texts]

    corpus = [Passage("p", "de", "Der Turm ist hoch.", "Leuchtturm Varn")]
    block = validated(Retrieval, {"mode": "all", "kind": "bm25", "document_translation": "query"}, "test")
    translator = Scripted()
    for translator.title, failed in (("wrong_language", False), ("failed", True), ("missing", True)):  # type: ignore[attr-defined]
        (got,) = retrieve([RagDoc("q", "Turm", "zh")], block, corpus=corpus, translator=translator)
        (hit,) = got.passages
        assert bool(got.failures) is failed
        assert (hit.title, hit.text) == ("Leuchtturm Varn", "Der Turm ist hoch." if failed else "塔很高。")
        assert (hit.original_text is None) is failed


def test_given_passages_can_be_translated(benchmark_: Benchmark, table: Path) -> None:
    versions = TOPICS["ferry"]
    given = (GivenPassage("p", "ru", versions["ru"][0], is_gold=True), GivenPassage("r", "de", versions["de"][0]))
    doc = RagDoc("q", versions["es"][1], "es", given_passages=given)
    (got,) = search(benchmark_, table, [doc], mode="given", document_translation="query")
    assert [(h.text, h.original_lang, h.is_gold) for h in got.passages] == [
        (versions["es"][0], "ru", True),
        (versions["es"][0], "de", False),
    ]


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"mode": "no_ir", "query_translation": "en"}, "'query_translation' cannot be combined with mode"),
        ({"mode": "given", "query_translation": "each"}, "'query_translation' cannot be combined with mode"),
        ({"mode": "no_ir", "document_translation": "en"}, "'document_translation' cannot be combined with mode"),
        ({"mode": "all", "query_translation": "de"}, "query_translation: input should be"),
        ({"mode": "all", "merge": "rank_norm", "candidates": "row"}, "goes by the size of each language"),
        ({"mode": "all", "translator": {"backend": "table", "modle": "x"}}, "unknown key 'modle'"),
    ],
)
def test_a_block_that_cannot_be_is_refused(block: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validated(Retrieval, block, "retrieval")


@pytest.mark.parametrize(
    ("block", "what"),
    [({"mode": "trag"}, "mode 'trag'"), ({"mode": "all", "query_translation": "each"}, "retrieval.query_translation")],
)
def test_without_a_translator_one_line_says_so_and_how_to_name_one(block: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        translator_for(Retrieval(**block), [RagDoc("q", "wo?", "de")])
    assert "needs a translator, and none is configured" in caught.value.message
    assert "\n" not in caught.value.message
    assert translator_for(Retrieval(mode="all"), []) is None


def test_questions_in_english_need_no_translator_into_english() -> None:
    english, german = RagDoc("q", "where?", "en"), RagDoc("q", "wo?", "de")
    assert translator_for(Retrieval(mode="trag"), [english]) is None
    for block, docs in (({"mode": "trag"}, [english, german]), ({"mode": "crossrag"}, [english])):
        with pytest.raises(ConfigError, match="translator"):
            translator_for(Retrieval(**block), docs)


# ------------------------------------------------------------------------------------------------ through the harness


def run(folder: Path, name: str) -> tuple[dict[str, Any], ScriptedLM]:
    model = ScriptedLM(lambda prompt: "1841")
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    results = lm_eval.simple_evaluate(model=model, tasks=[name], task_manager=manager, log_samples=True)
    assert results is not None
    return results, model


def test_the_model_gets_the_original_question_and_the_results_say_who_translated(tasks: Path, table: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    translator = {"backend": "table", "path": str(table)}
    retrieval = {"k": 3, "kind": "bm25", "translator": translator}
    write_task(tasks, "t", **BASE, data=data, retrieval={**retrieval, "mode": "trag", "document_translation": "query"})
    results, model = run(tasks, "t")
    samples = {sample["doc"]["id"]: sample["doc"] for sample in results["samples"]["t"]}
    for topic, versions in TOPICS.items():
        sample = samples[f"q-{topic}-ru"]
        assert sample["searched_with"] == [versions["en"][1]]
        assert sample["passages"][0]["original_text"] == versions["en"][0]
        assert sample["passages"][0]["original_lang"] == "en"
        (prompt,) = [p for p in model.prompts if versions["ru"][1] in p]
        assert versions["ru"][0] in prompt
        assert versions["en"][1] not in prompt
    # 15 questions: 3 English; 3 documents shown in 5 languages, the original among them
    assert results["configs"]["t"]["measurement"]["instrument"]["translator"] == {
        "backend": "table",
        "sha256": hashlib.sha256(table.read_bytes()).hexdigest(),
        "check_language": True,
    }
    assert results["configs"]["t"]["scores"]["translation"] == {
        "translator": "table table.jsonl",
        "counts": {
            "queries": {"translated": 12, "same_language": 3},
            "documents": {"translated": 12, "same_language": 3},
        },
    }
    json.dumps(results["configs"]["t"], default=str)


def test_rows_without_a_translation_are_unscored_with_the_reason(tasks: Path, table: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    retrieval = {"k": 1, "kind": "bm25", "mode": "crossrag", "translator": broken(table, [TOPICS["ferry"]["ru"][0]])}
    write_task(tasks, "t", **BASE, data=data, retrieval=retrieval)
    results, _ = run(tasks, "t")
    reason = "translation of documents failed (missing)"
    unscored = results["configs"]["t"]["scores"]["unscored"]
    ranked = {name for name in unscored if name.startswith(("hit", "mrr", "ndcg", "recall"))}
    # the search did not need the translation
    assert not ranked
    assert all(unscored[name] == {reason: 1} for name in unscored)
    assert unscored
    (shown,) = [s["doc"]["passages"][0] for s in results["samples"]["t"] if s["doc"]["id"] == "q-ferry-ru"]
    assert (shown["lang"], shown["text"]) == ("ru", TOPICS["ferry"]["ru"][0])
    assert "original_lang" not in shown


def test_a_task_that_needs_a_translator_fails_before_anything_runs(tasks: Path) -> None:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    write_task(tasks, "t", **BASE, data=data, retrieval={"mode": "crossrag", "k": 3, "kind": "bm25"})
    with pytest.raises(ConfigError, match="task t: mode 'crossrag' needs a translator"):
        run(tasks, "t")


def test_a_search_with_another_translation_is_another_search(benchmark_: Benchmark, tmp_path: Path) -> None:
    doc = next(d for d in benchmark_.docs if d.id == "q-ferry-zh")
    found = []
    for topic in ("ferry", "bakery"):
        write_table([{"zh": doc.query, "en": TOPICS[topic]["en"][1]}], tmp_path / f"{topic}.jsonl")
        (got,) = search(benchmark_, tmp_path / f"{topic}.jsonl", [doc], mode="trag", k=1)
        found.append(got.passages[0].id)
    assert found == ["ferry-en", "bakery-en"]


def test_scripts_of_a_language_are_not_translated_into_each_other(benchmark_: Benchmark, tmp_path: Path) -> None:
    corpus = [replace(p, lang="zh-Hant") if base_language(p.lang) == "zh" else p for p in benchmark_.corpus or ()]
    doc = replace(next(d for d in benchmark_.docs if d.id == "q-ferry-zh"), query_lang="zh-Hans")
    write_table([{"zh": doc.query, "en": "ferry"}], tmp_path / "one.jsonl")
    translator = {"backend": "table", "path": str(tmp_path / "one.jsonl")}
    block = validated(Retrieval, {"mode": "translation", "kind": "bm25", "translator": translator}, "test")
    (got,) = retrieve([doc], block, corpus=corpus)
    assert got.queries == (doc.query, "ferry")
