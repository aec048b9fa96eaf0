"""Gold passages as a mode, pages of different Wikipedias kept apart, and the model that knows the answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrag_eval.config import Retrieval
from mrag_eval.core import GivenPassage, Passage, RagDoc, Ranked, Scored, is_relevant
from mrag_eval.datasets import Benchmark, load_benchmark
from mrag_eval.platform import DataError, MragError
from mrag_eval.retrieval import retrieve
from mrag_eval.retrieval.sources import source_for
from mrag_eval.retrievers import build_index, read_corpus
from mrag_eval.scoring import row_record, score_rows
from tests.task.test_hook import run
from tests.worlds.mkqa import PAGES, page_id, write_all
from tests.worlds.small import ScriptedLM


@pytest.fixture(scope="module")
def wikipedia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hand-written MKQA files and a lexical index of the pages, two passages per page."""
    folder = write_all(tmp_path_factory.mktemp("mkqa"))
    build_index(read_corpus(folder / "pages.jsonl"), folder / "index", kind="bm25", chunker={"method": "paragraphs"})
    return folder


def docs(folder: Path, language: str) -> list[RagDoc]:
    files = {"path": str(folder / "mkqa.jsonl"), "kilt": str(folder / "nq-train-kilt.jsonl")}
    return load_benchmark({"benchmark": "mkqa", "language": language, **files}).docs


@pytest.mark.parametrize("language", ["en", "fr", "ko", "ja"])
def test_the_pages_that_kilt_names_are_shown_in_every_language_of_the_question(language: str, wikipedia: Path) -> None:
    rows = docs(wikipedia, language)
    retrieval = Retrieval(mode="oracle", k=2, depth=3, corpus=str(wikipedia / "index"))
    for number, (doc, found) in enumerate(zip(rows, retrieve(rows, retrieval), strict=True)):
        # both passages of the English page, although a lexical search across two scripts finds neither
        assert [(hit.doc_id, hit.lang) for hit in found.passages] == [(page_id(number), "en")] * 2
        assert {hit.text for hit in found.passages} >= {
            f"{hit.title}. " + PAGES["en"][1].format(town=hit.title.split()[0]) for hit in found.passages[:1]
        }
        assert len(found.ranking) == 2
        (scores,) = score_rows([Scored(doc, "", found.ranking)], ["recall@2", "hit@1"], searched=True)
        assert scores.values == {"recall@2": 1.0, "hit@1": 1.0}


def test_k_bounds_the_gold_passages(wikipedia: Path) -> None:
    rows = docs(wikipedia, "ko")[:2]
    found = retrieve(rows, Retrieval(mode="oracle", k=1, corpus=str(wikipedia / "index")))
    assert [len(row.passages) for row in found] == [1, 1]


def test_xquad_s_paragraph(test_data: Path) -> None:
    benchmark = load_benchmark({"benchmark": "xquad", "path": str(test_data / "xquad")})
    rows = benchmark.docs[:20]
    found = retrieve(rows, Retrieval(mode="oracle", k=5, kind="bm25"), corpus=benchmark.corpus)
    for doc, row in zip(rows, found, strict=True):
        (hit,) = row.passages
        assert (hit.id, hit.lang) == (doc.relevant_ids[0], doc.gold_doc_lang)


def test_rows_that_bring_gold_passages_need_no_corpus() -> None:
    given = tuple(GivenPassage(id=f"g{n}", lang="en", text=f"text {n}", is_gold=n == 1) for n in range(3))
    doc = RagDoc("r", "?", "de", relevant_ids=("g1",), given_passages=given)
    (found,) = retrieve([doc], Retrieval(mode="oracle"))
    assert [hit.id for hit in found.passages] == ["g1"]
    (scores,) = score_rows([Scored(doc, "", found.ranking)], ["recall@5"], searched=True)
    assert scores.values == {"recall@5": 1.0}


def test_rows_without_a_known_document_are_skipped_and_counted(tasks: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    path = tasks / "questions.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows[:4]:
        row["relevant_ids"] = []
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    lm = ScriptedLM(lambda _: "1841")
    results = run(tasks, lm=lm, metadata={"retrieval.mode": "oracle"})
    assert len(lm.prompts) == 11
    assert any("4 rows skipped (no relevant document is known)" in r.getMessage() for r in caplog.records)
    assert results["results"]["small"]["hit@2,none"] == 1.0
    for row in rows:
        row["relevant_ids"] = []
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"no rows left to run \(15 loaded, .*15 skipped by mode 'oracle'\)"):
        run(tasks, metadata={"retrieval.mode": "oracle", "data.seed": 1})


def test_a_page_of_another_wikipedia_with_the_same_number_is_not_relevant() -> None:
    doc = RagDoc("r", "?", "ko", relevant_ids=("12",), gold_doc_lang="en")
    ranking = (
        Ranked("a", "12", "ko", 0.9),
        Ranked("b", "12", "ko", 0.8),
        Ranked("c", "7", "en", 0.7),
        Ranked("d", "12", "en", 0.6),
    )
    assert [is_relevant(place, doc) for place in ranking] == [False, False, False, True]
    (scores,) = score_rows([Scored(doc, "", ranking)], ["hit@2", "hit@3", "mrr@5"], searched=True)
    # pages in order: the Korean 12, the English 7, the English 12, each once
    assert scores.values == {"hit@2": 0.0, "hit@3": 1.0, "mrr@5": pytest.approx(1 / 3)}
    from mrag_eval.core import Retrieved

    record = row_record(doc, scores, Retrieved((), ranking[:3], {"ko": 5, "en": 5}))
    assert record.retrieved == 0
    # a row that does not name its documents' languages counts them in any language
    (scores,) = score_rows(
        [Scored(RagDoc("r", "?", "ko", relevant_ids=("12",)), "", ranking)], ["hit@1"], searched=True
    )
    assert scores.values == {"hit@1": 1.0}


def test_recall_counts_a_page_once_at_its_best_passage() -> None:
    doc = RagDoc("r", "?", "en", relevant_ids=("1", "9"), gold_doc_lang="en")
    pages = ["3", "3", "3", "3", "3", "1", "4", "9"]
    ranking = tuple(Ranked(f"p{n}", page, "en", 1.0 - n / 10) for n, page in enumerate(pages))
    (scores,) = score_rows([Scored(doc, "", ranking)], ["recall@2", "recall@5"], searched=True)
    # pages: 3, 1, 4, 9; one of two among the first two, both among five; by passages, recall@5 would be 0
    assert scores.values == {"recall@2": 0.5, "recall@5": 1.0}


def test_a_row_without_relevant_ids_is_named() -> None:
    with pytest.raises(MragError, match="row 'r' has no relevant_ids"):
        retrieve([RagDoc("r", "?", "en")], Retrieval(mode="oracle"))


def test_the_texts_behind_a_ranking_are_those_of_the_row_or_of_the_corpus() -> None:
    """Rows that bring their passages and rows that name documents may be in one benchmark."""
    given = (GivenPassage(id="g1", lang="en", text="brought", is_gold=True),)
    rows = [RagDoc("r", "?", "en", given_passages=given), RagDoc("s", "text", "en", relevant_ids=("p1",))]
    retrieval = Retrieval(mode="oracle", kind="bm25")
    source = source_for(retrieval, Benchmark("t", rows, [Passage("p1", "en", "text of p1", doc_id="p1")]))
    ranked = [place.id for row in source.retrieve(rows) for place in row.ranking]
    assert ranked == ["g1", "p1"]
    assert [passage.text for passage in source.passages(ranked)] == ["brought", "text of p1"]
