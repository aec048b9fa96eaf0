"""The yield table and the datasheet agree with the reports."""

from __future__ import annotations

import json
from pathlib import Path

from mrag_eval.building import yield_table
from mrag_eval.building.steps._steps import StepReport, call_table, write_datasheet
from tests.tables import single_spaced

REPORTS = [
    StepReport("articles", 1200, 1000, {"no date": 150, "too short": 50}),
    StepReport("topic", 10, 0, {"unrelated": 10}, ledgers={"gpt": {"calls": 10, "cached": 0, "tokens_in": 9000,
                                                                  "tokens_out": 100}}),
]  # fmt: skip


def test_yield_table_counts_by_step_and_reason() -> None:
    assert single_spaced(yield_table(REPORTS)).splitlines()[2:] == [
        "| articles | 1,200 | 1,000 | 200 | no date 150, too short 50 |",
        "| topic | 10 | 0 | 10 | unrelated 10 |",
    ]


def test_calls_are_listed_where_there_were_some() -> None:
    assert single_spaced(call_table(REPORTS)).splitlines()[2:] == ["| topic | gpt | 10 | 0 | 9,000 | 100 |"]
    assert call_table(REPORTS[:1]) == ""


def test_datasheet_holds_facts_steps_and_sections(tmp_path: Path) -> None:
    facts = {"source": "news.jsonl | 2024", "models": {"judge": {"name": "gpt", "temperature": 0.0}}}
    page = write_datasheet(tmp_path, "A set", facts, REPORTS, sections={"Quality": "none yet"}).read_text()
    page = single_spaced(page)
    assert page.startswith("# A set\n")
    assert "**Source**: news.jsonl | 2024" in page
    assert "## Models\n\n| | |\n|-------|-------------------------|\n| judge | name gpt, temperature 0 |" in page
    assert "| topic | 10 | 0 | 10 | unrelated 10 |" in page
    assert page.rstrip().endswith("## Quality\n\nnone yet")
    record = json.loads((tmp_path / "datasheet.json").read_text())
    assert record["source"] == "news.jsonl | 2024"
    assert record["steps"][0]["dropped"] == {"no date": 150, "too short": 50}
    assert not list(tmp_path.glob("*.partial"))
