"""Traces: the same on disk as ever, and an error for what they cannot hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mrag_eval.core import AgentUsage, Trace, TracedQuestion
from mrag_eval.platform import DataError

USAGE = {"calls": 3, "cached": 1, "tokens_in": 20, "tokens_out": 4, "seconds": 0.30000000000000004}
SCORES = {"relevance": 5, "usefulness": 4, "clarity_specificity": 3, "compatibility": 5}
HIT = {"id": "p", "lang": "en", "title": "T", "text": "In 1841. \ud83d", "score": 0.1, "new": True, "valid": True}
ROUND = {"round": 1, "languages": ["en", "de"], "query": "When?"}
TRACE: dict[str, Any] = {
    "stopped": "max_rounds",
    "valid": 1,
    "shown": ["p"],
    "fallback": False,
    "faults": {"critic: timeout (unscored)": 1},
    "usage": USAGE,
    "rounds": [
        {
            **ROUND,
            "hits": [HIT | {"critic": SCORES | {"total": 11.0, "critique": ""}}, HIT | {"unscored": "timeout"}],
            "added": 1,
            "enough_documents": False,
            "reason": "",
            "faults": {"critic: timeout (unscored)": 1},
            "usage": {"planner": USAGE, "critic": USAGE},
        },
        {**ROUND, "round": 2, "hits": [], "added": 0, "usage": {}},
    ],
}
LINE = {"task": "t", "doc_id": 7, "id": "r", "query": "When?", "query_lang": "en"}


@pytest.mark.parametrize("choices", [{}, {"choices": ["1841", "1842"]}])
def test_a_line_is_written_as_it_was_read(choices: dict[str, Any]) -> None:
    line = {**LINE, **choices, **TRACE}
    # keys in their order, empty fields only where they mean something
    assert json.dumps(TracedQuestion.from_dict(line, "x").to_dict()) == json.dumps(line)
    assert json.dumps(Trace.from_dict(TRACE, "x").to_dict()) == json.dumps(TRACE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rounds": [{**ROUND, "hits": [{"id": "p"}], "added": 0}]}, "x: rounds.0.hits.0.lang: field required"),
        ({"usage": {"calls": "many"}}, "x: usage.calls: input should be a valid integer"),
    ],
)
def test_a_faulty_key_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Trace.from_dict(TRACE | change, "x")


def test_costs_add_up() -> None:
    total = AgentUsage(1, 1, 10, 2, 0.5) + AgentUsage(2, 0, 5, 1, 0.25)
    assert (total, total.tokens) == (AgentUsage(3, 1, 15, 3, 0.75), 18)
