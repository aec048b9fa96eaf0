"""Floors and ceilings of a gate: the candidate's score as it was measured, without a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval.report.comparison._gate_checks import Check
from mrag_eval.report.comparison._gate_rules import Rule, Rules
from mrag_eval.report.comparison._gate_units import groups_of, no_rows, units_word
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import nearer_zero_is_better, scale_of


def bounded(rule: Rule, rules: Rules, check: Check, rows: Sequence[ScoredRow]) -> Check:
    """Return the check of the candidate's score, as measured, against a floor or a ceiling."""
    from mrag_eval.metrics import interval_for, unscored_range

    if not rows:
        return replace(check, reason=no_rows(rule.pair))
    values: list[float | None] = [row.values.get(rule.metric) for row in rows]
    groups = groups_of(rows)
    scale = scale_of(rule.metric)
    score = interval_for(values, groups=groups, seed=rules.seed)
    if score.value is None:
        return replace(check, reason=f"the candidate has no {rule.metric}")
    check = replace(check, n=score.n, candidate=score.value, low=score.low, high=score.high)
    if _beyond(check, score.value):
        return replace(check, verdict="fail")
    end = scale.low if check.floor is not None else scale.high
    if end is not None and not _beyond(check, end):
        return replace(check, reason="no candidate could fail: the bound is at the end of the metric's range")
    unscored = sum(value is None for value in values)
    if unscored and rule.max_unpaired is None:
        ends = unscored_range(values, [0] * len(values), scale.bounds)
        if any(_beyond(check, end) for end in ends):
            told = f"{unscored} of {len(values)} rows are unscored"
            return replace(check, reason=f"{told}: with the worst values there the bound would be crossed")
    if rule.max_unpaired is not None and unscored > rule.max_unpaired * len(values):
        lacking = f"{unscored} of {len(values)} rows are unscored, and max_unpaired is {rule.max_unpaired:g}"
        return replace(check, reason=lacking)
    units = len({row.group for row, value in zip(rows, values, strict=True) if value is not None})
    needed = rule.min_n or rules.min_n
    if units < needed:
        return replace(check, needed=needed, reason=f"{units} of {needed} {units_word(groups)} needed")
    return replace(check, verdict="holds")


def _beyond(check: Check, value: float) -> bool:
    """Return whether a score is below the check's floor, or above its ceiling."""
    # a mean of equal values may differ from them in its last digit
    slack = 1e-9 * max(1.0, abs(value))
    if check.floor is not None:
        return value < check.floor - slack
    value = abs(value) if nearer_zero_is_better(check.metric) else value
    return check.ceiling is not None and value > check.ceiling + slack
