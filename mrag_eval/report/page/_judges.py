"""Judges in the report: their leniency, their agreement, and the cost of all auxiliary models of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrag_eval.core import to_json
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._parts import percent, rounded

Point = dict[str, Any]


def judge_parts(leaf: Leaf) -> tuple[list[Point], list[Point]]:
    """Return the judges of answers and of passages: their verdicts and their agreement."""
    judges: list[Point] = []
    agreement: list[Point] = []
    scores = leaf.result.scores
    for about, table in (("answers", scores.judge), ("passages suffice", scores.sufficiency)):
        if table is None:
            continue
        base = {"task": leaf.label, "about": about}
        for seat, judge in table.judges.items():
            judges.append(
                base
                | {"judge": seat, "model": judge.model}
                | percent(judge.correct)
                | {"abstained": sum(judge.abstained.values())}
            )
        if table.agreement is None:
            continue
        for name, kappa in {**table.agreement.pairwise, "Fleiss, all judges": table.agreement.fleiss}.items():
            if kappa.value is not None:
                limits = {"low": rounded(kappa.low), "high": rounded(kappa.high)}
                agreement.append(base | {"judges": name, "kappa": rounded(kappa.value), **limits})
    return judges, agreement


def ledger_rows(leaf: Leaf) -> list[Point]:
    """Return calls, tokens and time of every auxiliary model that has a ledger in the results."""
    scores = leaf.result.scores
    paid = (
        ("judging answers", scores.judge.ledger if scores.judge is not None else None),
        ("judging passages", scores.sufficiency.ledger if scores.sufficiency is not None else None),
        ("labelling relevance", scores.relevance.ledger if scores.relevance is not None else None),
    )
    out = [_cost(leaf, about, model, to_json(cost)) for about, found in paid for model, cost in (found or {}).items()]
    translation = scores.translation
    if translation is not None and translation.cost is not None:
        out.append(_cost(leaf, "translating", translation.translator, translation.cost))
    return out


def _cost(leaf: Leaf, about: str, model: str, cost: Mapping[str, Any]) -> Point:
    failures = cost.get("failures")
    count = sum(failures.values()) if isinstance(failures, Mapping) else failures
    return {"task": leaf.label, "about": about, "model": model, **cost, "failures": count}
