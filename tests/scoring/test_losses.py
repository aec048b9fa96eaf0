"""Where answers are lost: one row for every way to lose one, by pair of languages, from records to the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import Failure, Hit, RagDoc, Ranked, Retrieved, RowScores
from mrag_eval.report import render, score_tables
from mrag_eval.scoring import TaskScores, row_record, summarize
from tests.worlds.measured import with_records

FAILED = {
    "search": Failure("search", "m", "timeout"),
    "answer": Failure("answer", "m", "timeout"),
    "judge": Failure("judge", "m", "timeout"),
}
# (pair, found at rank, shown, values, failure, stage); a metric of None is unscored
ROWS: list[tuple[str, int | None, bool, dict[str, float | None], str | None, str]] = [
    ("ar->en", 1, True, {"judged_accuracy": 1.0, "match": 0.0}, None, "correct"),
    ("ar->en", None, False, {"judged_accuracy": 1.0, "match": 1.0}, None, "correct"),
    ("ar->en", None, False, {"judged_accuracy": 0.0, "match": 1.0}, None, "not retrieved"),
    ("ar->en", 3, False, {"judged_accuracy": 0.0, "match": 1.0}, None, "not shown"),
    ("ar->en", 1, True, {"judged_accuracy": 0.0, "match": 0.0}, None, "not used"),
    ("ar->en", 1, True, {"judged_accuracy": 0.0, "match": 1.0}, None, "judged wrong"),
    ("ar->en", 1, True, {"judged_accuracy": 0.0, "match": 1.0, "language_check": 0.0}, None, "wrong language"),
    ("ar->en", None, False, {"judged_accuracy": None}, "search", "failed"),
    ("ar->en", 1, True, {"judged_accuracy": None}, "answer", "failed"),
    ("en->en", 1, True, {"judged_accuracy": None}, "judge", "failed"),
    ("en->en", 1, True, {"judged_accuracy": None}, None, "unscored"),
    ("en->en", 1, True, {"judged_accuracy": 0.0, "char3gram_recall": 1.0, "language_check": 1.0}, None, "judged wrong"),
    ("en->en", 1, True, {"judged_accuracy": 0.0, "char3gram_recall": 0.99}, None, "not used"),
    ("en->en", 2, True, {"judged_accuracy": 1.0, "char3gram_recall": 0.1}, None, "correct"),
]
BY_HAND = {
    "all": {"correct": 3, "not retrieved": 1, "not shown": 1, "not used": 2, "judged wrong": 2, "wrong language": 1}
    | {"failed": 3},
    "ar->en": {"correct": 2, "not retrieved": 1, "not shown": 1, "not used": 1, "judged wrong": 1}
    | {"wrong language": 1, "failed": 2},
    "en->en": {"correct": 1, "not retrieved": 0, "not shown": 0, "not used": 1, "judged wrong": 1}
    | {"wrong language": 0, "failed": 1},
}


def scores() -> TaskScores:
    records = []
    for number, (pair, rank, shown, values, failure, _) in enumerate(ROWS):
        query, document = pair.split("->")
        doc = RagDoc(f"r{number:02}", "?", query, relevant_ids=("d",), gold_doc_lang=document)
        ids = ["x1", "x2", "x3"]
        if rank is not None:
            ids[rank - 1] = "d"
        places = tuple(Ranked(f"{name}#1", name, document, 1 / at) for at, name in enumerate(ids, 1))
        hits = tuple(
            Hit(place.id, document, "text", place.score, at, doc_id=place.doc_id) for at, place in enumerate(places, 1)
        )
        found = Retrieved(
            hits if shown else hits[:2], places, {document: 9}, failures=(FAILED[failure],) if failure else ()
        )
        scored = {name: value for name, value in values.items() if value is not None}
        unscored = {name: "no value" for name, value in values.items() if value is None}
        records.append(row_record(doc, RowScores(scored, unscored), found))
    return summarize(records)


def test_each_row_is_lost_once_and_at_its_stage() -> None:
    table = scores().attribution
    assert table is not None
    assert table.correct_by == "judged_accuracy"
    assert {"all": table.overall.stages, **{pair: part.stages for pair, part in table.by_pair.items()}} == BY_HAND
    assert table.overall.unscored == 1
    stages = [stage for *_, stage in ROWS if stage != "unscored"]
    assert {stage: stages.count(stage) for stage in BY_HAND["all"]} == BY_HAND["all"]
    # failed rows are in no conditional: of the ten others, eight were retrieved and seven shown
    assert (table.overall.retrieved.value, table.overall.retrieved.n) == (0.8, 10)
    assert (table.overall.kept_if_retrieved.value, table.overall.kept_if_retrieved.n) == (pytest.approx(7 / 8), 8)
    assert table.overall.correct_if_kept.value == pytest.approx(2 / 7)


def test_the_report_prints_them_by_pair(tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "configs": with_records(
            {"qa": {"task": "qa", "retrieval": {"mode": "all", "k": 2}, "scores": scores().to_dict()}}
        ),
        "model_name": "m",
        "date": 1_767_225_600.0,
    }
    path = tmp_path / "results_1.json"
    path.write_text(json.dumps(content), "utf-8")
    (table,) = [one for one in score_tables([path]) if one.id == "losses"]
    assert table.columns == tuple(BY_HAND["all"])
    printed = {row.labels: [cell.value for cell in row.cells] for row in table.rows}
    task = "qa [3 of 13 rows unscored]"
    assert printed == {(task, pair.replace("->", " → ")): [*counts.values()] for pair, counts in BY_HAND.items()}
    text = render([table])
    assert (
        " ".join(text.splitlines()[4].split()) == f"| {task} | all | m, judged_accuracy | 3 | 1 | 1 | 2 | 2 | 1 | 3 |"
    )
