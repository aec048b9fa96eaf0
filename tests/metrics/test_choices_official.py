"""The originals' answer rules, case by case, including their faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.metrics import (
    BorderlinesCitation,
    extract_choice_blend_official,
    parse_borderlines_citation,
    parse_borderlines_direct,
    parse_borderlines_freetext,
)
from mrag_eval.platform import MetricError


def test_blend(reference: Path) -> None:
    data = json.loads((reference / "blend_mcq_answer_extraction.json").read_text(encoding="utf-8"))
    assert len(data["cases"]) == 25
    for case in data["cases"]:
        found = extract_choice_blend_official(case["response"], data["prompt"], data["choices"])
        assert found == case["final_ans"], case["response"]


@pytest.fixture
def borderlines(reference: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((reference / "borderlines_answer_parsing.json").read_text(encoding="utf-8"))
    return found


def test_borderlines_direct_and_freetext(borderlines: dict[str, Any]) -> None:
    assert len(borderlines["direct"]) == 35
    for case in borderlines["direct"]:
        response, options = case["response"], case["options"]
        assert parse_borderlines_direct(response, options) == case["index_bordirlines_direct"], response
        expected = case["index_borderlines_freetext"]
        # the original crashes there; here it is a value
        expected = None if expected == "IndexError" else expected
        assert parse_borderlines_freetext(response, options) == expected, response


def test_borderlines_citation(borderlines: dict[str, Any]) -> None:
    assert len(borderlines["citation"]) == 12
    for case in borderlines["citation"]:
        found = parse_borderlines_citation(case["response"], case["options"])
        expected = BorderlinesCitation(case["index"], tuple(case["inline_citations"]), case["cited_documents_line"])
        assert found == expected, case["response"]


@given(st.text("ABCI) {}\"'answer_choice:ExplantoChsOpi<doc0,1>\n", max_size=60), st.integers(1, 4))
def test_nothing_makes_them_raise(response: str, n: int) -> None:
    options = ["Spain", "Morocco", "South Sudan", "Sudan"][:n]
    prompt = "A. x"
    assert isinstance(extract_choice_blend_official(response, prompt, {"A": "Spain"}), str)
    assert -1 <= parse_borderlines_direct(response, options) < n
    assert parse_borderlines_freetext(response, options) in {None, *range(n)}
    assert -1 <= parse_borderlines_citation(response, options).index < n


def test_bad_input() -> None:
    for parse in (parse_borderlines_direct, parse_borderlines_freetext, parse_borderlines_citation):
        with pytest.raises(MetricError, match="must be a string"):
            parse(None, ["Spain"])  # type: ignore[operator]
    with pytest.raises(MetricError, match="must be a string"):
        extract_choice_blend_official(None, "", {})  # type: ignore[arg-type]
