"""Relevant ids that a corpus does not hold: refused if it holds none, else counted, whatever is searched."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrag_eval import score
from mrag_eval.config import TaskBlocks, split_config
from mrag_eval.core import Passage, RagDoc
from mrag_eval.datasets import Held, with_absent
from mrag_eval.platform import DataError
from mrag_eval.retrieval import TaskRows, open_folder, retrieve_into
from mrag_eval.retrievers import build_index, read_corpus
from mrag_eval.scoring import METRIC_NAMES, measured_on, score_rows
from tests.task.test_hook import run
from tests.worlds.small import BASE, write_task

TEXTS = {"mill": "The mill by the weir ground rye.", "quay": "The quay was paved with basalt in a dry year."}
# relevant ids that name documents, passages, or neither
HELD = ["mill", "quay"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with documents as text files and as JSON Lines, a run of each kind, and an index of the files."""
    for name, text in TEXTS.items():
        (tmp_path / "texts" / "en").mkdir(parents=True, exist_ok=True)
        (tmp_path / "texts" / "en" / f"{name}.txt").write_text(text, "utf-8")
    lines = [{"id": name, "lang": "en", "text": text} for name, text in TEXTS.items()]
    (tmp_path / "passages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (tmp_path / "run.trec").write_text("q0 Q0 mill 1 2 x\nq0 Q0 quay 2 1 x\nq1 Q0 mill 1 1 x\n", "utf-8")
    ctxs = [{"id": f"q{i}", "ctxs": [{"id": "mill", "text": TEXTS["mill"]}]} for i in range(2)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in ctxs), "utf-8")
    build_index(read_corpus(str(tmp_path / "texts")), tmp_path / "index", kind="bm25")
    return tmp_path


def blocks(place: Path, relevant: list[list[str]], retrieval: Mapping[str, Any], **more: Any) -> TaskBlocks:
    given = more.pop("given", None)
    rows = [
        {"id": f"q{i}", "query": "Which was paved?", "lang": "en", "relevant_ids": ids, "gold_doc_lang": "en"}
        | ({"given_passages": given} if given else {})
        for i, ids in enumerate(relevant)
    ]
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    data = {"benchmark": "jsonl", "path": str(place / "questions.jsonl"), **more.pop("data", {})}
    config = {"task": "t", **BASE, "metrics": ["hit@2", "shown@k", "match"], "retrieval": {"k": 2, **retrieval}}
    return split_config({**config, "data": data, **more}, METRIC_NAMES)[1]


# What is searched -> its retrieval block, and ids that it holds.
SEARCHED: Mapping[str, tuple[Mapping[str, Any], list[str]]] = {
    "index": ({"mode": "all", "corpus": "{place}/index"}, ["en/mill.txt", "en/quay.txt"]),
    "one language": ({"mode": "qlang", "corpus": "{place}/index"}, ["en/mill.txt", "en/quay.txt"]),
    "oracle": ({"mode": "oracle", "corpus": "{place}/index"}, ["en/mill.txt", "en/quay.txt"]),
    "TREC run": (
        {"mode": "all", "kind": "precomputed", "run": "{place}/run.trec", "corpus": "{place}/passages.jsonl"},
        HELD,
    ),
    "run with texts": (
        {"mode": "all", "kind": "precomputed", "run": "{place}/run.jsonl", "run_language": "en"},
        ["mill", "mill"],
    ),
    "given": ({"mode": "given"}, ["mill", "quay"]),
}
# Sources that are known by what was retrieved alone.
IN_PART = {"run with texts", "given"}
GIVEN = [{"id": name, "lang": "en", "text": text} for name, text in TEXTS.items()]


def rows_of(place: Path, name: str, relevant: list[list[str]], **more: Any) -> TaskRows:
    block, _ = SEARCHED[name]
    filled = {key: value.format(place=place) for key, value in block.items()}
    given = GIVEN if name == "given" else None
    return TaskRows(blocks(place, relevant, filled, given=given, **more), "t")


@pytest.mark.parametrize("name", SEARCHED)
def test_ids_that_are_held_are_taken(place: Path, name: str) -> None:
    first, second = SEARCHED[name][1]
    rows = rows_of(place, name, [[first], [second]])
    assert [doc.absent_ids for doc in rows.docs.values()] == [(), ()]
    assert all(doc.findable for doc in rows.docs.values())


@pytest.mark.parametrize("name", SEARCHED)
def test_a_corpus_that_holds_none_is_refused_in_one_line(place: Path, name: str) -> None:
    with pytest.raises(DataError, match="none of the relevant ids of 2 questions is in ") as error:
        rows_of(place, name, [["files/mill"], ["files/quay"]])
    message = error.value.message
    assert "(question 'q0': 'files/mill'; its first passage and document: '" in message
    assert "\n" not in message
    assert "relevant_ids" in str(error.value.next_step)


@pytest.mark.parametrize("name", SEARCHED)
def test_nothing_is_refused_that_no_metric_needs(place: Path, name: str) -> None:
    if name == "oracle":
        with pytest.raises(DataError, match="none of the relevant ids"):
            rows_of(place, name, [["files/mill"], ["files/quay"]], metrics=["match"])
        return
    rows = rows_of(place, name, [["files/mill"], ["files/quay"]], metrics=["match"])
    assert [doc.findable for doc in rows.docs.values()] == [name in IN_PART] * 2
    # labels of judges or n-grams stand in for ids
    by_labels = rows_of(place, name, [["files/mill"], ["x"]], judge={"relevance": {"labels": "proxy"}})
    assert all(doc.findable for doc in by_labels.docs.values())


@pytest.mark.parametrize("name", SEARCHED)
def test_some_absent_are_counted_and_their_rows_unscored(
    place: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    held = SEARCHED[name][1][0]
    with caplog.at_level(logging.WARNING):
        rows = rows_of(place, name, [["nowhere"], [held, "gone"], [held]])
    docs = list(rows.docs.values())
    if name in IN_PART:
        # what was not found may still be in the corpus: a miss is a miss
        assert [doc.absent_ids for doc in docs] == [(), (), ()]
        return
    assert [doc.absent_ids for doc in docs] == [("nowhere",), ("gone",), ()]
    assert [doc.findable for doc in docs] == [False, True, True]
    (said,) = [r.getMessage() for r in caplog.records if "relevant ids that" in r.getMessage()]
    assert said.startswith("[t] relevant ids that are not in corpus ")
    assert said.endswith(
        ": 2 of 4, first 'nowhere' of row 'q0'; rows without any there, unscored by hit@2, shown@k: 1 of 3"
    )


def test_a_run_counts_the_rows_without_a_relevant_document(tasks: Path, place: Path) -> None:
    """Three rows: of one the corpus holds no relevant id, of one a half; the retriever finds the quay for all."""
    relevant = [["nowhere"], ["en/quay.txt", "gone"], ["en/mill.txt"]]
    made = blocks(place, relevant, {"mode": "all", "corpus": str(place / "index"), "k": 1, "depth": 2})
    block = {"mode": "all", "corpus": str(place / "index"), "k": 1, "depth": 2}
    metrics = ["match", "shown@k", "hit@1", "recall@2"]
    write_task(tasks, "held", **{**BASE, "metrics": metrics}, data=dict(made.data), retrieval=block)
    for limit in (None, 2):
        results = run(tasks, "held", limit=limit)
        scores = results["configs"]["held"]["scores"]
        # the quay is shown for each: right for the second row, wrong for the third, unknown for the first
        rows = 1 if limit else 2
        assert (scores["metrics"]["shown@k"]["value"], scores["metrics"]["shown@k"]["n"]) == (1 / rows, rows)
        assert scores["metrics"]["hit@1"]["value"] == 1 / rows
        reason = {"the corpus holds no relevant document": 1}
        assert {name: scores["unscored"][name] for name in metrics[1:]} == dict.fromkeys(metrics[1:], reason)
        assert scores["selection"]["overall"]["in_prompt"]["n"] == rows
    # recall counts the id that is not there as missed: 1 of 2, and of the third row's document 0 or 1 of 1
    samples = {s["doc"]["id"]: s["rows"]["values"] for s in run(tasks, "held")["samples"]["held"]}
    assert samples["q1"]["recall@2"] == 0.5
    assert "recall@2" not in samples["q0"]
    assert results["samples"]["held"][0]["doc"]["absent_ids"] == ["nowhere"]


def test_a_run_folder_remembers_what_its_corpus_lacks(place: Path) -> None:
    made = blocks(place, [["nowhere"], ["en/quay.txt"]], {"mode": "all", "corpus": str(place / "index")})
    rows = TaskRows(made, "t")
    retrieve_into(open_folder(place / "rows"), "t", rows, ["q0", "q1"])
    (place / "index").rename(place / "elsewhere")
    retrieval = made.retrieval.model_copy(update={"run_folder": str(place / "rows")})
    taken = TaskRows(TaskBlocks(**{**vars(made), "retrieval": retrieval}), "t")
    assert taken.taken
    assert [doc.absent_ids for doc in taken.docs.values()] == [("nowhere",), ()]


@pytest.mark.parametrize(
    ("name", "doc_lang", "documents", "held"),
    [
        ("12", "en", False, True),
        ("12", "fr", False, False),  # page 12 of another Wikipedia
        ("12", None, False, True),
        ("12#3", "fr", False, True),  # a passage is the same in any language
        ("12#3", "en", True, False),  # a passage is no document
        ("", "en", False, False),
    ],
)
def test_what_is_held_is_what_could_be_relevant(
    name: str, doc_lang: str | None, documents: bool, held: bool, tmp_path: Path
) -> None:
    doc = RagDoc("r", "?", "de", relevant_ids=(name,), gold_doc_lang=doc_lang, relevant_documents=documents)
    corpus = [Passage("12#3", "en", "It is here.", doc_id="12")]
    assert Held.among("c", corpus).holds(doc, name) is held


def test_own_documents_hold_every_relevant_id(place: Path) -> None:
    data = {"corpus": str(place / "passages.jsonl")}
    with pytest.raises(DataError, match=r"question 'q1': relevant id 'gone' is not in the corpus"):
        TaskRows(blocks(place, [["mill"], ["quay", "gone"]], {"mode": "all", "kind": "bm25"}, data=data), "t")


def test_nothing_is_said_of_rows_without_relevant_ids(caplog: pytest.LogCaptureFixture) -> None:
    docs = [RagDoc("r", "?", "de")]
    with caplog.at_level(logging.WARNING):
        assert with_absent(docs, Held.among("c", ()), ["hit@5"]) == docs
    assert caplog.records == []
    empty = RagDoc("r", "?", "de", relevant_ids=("x",))
    with pytest.raises(DataError, match=r"none of the question's relevant ids is in c \(question 'r': 'x'\)"):
        with_absent([empty], Held.among("c", ()), ["hit@5"])


# ------------------------------------------------------------------ replies and rankings that are there already

PASSAGES = [{"id": "mill", "lang": "en"}]


def rows(*relevant: str) -> list[dict[str, Any]]:
    return [{"query": "?", "lang": "en", "relevant_ids": [name], "passages": PASSAGES} for name in relevant]


def test_score_refuses_ids_that_no_passage_has() -> None:
    with pytest.raises(
        DataError, match=r"none of the relevant ids of 2 questions is in score: the rows' passages"
    ) as error:
        score(rows("Mill", "Quay"), ["hit@1", "shown@k"])
    assert "name the corpus that was searched" in str(error.value.next_step)
    assert score([{**row, "reply": ""} for row in rows("Mill")], "language_mix").path.is_file()


def test_score_counts_a_miss_as_one_where_another_row_has_a_hit() -> None:
    assert score(rows("mill", "quay"), "hit@1").samples["hit@1"].tolist() == [1.0, 0.0]


def test_score_knows_the_corpus_that_it_is_given(place: Path) -> None:
    for corpus in (["mill", "quay"], place / "passages.jsonl"):
        found = score(rows("quay", "gone"), "shown@k", corpus=corpus)
        # the quay could have been found and was not; what is gone could not
        assert found.samples["shown@k"].tolist()[0] == 0.0
        assert found.frame["unscored"].tolist()[0] == "1 row unscored (the corpus holds no relevant document)"
        with pytest.raises(DataError, match="none of the question's relevant ids"):
            score(rows("gone"), "shown@k", corpus=corpus)
    assert score(rows("en/quay.txt"), "hit@1", corpus=place / "index").samples["hit@1"].tolist() == [0.0]


def test_scoring_itself_needs_no_corpus() -> None:
    from mrag_eval.config import Retrieval
    from mrag_eval.core import Scored

    doc = RagDoc("r", "?", "en", relevant_ids=("x", "y"), absent_ids=("x",))
    (half,) = score_rows([Scored(doc, "")], ["recall@5"], **measured_on(Retrieval(mode="all")))
    assert half.values == {"recall@5": 0.0}
