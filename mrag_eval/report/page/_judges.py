"""Judges in the report: their leniency, their agreement, and what all auxiliary models of a run cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._parts import percent

Point = dict[str, Any]
# Parts of the scores that hold ledgers, and what their models did.
_PAID = {"judge": "judging answers", "sufficiency": "judging passages", "relevance": "labelling relevance"}


def judge_parts(leaf: Leaf) -> tuple[list[Point], list[Point]]:
    """The judges of answers and of passages: what each says, how far they agree."""
    judges: list[Point] = []
    agreement: list[Point] = []
    scores = leaf.result.config["scores"]
    for about, table in (("answers", scores.get("judge")), ("passages suffice", scores.get("sufficiency"))):
        if not table:
            continue
        base = {"task": leaf.label, "about": about}
        for seat, judge in (table.get("judges") or {}).items():
            judges.append(
                base
                | {"judge": seat, "model": judge.get("model", "")}
                | percent(judge.get("correct") or {})
                | {"abstained": sum((judge.get("abstained") or {}).values())}
            )
        found = table.get("agreement") or {}
        pairs = {**(found.get("pairwise") or {}), "Fleiss, all judges": found.get("fleiss")}
        for name, kappa in pairs.items():
            entry = kappa if isinstance(kappa, Mapping) else {"value": kappa}
            if entry.get("value") is not None:
                limits = {k: None if entry.get(k) is None else round(float(entry[k]), 3) for k in ("low", "high")}
                agreement.append(base | {"judges": name, "kappa": round(float(entry["value"]), 3), **limits})
    return judges, agreement


def ledger_rows(leaf: Leaf) -> list[Point]:
    """Calls, tokens and time of every auxiliary model that the results have a ledger of."""
    scores = leaf.result.config["scores"]
    out = []
    for part, about in _PAID.items():
        for model, cost in ((scores.get(part) or {}).get("ledger") or {}).items():
            out.append(_cost(leaf, about, model, cost))
    translation = scores.get("translation") or {}
    if isinstance(translation.get("cost"), Mapping):
        out.append(_cost(leaf, "translating", str(translation.get("translator", "")), translation["cost"]))
    return out


def _cost(leaf: Leaf, about: str, model: str, cost: Mapping[str, Any]) -> Point:
    failures = cost.get("failures")
    count = sum(failures.values()) if isinstance(failures, Mapping) else failures
    return {"task": leaf.label, "about": about, "model": model, **cost, "failures": count}
