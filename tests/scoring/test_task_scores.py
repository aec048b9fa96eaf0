"""Scores of a whole task, by their name in its YAML, through the harness."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.config import Measurement
from mrag_eval.core import Failure
from mrag_eval.platform import DataError
from mrag_eval.report import LeafResult, TaskConfig
from mrag_eval.scoring import (
    BY_RULE,
    DECLINED,
    EMPTY,
    NO_CORRECT,
    UNDEFINED,
    RowRecord,
    TerritoryAnswer,
    TerritoryQuestion,
    summarize,
    territory_values,
)
from tests.task.test_hook import build, run
from tests.worlds.small import BASE, ScriptedLM, write_task


def test_concurrence_scores_of_replayed_answers(test_data: Path, reference: Path, tmp_path: Path) -> None:
    """One of the published layout's answer sets, prompt in and answer out, gives the reference values."""
    folder = test_data / "borderlines"
    queries = [json.loads(line) for line in (folder / "queries_720.jsonl").read_text("utf-8").splitlines()]
    answers = {}
    for line in (folder / "responses_synthetic" / "noisy_controller.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        answers[row["query_id"]] = row["claimant_ind"]
    keys = ("territory", "claimants", "claimant_langs", "controller", "controller_lang", "control_query")
    rows = [
        {
            "id": q["query_id"],
            "query": f"[{q['query_id']}] {q['query']}",
            "lang": q["query_lang"],
            "choices": q["claimants_native"],
            "gold_choice": 0,
            "group_id": q["territory"],
            **{key: q[key] for key in keys},
        }
        for q in queries
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    data = {"benchmark": "jsonl", "path": str(tmp_path / "q.jsonl")}
    block = {**BASE, "metrics": ["concurrence"], "prompt": {"template": "multiple_choice"}}
    write_task(tmp_path, "borders", **block, data=data, retrieval={"mode": "no_ir"})

    def replay(prompt: str) -> str:
        query = prompt.split("[", 1)[1].split("]", 1)[0]
        return f"{chr(65 + answers[query])})" if answers.get(query, -1) >= 0 else "I cannot say."

    scores = run(tmp_path, "borders", lm=ScriptedLM(replay))["configs"]["borders"]["scores"]["concurrence"]
    expected = json.loads((reference / "concurrence_scores.json").read_text("utf-8"))
    for name, value in expected["synthetic_sets"]["noisy_controller"].items():
        if "CS" in name and not isinstance(value, str):
            assert scores["scores"][name] == pytest.approx(value, abs=1e-12), name
    interval = scores["intervals"]["KB_CS"]
    assert interval["low"] < scores["scores"]["KB_CS"] < interval["high"]


def test_a_question_without_an_answer_takes_its_territory_out_of_the_scores() -> None:
    """Fewer languages agree more easily: a territory of which one answer failed would be more consistent."""
    facts = {"claimants": ("A", "B"), "claimant_langs": ("de", "en"), "controller": "A", "controller_lang": "de"}

    def row(territory: str, lang: str, claimant: int, *, failed: bool = False, control: bool = False) -> RowRecord:
        name = f"{territory}-{lang}{'-control' * control}"
        about = {**facts, "territory": territory, "query_id": name, "query_lang": lang, "control_query": control}
        record = RowRecord(name, {"query_lang": lang}, {})
        if failed:
            failures = (Failure("answer", "m", "server"),)
            return replace(record, failures=failures, unanswered=TerritoryQuestion(**about))
        return replace(record, concurrence=TerritoryAnswer(**about, claimant_ind=claimant, outcome="chosen"))

    def rows(*, failed: bool) -> list[RowRecord]:
        first = [row("T", "de", 0), row("T", "en", 1, failed=failed), row("T", "fr", 0, control=True)]
        return [*first, row("U", "de", 0), row("U", "en", 0), row("U", "fr", 0, control=True)]

    whole, part = summarize(rows(failed=False)), summarize(rows(failed=True))
    assert whole.concurrence is not None
    assert part.concurrence is not None
    assert whole.concurrence.scores["Cst_CS_all"] < 1.0
    assert part.concurrence.scores["Cst_CS_all"] == summarize(rows(failed=False)[3:]).concurrence.scores["Cst_CS_all"]  # type: ignore[union-attr]
    assert (part.concurrence.lost, part.concurrence.unanswered) == (1, 1)
    leaf = LeafResult("borders", part, TaskConfig(), Measurement("borders"))
    # of the two territories one is known: Con_CS is 1 there, and anything between 0 and 1 in the other
    assert leaf.metrics["concurrence.Con_CS"].bounds == (0.5, 1.0)
    assert leaf.metrics["concurrence.Con_CS"].no_headline
    assert leaf.metrics["concurrence.read"].bounds == (5 / 6, 1.0)
    # every question with an answer counts in the shares of replies
    assert part.concurrence.rates["read"].n == 5
    assert part.unscored["concurrence.KB_CS"] == {"answer failed (server)": 1}
    assert territory_values(rows(failed=True)).keys() == {"U"}
    assert summarize(rows(failed=False)).to_dict().keys() & {"failures", "outcomes", "by_language"} == set()


NO_WAY_TO_DECLINE = "the prompt offers no way to decline"
# Reasons that the settings of a run give, or another rate.
LEFT_OUT = {
    *("the judge block asks for no language check", "the prompt asks for no answer tag", NO_WAY_TO_DECLINE),
    *("this mode has no ranking; see shown@k", "a passage shown answers the question"),
    "no passage shown answers the question",
}


@pytest.mark.parametrize("reason", sorted({*LEFT_OUT, *BY_RULE, *UNDEFINED, DECLINED, EMPTY, NO_CORRECT, "any other"}))
def test_only_what_a_rule_leaves_out_is_not_unscored(reason: str) -> None:
    """Three rows of four lack a value: 0.75 of them are unscored, unless the settings leave nothing to measure, or the
    rows count for another rate.
    """
    rows = [RowRecord(str(i), {"query_lang": "en"}, {"f1": 1.0}, unscored={"declined": reason}) for i in range(3)]
    scores = summarize([*rows, RowRecord("3", {"query_lang": "en"}, {"f1": 0.0})])
    assert scores.unscored_share == (0.0 if reason in LEFT_OUT else 0.75)
    # the reason is told either way
    assert scores.unscored == {"declined": {reason: 3}}


def test_two_reasons_of_one_metric_count_apart() -> None:
    """Of ten rows, four have no way to decline, and one failed to be read: 0.1."""
    reasons = [NO_WAY_TO_DECLINE] * 4 + [EMPTY] + [None] * 5
    rows = [
        RowRecord(str(i), {"query_lang": "en"}, {"f1": 1.0}, unscored={} if why is None else {"declined": why})
        for i, why in enumerate(reasons)
    ]
    assert summarize(rows).unscored_share == pytest.approx(0.1)
    assert summarize([]).unscored_share == 0.0
    # no metric was measured, as without judges for one that needs them
    assert summarize([replace(row, values={}, unscored={}) for row in rows]).unscored_share == 1.0


def test_concurrence_names_missing_fields_before_anything_runs(tasks: Path) -> None:
    with pytest.raises(DataError, match="task small: row 'q-lighthouse-en' has no 'territory'"):
        build(tasks, metadata={"metrics": ["concurrence"]})


def test_citations_by_language(tasks: Path) -> None:
    metadata: dict[str, Any] = {"metrics": ["citations", "match"], "retrieval.mode": "qlang"}
    cites = ScriptedLM(lambda prompt: "Cited Documents: 0\nExplanation: so it says <doc0>, and <doc9>")
    results = run(tasks, lm=cites, metadata=metadata)
    inline = results["configs"]["small"]["scores"]["citations"]["inline"]
    assert (inline["queries"], inline["citing"], inline["out_of_range"]) == (15, 15, 15)
    assert set(inline["by_language"]) == {"en", "de", "es", "ru", "zh"}
    assert inline["by_query_language"]["de"].keys() == {"de"}
    json.dumps(results["configs"]["small"]["scores"], allow_nan=False)
