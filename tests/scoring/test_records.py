"""Rows and scores as they are written, and read back as the same records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mrag_eval.core import (
    CUT_OFF,
    SUPPORT,
    Claim,
    Failure,
    Grounding,
    Hit,
    Judgement,
    Labels,
    RagDoc,
    Ranked,
    Reranking,
    Retrieved,
    RowScores,
    Trace,
    Vote,
)
from mrag_eval.models import CallCounts
from mrag_eval.platform import DataError
from mrag_eval.scoring import (
    AnswerRecord,
    CitedAnswer,
    ControlRecord,
    LabellingShare,
    PanelShare,
    PromptCounts,
    RowRecord,
    TaskScores,
    TerritoryAnswer,
    TerritoryQuestion,
    row_record,
    sufficiency_record,
    summarize,
)

TERRITORY: dict[str, Any] = {
    "claimants": ("South Sudan", "Sudan"),
    "claimant_langs": ("en", "ar"),
    "controller": "Sudan",
    "controller_lang": "ar",
}
TRACE: dict[str, Any] = {
    "stopped": "sufficient",
    "valid": 1,
    "shown": ["d"],
    "fallback": False,
    "faults": {"planner: unknown_language (rule)": 1},
    "usage": {"calls": 3, "cached": 1, "tokens_in": 20, "tokens_out": 4, "seconds": 0.1},
    "rounds": [{"round": 1, "languages": ["de", "en"], "query": "q", "hits": [], "added": 1, "usage": {}}],
}


def full(number: int) -> RowRecord:
    """Return a row with every part that a record can have; only the first has those of its rank."""
    doc = RagDoc(
        f"r{number}",
        "q",
        ("de", "en")[number % 2],
        answers=("a",),
        gold_doc_lang=("en", "de", "en")[number % 3],
        relevant_ids=("d",),
        group_id=f"g{number // 2}",
        extra={"question_id": number, "category": "law"},
    )
    ranking = (Ranked("d", "d", "en", 1.0), Ranked("e", "e", "de", 0.5))
    found = Retrieved(
        (Hit("d", "en", "text", 1.0, 1, is_gold=True), Hit("e", "de", "text", 0.5, 2)),
        ranking,
        {"de": 10, "en": 30},
        reranked=Reranking(ranking, None, windows=2, repaired=1),
        trace=Trace.from_dict(TRACE, "a test"),
    )
    votes = {"a": Vote(bool(number % 2), "so"), "b": Vote(None, error="timeout: 3 s")}
    judged = Judgement(bool(number % 2), "majority", votes)
    labels = Labels("judge", ("d", "e"), frozenset({"d"}), votes={"a": (1,), "b": "timeout"})
    values = {"acc": float(number % 2), "char3gram_recall": 1 / 3, "language_check": 1.0}
    record = row_record(doc, RowScores(values, {"f1": "no words"}), found, judged, labels)
    ledger = {"m": CallCounts(calls=number + 1, failures={"timeout": 1}, seconds=0.1 + 0.2)}
    answer = {
        **TERRITORY,
        "territory": f"T{number}",
        "query_id": doc.id,
        "query_lang": doc.query_lang,
        "control_query": number == 1,
    }
    parts: dict[str, Any] = {
        **sufficiency_record(judged),
        "grounding": Grounding(
            "de", (Claim(0, 1, "supported", 1.0, 1, "d", "en", votes={**votes, "a": Vote("supported", passage=1)}),)
        ),
        "concurrence": TerritoryAnswer(**answer, claimant_ind=number % 2, outcome="chosen"),
        "citations": CitedAnswer("Cited Documents: 0\nExplanation: <doc0>", ("en", "ar")),
        "answer": AnswerRecord("a", True, False),
        "answer_translated": "b",
        "controls": ControlRecord(
            {"sentence": {"char3gram_recall": 1.0}, "other": {"char3gram_recall": number / 10}},
            {"bare": {"char3gram_recall": "no words"}},
            {"english": "the question is in English"},
        ),
    }
    if number == 0:
        parts |= {
            "failures": (Failure("translation", "t", "timeout", "3 s", "documents"), Failure("answer", "m", "server")),
            "outcome": "empty",
            "unanswered": TerritoryQuestion(**{**answer, "query_id": "u", "territory": "U"}),
            "prompts": PromptCounts(4_096, "max_length", 6, 1),
            "skipped": (TerritoryQuestion(**{**answer, "query_id": "s", "territory": "S"}),),
            "translation": {"translator": "t", "counts": {"queries": {"translated": 2}}},
            "panel": PanelShare({"a": "org/a", "b": "org/b"}, ledger, "language by lingua"),
            "sufficiency_panel": PanelShare({"a": "org/a", "b": "org/b"}, ledger),
            "claims_panel": PanelShare({"a": "org/a", "b": "org/b"}, ledger, scale=SUPPORT),
            "labelling": LabellingShare("judge", models={"a": "org/a"}, ledger=ledger),
        }
    if number == 1:
        parts["fate"] = CUT_OFF
    return replace(record, **parts)


ROWS = [full(i) for i in range(6)]


def through_a_file(value: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(value))
    return read


@pytest.mark.parametrize("record", ROWS[:2], ids=("first of a rank", "another"))
def test_a_row_reads_back_as_the_same_record(record: RowRecord) -> None:
    written = through_a_file(record.to_dict())
    assert written["schema_version"] == 1
    assert RowRecord.from_dict(written) == record
    assert through_a_file(RowRecord.from_dict(written).to_dict()) == written


def test_scores_read_back_as_the_same_record() -> None:
    scores = summarize(ROWS, evaluated="org/a")
    written = through_a_file(scores.to_dict())
    # every part of the scores is present, so that every class is read back
    assert set(written) == {"schema_version", *(name for name in TaskScores.__dataclass_fields__)}
    assert TaskScores.from_dict(written) == scores
    assert through_a_file(TaskScores.from_dict(written).to_dict()) == written
    # rows read from a file give the same scores as rows in memory, to the last digit
    again = summarize([RowRecord.from_dict(through_a_file(row.to_dict())) for row in ROWS], evaluated="org/a")
    assert through_a_file(again.to_dict()) == written


def test_empty_fields_are_left_out() -> None:
    record = row_record(RagDoc("x", "q", "de"), RowScores({"acc": 1.0}))
    assert record.to_dict() == {
        "schema_version": 1,
        "row": "x",
        "cell": {"query_lang": "de"},
        "values": {"acc": 1.0},
    }
    # a missing interval is recorded with its reason
    assert summarize([record]).to_dict()["metrics"]["acc"].keys() == {"value", "low", "high", "n", "method"}


def test_a_file_without_a_version_is_of_the_first() -> None:
    written = {key: value for key, value in ROWS[0].to_dict().items() if key != "schema_version"}
    assert RowRecord.from_dict(written) == ROWS[0]


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_schema_is_refused_with_the_next_step(version: Any) -> None:
    says = rf"run.jsonl, line 3: schema_version is {version!r}, this version of mrag-eval reads 1"
    with pytest.raises(DataError, match=says) as error:
        RowRecord.from_dict({**ROWS[0].to_dict(), "schema_version": version}, "run.jsonl, line 3")
    assert "run again with this version" in str(error.value)
    with pytest.raises(DataError, match=r"out.json: schema_version is "):
        TaskScores.from_dict({**summarize(ROWS).to_dict(), "schema_version": version}, "out.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"values": {"acc": "high"}}, "here: values.acc: input should be a valid number"),
        ({"judge": {"verdict": True}}, "here: judge.outcome: field required"),
        ({"cell": None}, "here: cell: input should be a valid dictionary"),
    ],
)
def test_a_faulty_key_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        RowRecord.from_dict({**ROWS[1].to_dict(), **change}, "here")


def test_records_that_are_read_have_their_names_in_common() -> None:
    text = json.dumps(row_record(RagDoc("x", "q", "de"), RowScores({"acc": 1.0}, {"f1": "no words"})).to_dict())
    first, second = (RowRecord.from_dict(json.loads(text)) for _ in range(2))
    for name in ("cell", "values", "unscored"):
        one, other = getattr(first, name), getattr(second, name)
        assert all(key is same for key, same in zip(one, other, strict=True)), name
    assert first.unscored["f1"] is second.unscored["f1"]
