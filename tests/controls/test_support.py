"""Controls of support: the same answer beside the same passage in each of its languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrag_eval.controls import ControlPool
from mrag_eval.controls._support import support_controls
from mrag_eval.core import Passage, RagDoc
from mrag_eval.report import TaskControls, control_tables, render
from mrag_eval.retrieval import Relevant
from mrag_eval.scoring import RowRecord, control_table
from tests.task.test_hook import build
from tests.worlds.classifiers import Holds
from tests.worlds.small import BASE, LANGS, TOPICS, write_task

PARALLEL = [{lang: texts[lang][0] for lang in LANGS} for texts in TOPICS.values()]
DOCS = [
    RagDoc(f"{topic}-{lang}", texts[lang][1], lang, answers=(texts[lang][2],), relevant_ids=(f"{topic}-en",))
    for topic, texts in TOPICS.items()
    for lang in LANGS
]
CORPUS = [Passage(f"{topic}-{lang}", lang, texts[lang][0]) for topic, texts in TOPICS.items() for lang in LANGS]


def test_what_moves_between_the_languages_of_one_passage_is_the_classifier_s() -> None:
    relevant = Relevant.among(CORPUS, DOCS)
    records = support_controls(DOCS, relevant, PARALLEL, ControlPool(DOCS), Holds("control"))
    table = control_table(
        [RowRecord(doc.id, {"query_lang": doc.query_lang}, {}, controls=records[doc.id]) for doc in DOCS]
    )
    assert {*table} == {"grounded"}
    for lang in LANGS:
        found = table["grounded"][lang].found
        assert {*found} == {
            name for end in ("beside", "aside") for name in (end, *(f"{end}, {code}" for code in LANGS))
        }
        # a checker of words knows an answer in its own language, and a year in every one
        supported = {code: found[f"beside, {code}"].value for code in LANGS}
        assert supported == {code: pytest.approx(1.0 if code == lang else 1 / 3) for code in LANGS}
        assert found["beside"].value == found["beside, en"].value
        assert {found[f"aside, {code}"].value for code in LANGS} == {0.0}
    text = render(control_tables([TaskControls("t", "no model", table)]))
    assert "first reference beside a relevant passage" in text
    assert "marked: de, es, ru, zh: first reference beside a relevant passage scores 33.3" in text
    assert "Support by the language of the passage" in text


def test_a_row_without_a_passage_or_a_reference_says_so() -> None:
    bare = RagDoc("bare", "Was?", "de", relevant_ids=("lighthouse-en",))
    docs = [*DOCS[:5], bare]
    records = support_controls(docs, None, (), ControlPool(docs), Holds("control"))
    assert all(
        record.missing == dict.fromkeys(("beside", "aside"), "no relevant passage is known")
        for record in records.values()
    )
    records = support_controls(docs, Relevant.among(CORPUS, docs), (), ControlPool(docs), Holds("control"))
    assert records["bare"].missing == dict.fromkeys(("beside", "aside"), "the row has no reference answer")
    assert {*records[DOCS[0].id].values} == {"beside"}
    assert records[DOCS[0].id].missing == {"aside": "no other row in its language has another answer"}


def test_the_command_measures_them_and_a_run_does_not(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker: Any = Holds("command")
    monkeypatch.setattr("mrag_eval.models.load_checker", lambda block: checker)
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    keys = {**BASE, "metrics": ["match", "grounded"]}
    retrieval = {"mode": "all", "k": 2, "kind": "bm25"}
    write_task(tasks, "t", **keys, data=data, retrieval=retrieval, judge={"grounded": {"model": "x"}})
    task = build(tasks, "t")
    rows = list(task.supply.docs)
    (record,) = [one for one in task.control_records(rows) if one.row == "q-lighthouse-de"]
    assert record.controls is not None
    assert record.controls.values["beside"] == {"grounded": 1.0}
    task.retrieved_rows(rows[:1])
    recorded = task._controls([task.supply.docs[rows[0]]])
    assert "bare" in recorded[rows[0]].values
    assert "beside" not in recorded[rows[0]].values
