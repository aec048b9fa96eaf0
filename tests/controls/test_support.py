"""Controls of support: the same answer beside the same passage in each of its languages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import TaskControls, control_tables, render
from mrag_eval.scoring import RowRecord, control_table
from tests.task.test_hook import build
from tests.worlds.classifiers import Holds
from tests.worlds.small import BASE, LANGS, TOPICS, write_task

DOCS: list[dict[str, Any]] = [
    {
        "id": f"{topic}-{lang}",
        "query": texts[lang][1],
        "lang": lang,
        "answers": [texts[lang][2]],
        "relevant_ids": [f"{topic}-en"],
    }
    for topic, texts in TOPICS.items()
    for lang in LANGS
]
CORPUS = [
    {"id": f"{topic}-{lang}", "lang": lang, "text": texts[lang][0], "parallel_id": topic}
    for topic, texts in TOPICS.items()
    for lang in LANGS
]


def measured(
    folder: Path,
    docs: Sequence[Mapping[str, Any]],
    corpus: Sequence[Mapping[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    *more: str,
) -> list[RowRecord]:
    """Return the records of the controls of a task with these rows and documents."""
    checker: Any = Holds("control")
    monkeypatch.setattr("mrag_eval.models.load_checker", lambda block: checker)
    data = {"benchmark": "jsonl"}
    for key, name, lines in (("path", "questions", docs), ("corpus", "corpus", corpus)):
        data[key] = str(folder / f"{name}.jsonl")
        Path(data[key]).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    retrieval = {"mode": "all", "k": 2, "kind": "bm25"} if corpus else {"mode": "no_ir"}
    data = data if corpus else {key: value for key, value in data.items() if key != "corpus"}
    keys = {**BASE, "metrics": [*more, "grounded"], "judge": {"grounded": {"model": "x"}}}
    write_task(folder, "t", **keys, data=data, retrieval=retrieval)
    task = build(folder, "t")
    return task.control_records([*task.supply.docs])


def supported(record: RowRecord) -> tuple[dict[str, float], dict[str, str]]:
    """Return the shares of support of a row's controls, and why others have none."""
    assert record.controls is not None
    controls = record.controls
    values = {name: found["grounded"] for name, found in controls.values.items() if "grounded" in found}
    return values, {name: why for name, why in controls.missing.items() if name in ("beside", "aside")}


def test_what_moves_between_the_languages_of_one_passage_is_the_classifier_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = control_table(measured(tmp_path, DOCS, CORPUS, monkeypatch))
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


def test_a_row_without_a_passage_or_a_reference_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = {"id": "bare", "query": "Was?", "lang": "de", "relevant_ids": ["lighthouse-en"]}
    docs = [*DOCS[:5], bare]
    without = [{key: value for key, value in doc.items() if key != "relevant_ids"} for doc in docs]
    for record in measured(tmp_path, without, (), monkeypatch, "match"):
        assert supported(record) == ({}, dict.fromkeys(("beside", "aside"), "no relevant passage is known"))
    plain = [{key: value for key, value in passage.items() if key != "parallel_id"} for passage in CORPUS]
    records = {record.row: supported(record) for record in measured(tmp_path, docs, plain, monkeypatch, "match")}
    assert records["bare"] == ({}, dict.fromkeys(("beside", "aside"), "the row has no reference answer"))
    values, missing = records[str(DOCS[0]["id"])]
    assert {*values} == {"beside"}
    assert missing == {"aside": "no other row in its language has another answer"}


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
