"""BordIRlines' Figure 6 over the questions that runs with all, relevant and other documents ask.

Three territories, X, Y and Z, claimed by Ara (ar), who holds them, and Hin (hi). A control question is in English.
Relevant documents are left for X in three languages and for Y in Arabic and Hindi: five questions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.report import Table, layout_tables
from mrag_eval.scoring import RowRecord, summarize
from tests.tables import told
from tests.worlds.measured import with_records

TASK = "bordirlines_qlang_direct_openai"
# The index of a reply that never came.
FAILED = -2
# Documents -> territory -> the claimant named in en, ar and hi; None: not asked, -1: no option.
ANSWERS: dict[str, dict[str, tuple[int | None, ...]]] = {
    "all": {"X": (0, 0, 0), "Y": (1, 0, 1), "Z": (0, 0, 0)},
    "relevant": {"X": (0, 0, 1), "Y": (None, 0, 0), "Z": (None, None, None)},
    "non_relevant": {"X": (1, 0, 0), "Y": (0, 1, 1), "Z": (1, 1, 1)},
}
ROWS = {"all": "qlang, all", "relevant": "qlang, relevant", "non_relevant": "qlang, not relevant"}


def line(territory: str, lang: str, index: int) -> dict[str, Any]:
    answer = {
        "query_id": f"{territory}_{lang}",
        "territory": territory,
        "query_lang": lang,
        "claimants": ["Ara", "Hin"],
        "claimant_langs": ["ar", "hi"],
        "controller": "Ara",
        "controller_lang": "ar",
        "control_query": lang == "en",
        "claimant_ind": index,
        "outcome": "chosen" if index >= 0 else "empty",
    }
    row = {"row": answer["query_id"], "cell": {"query_lang": lang}, "concurrence": answer, "values": {}}
    if index == FAILED:
        row["unanswered"] = {key: value for key, value in answer.items() if key not in ("claimant_ind", "outcome")}
        del row["concurrence"]
    return {"doc": {"id": answer["query_id"]}, "rows": row}


def write(
    folder: Path,
    documents: str,
    date: int,
    *,
    samples: bool = True,
    model: str = "org/tiny",
    changes: dict[str, dict[str, Any]] | None = None,
) -> None:
    """Write a run's results, with the scores over its own questions, and its samples."""
    changes = changes or {}
    lines = [
        line(territory, lang, index)
        for territory, given in ANSWERS[documents].items()
        for lang, index in zip(("en", "ar", "hi"), given, strict=True)
        if index is not None
    ]
    data = {"benchmark": "bordirlines", "embedder": "openai"}
    data |= {} if documents == "all" else {"documents": documents}
    config = {
        "retrieval": {"mode": "qlang"} | changes.get("retrieval", {}),
        "data": data | changes.get("data", {}),
        "scores": summarize([RowRecord.from_dict(one["rows"]) for one in lines], 0, None).to_dict(),
    }
    content = {"model_name": model, "date": float(date), "configs": with_records({TASK: config}), "results": {}}
    (folder / f"results_2026-01-0{date}.json").write_text(json.dumps(content), "utf-8")
    if samples:
        text = "".join(json.dumps(one) + "\n" for one in lines)
        (folder / f"samples_{TASK}_2026-01-0{date}.jsonl").write_text(text, "utf-8")


def figure(folder: Path) -> Table:
    (table,) = [table for table in layout_tables("bordirlines", [folder]) if table.id == "Figure 6"]
    return table


def ours(table: Table, model: str = "org/tiny") -> dict[str, list[tuple[float | None, int | None]]]:
    return {r.labels[0]: [(c.value, c.n) for c in r.cells] for r in table.rows if r.labels[1] == model}


def test_all_three_are_compared_on_the_same_questions(tmp_path: Path) -> None:
    """Shared: X in en, ar, hi and Y in ar, hi.

    KB over X: 1, 1, 0. Con: (1 + 1)/2, (1 + 1)/2, (1 + 0)/2. Non: (1 + 0)/2, (0 + 1)/2, (1 + 0)/2. Delta: 1, 1, 0.
    Cst: (1 + 0)/2, (0 + 1)/2, (1 + 1)/2. Countries: (1 + 2)/2, (2 + 1)/2, (1 + 1)/2.
    """
    for date, documents in enumerate(ANSWERS, 1):
        write(tmp_path, documents, date)
    table = figure(tmp_path)
    assert ours(table) == {
        "qlang, all": [(100.0, 1), (50.0, 2), (100.0, 2), (1.5, 2)],
        "qlang, relevant": [(100.0, 1), (50.0, 2), (100.0, 2), (1.5, 2)],
        "qlang, not relevant": [(0.0, 1), (100.0, 2), (0.0, 2), (1.0, 2)],
    }
    assert {told(row) for row in table.rows if row.labels[1] == "org/tiny"} == {"this run"}
    assert "org/tiny: over the 5 questions to which every run of this table has an answer" in table.notes


def test_models_have_questions_of_their_own(tmp_path: Path) -> None:
    """Another model was not run with the relevant documents: its two runs share all nine questions."""
    for date, documents in enumerate(ANSWERS, 1):
        write(tmp_path, documents, date)
    for date, documents in enumerate(("all", "non_relevant"), 4):
        write(tmp_path, documents, date, model="org/other")
    table = figure(tmp_path)
    assert [cells[0][1] for cells in ours(table).values()] == [1, 1, 1]
    # KB over X, Y and Z: 1 + 0 + 1, and 0 + 1 + 0
    assert [cells[0] for cells in ours(table, "org/other").values()] == [
        (pytest.approx(200 / 3), 3),
        (pytest.approx(100 / 3), 3),
    ]
    assert "org/other: over the 9 questions to which every run of this table has an answer" in table.notes


@pytest.mark.parametrize(
    "changes",
    [{"data": {"flip": True}}, {"retrieval": {"shuffle": 1}}, {"data": {"persona": "un"}}, {"retrieval": {"k": 3}}],
)
@pytest.mark.parametrize("limited", [False, True])
def test_only_runs_of_one_condition_share_questions(
    changes: dict[str, dict[str, Any]], limited: bool, tmp_path: Path
) -> None:
    """A run of another condition asks X in Arabic alone; the others keep their five questions, whatever rows ran."""
    part = {"data": {"territories": ["X", "Y", "Z"]}} if limited else {}
    for date, documents in enumerate(ANSWERS, 1):
        write(tmp_path, documents, date, changes=part)
    before = ours(figure(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ANSWERS, "all", {"X": (None, 0, None)})
        write(tmp_path, "all", 4, changes={key: {**part.get(key, {}), **value} for key, value in changes.items()})
    table = figure(tmp_path)
    after = [(r.labels[0], [(c.value, c.n) for c in r.cells]) for r in table.rows if r.labels[1] == "org/tiny"]
    assert all(one in after for one in before.items())
    assert len(after) == len(before) + 1


def test_a_run_alone_is_shown_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, "relevant", 1, samples=False)
    table = figure(tmp_path)
    assert ours(table)["qlang, relevant"][0] == (100.0, 1)
    assert not any(note.startswith("org/tiny: over") for note in table.notes)


def test_a_run_without_samples_is_compared_with_none(tmp_path: Path) -> None:
    for date, documents in enumerate(ANSWERS, 1):
        write(tmp_path, documents, date, samples=documents != "all")
    table = figure(tmp_path)
    found = ours(table)
    assert found["qlang, all"][0][0] is None
    assert [found[ROWS[d]][0] for d in ("relevant", "non_relevant")] == [(100.0, 1), (0.0, 1)]
    (row,) = [row for row in table.rows if row.labels == ("qlang, all", "org/tiny")]
    assert "no samples (--log_samples)" in str(row.cells[0].reason)


def test_a_territory_with_a_failed_question_is_left_out_of_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run with other documents has no answer on X in Hindi: Y remains, with two questions."""
    monkeypatch.setitem(ANSWERS, "non_relevant", {**ANSWERS["non_relevant"], "X": (1, 0, FAILED)})
    for date, documents in enumerate(ANSWERS, 1):
        write(tmp_path, documents, date)
    table = figure(tmp_path)
    # no control question is left; Y's answers agree in all but the first run; Non_CS is 0 in the first and the last
    assert ours(table) == {
        "qlang, all": [(None, None), (0.0, 1), (None, 1), (2.0, 1)],
        "qlang, relevant": [(None, None), (100.0, 1), (0.0, 1), (1.0, 1)],
        "qlang, not relevant": [(None, None), (100.0, 1), (None, 1), (1.0, 1)],
    }
    assert "org/tiny: over the 2 questions to which every run of this table has an answer" in table.notes


def test_without_a_common_question_there_is_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "relevant", {"W": (0, 0, 0)})
    for date, documents in enumerate(ANSWERS, 1):
        write(tmp_path, documents, date)
    table = figure(tmp_path)
    assert {cells[0][0] for cells in ours(table).values()} == {None}
    reasons = {row.cells[0].reason for row in table.rows if row.labels[1] == "org/tiny"}
    assert reasons == {"no question has an answer in every run of this table"}
