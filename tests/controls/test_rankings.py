"""Controls of rankings: which rows the corpus can serve, and what a ranking at random scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Retrieval
from mrag_eval.controls import ControlPool, ControlRule, row_controls
from mrag_eval.core import Passage, RagDoc, Retrieved
from mrag_eval.retrieval import Relevant, TaskRows
from tests.task.test_hook import build
from tests.worlds.small import BASE, write_task

CORPUS = [
    Passage("p1", "de", "Kurz. Dieser Satz ist der längste von allen. Ende.", doc_id="d1"),
    Passage("p2", "en", "One sentence in English", doc_id="d2"),
    Passage("p3", "en", "Another one.", doc_id="d3"),
    Passage("p4", "en", "More of it.", doc_id="d3"),
]
SEARCH = Retrieval(mode="all", k=2, kind="bm25")
BOTH = Retrieved(searchable={"de": 1, "en": 3})


def row(name: str, *relevant: str, **more: Any) -> RagDoc:
    return RagDoc(name, "q", "en", relevant_ids=relevant, **more)


def controls(doc: RagDoc, corpus: list[Passage], found: Retrieved = BOTH, **more: Any):
    rule = ControlRule(["hit@1", "recall@3", "shown@k"])
    relevant = Relevant.among(corpus, [doc])
    return row_controls([doc], ControlPool([doc]), rule, more.get("retrieval", SEARCH), {doc.id: found}, relevant)[
        doc.id
    ]


def test_the_share_of_rows_that_the_corpus_serves() -> None:
    gone = controls(row("a", "x", absent_ids=("x",)), CORPUS[:3])
    assert gone.values == {"held": {"hit@1": 0.0, "recall@3": 0.0, "shown@k": 0.0}}
    assert gone.missing["random"]
    unknown = controls(row("b"), CORPUS[:3])
    assert unknown.values == {}
    assert set(unknown.missing.values()) == {"no relevant document is known"}


def test_at_random_by_hand() -> None:
    # two of four passages, and one more that is not there: 2/4 first, 3 x 2/4 of three, 1 - (2 x 1) / (4 x 3) among two
    found = controls(row("a", "p1", "p2", "gone", absent_ids=("gone",)), CORPUS[:3]).values["random"]
    assert found == {"hit@1": pytest.approx(1 / 2), "recall@3": pytest.approx(1.5 / 3), "shown@k": pytest.approx(5 / 6)}


def test_what_is_withheld_from_a_row_is_not_shown_at_random_and_ranks_as_ever() -> None:
    shown = controls(row("a", "p1"), CORPUS[:3]).values["random"]
    withheld = controls(row("a", "p1"), CORPUS[:3], replace(BOTH, withheld=True)).values["random"]
    assert withheld == {**shown, "shown@k": 0.0}
    assert shown["shown@k"] > 0
    assert controls(row("a", "p1"), CORPUS[:3], replace(BOTH, withheld=False)).values["random"] == shown


def test_a_passage_in_a_language_that_is_not_searched_is_never_found() -> None:
    found = controls(row("a", "p1"), CORPUS[:3], Retrieved(searchable={"en": 3})).values["random"]
    assert found == {"hit@1": 0.0, "recall@3": 0.0, "shown@k": 0.0}


def test_documents_of_several_passages_have_no_closed_form() -> None:
    # of the document's two passages one is among two of four: 1 - (2 x 1) / (4 x 3)
    found = controls(row("a", "d3"), CORPUS).values["random"]
    assert found == {"shown@k": pytest.approx(5 / 6)}
    # relevant passages are ranked one by one
    assert controls(row("a", "p3"), CORPUS).values["random"]["hit@1"] == 0.25


def test_a_query_is_the_longest_sentence_of_a_passage_in_the_language_of_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(name: str, lines: list[dict[str, Any]]) -> str:
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return str(tmp_path / name)

    relevant = {"a": ["p1"], "b": ["p1", "p2"], "c": [], "d": ["p1"]}
    rows = [{"id": name, "query": "q", "lang": "en", "relevant_ids": ids} for name, ids in relevant.items()]
    passages = [{"id": one.id, "lang": one.lang, "text": one.text, "doc_id": one.doc_id} for one in CORPUS]
    data = {"benchmark": "jsonl", "path": written("rows.jsonl", rows), "corpus": written("corpus.jsonl", passages)}
    retrieval = {"mode": "all", "k": 2, "kind": "bm25"}
    write_task(tmp_path, "t", **{**BASE, "metrics": ["hit@1"]}, data=data, retrieval=retrieval)
    task = build(tmp_path, "t")
    # an index may lack what is relevant
    task.supply.docs["d"] = replace(task.supply.docs["d"], relevant_ids=("x",), absent_ids=("x",))
    asked: dict[str, str] = {}
    real = TaskRows.retrieved

    def searched(supply: TaskRows, docs: list[RagDoc]) -> list[Retrieved]:
        asked.update({doc.id: doc.query for doc in docs})
        return real(supply, docs)

    monkeypatch.setattr(TaskRows, "retrieved", searched)
    records = {record.row: record.controls for record in task.control_records([*relevant])}
    assert asked == {"a": "Dieser Satz ist der längste von allen.", "b": "One sentence in English"}
    # both are found by their own words
    found = {name: control.values.get("passage") for name, control in records.items() if control is not None}
    assert found == {"a": {"hit@1": 1.0}, "b": {"hit@1": 1.0}, "c": None, "d": None}


def test_without_a_search_there_are_none() -> None:
    doc = row("a", "p1")
    pool, rule = ControlPool([doc]), ControlRule(["hit@1"])
    (bare,) = row_controls([doc], pool, rule, Retrieval(mode="no_ir"), {}, None).values()
    assert not {"passage", "held", "random"} & {*bare.values, *bare.missing}
    unread = row_controls([doc], pool, rule, SEARCH, {doc.id: BOTH}, None)["a"]
    assert unread.missing["random"] == unread.missing["passage"] == "mrag-eval controls measures it, a run does not"
