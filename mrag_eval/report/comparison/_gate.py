"""A release gate: tests for drops of a candidate beyond what the rules allow, and their power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from mrag_eval.core import DataError
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._compare import PairedRows, difference, paired, smallest_detectable, standard_error
from mrag_eval.report.comparison._gate_rules import Rule, Rules
from mrag_eval.report.files._samples import SampleSet

Verdict = Literal["pass", "FAIL", "not comparable"]


@dataclass(frozen=True)
class Check:
    """Hold the outcome of one rule on all its rows (``language`` None) or on one language.

    ``limit`` is the drop allowed, in the metric's unit. ``p_value`` is one-sided, for a drop larger than that (adjusted
    over the languages if ``language`` is given). ``low`` and ``high`` bound the 95% interval of ``difference``
    (candidate minus baseline). ``detectable`` is the smallest drop beyond the limit that these pairs show with 80%
    power. ``reason`` says why the runs are not comparable.
    """

    task: str
    metric: str
    language: str | None
    verdict: Verdict
    n: int = 0
    baseline: float | None = None
    candidate: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    p_value: float | None = None
    detectable: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class GateResult:
    """Hold all checks; ``exit_code`` is 0 if all pass, 1 for a regression, else 2 if anything is not comparable."""

    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        verdicts = {check.verdict for check in self.checks}
        return 1 if "FAIL" in verdicts else 2 if "not comparable" in verdicts else 0

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"exit_code": self.exit_code, "checks": [asdict(check) for check in self.checks]}


def gate(baseline: Sequence[Path], candidate: Sequence[Path], rules: Rules) -> GateResult:
    """Compare the candidate's sample files with the baseline's (sample files, folders of them, or a baseline file).

    A rule that has nothing, or too little, to compare does not pass: it is not comparable, with the reason.
    """
    before, after = read_runs_or_baseline(baseline), read_runs_or_baseline(candidate)
    return GateResult(tuple(check for rule in rules.rules for check in _apply(rule, rules, before, after)))


def _apply(rule: Rule, rules: Rules, before: Mapping[str, SampleSet], after: Mapping[str, SampleSet]) -> list[Check]:
    named = sorted(task for task in {*before, *after} if _matches(rule.task, before.get(task) or after[task]))
    blank = Check(rule.task, rule.metric, None, "not comparable")
    if not named:
        return [replace(blank, reason=f"no task of either run is called {rule.task}")]
    pairs: list[PairedRows] = []
    for task in named:
        for where, runs in (("baseline", before), ("candidate", after)):
            if task not in runs:
                return [replace(blank, reason=f"{task} is not in the {where}")]
        try:
            pair = paired(before[task], after[task], rules.differs)
        except DataError as err:
            return [replace(blank, reason=err.message)]
        if any(pair.unpaired):
            lost, new = pair.unpaired
            return [replace(blank, reason=f"{task}: {lost} rows only in the baseline, {new} only in the candidate")]
        pairs.append(pair)
    whole = _pooled(rule.task, pairs)
    overall = _check(rule, rules, whole, None)
    return [overall, *_languages(rule, rules, whole)]


def _matches(pattern: str, run: SampleSet) -> bool:
    return fnmatchcase(run.task, pattern) or pattern in run.groups


def _pooled(name: str, pairs: Sequence[PairedRows]) -> PairedRows:
    """Return the rows of several tasks as one; groups with the same name in several tasks are resampled together."""
    return PairedRows(
        pairs[0].task if len(pairs) == 1 else name,
        tuple(row for pair in pairs for row in pair.first),
        tuple(row for pair in pairs for row in pair.second),
        (0, 0),
    )


def _languages(rule: Rule, rules: Rules, whole: PairedRows) -> list[Check]:
    guard = rule.per_language
    if guard is None:
        return []
    from mrag_eval.metrics import benjamini_hochberg

    alike = rule.model_copy(
        update={"max_drop": guard.max_drop, "max_drop_relative": None, "min_n": guard.min_n, "must_detect": None}
    )
    checks = [_check(alike, rules, whole.of_language(language), language) for language in whole.languages]
    adjusted = benjamini_hochberg([None if c.verdict == "not comparable" else c.p_value for c in checks])
    return [
        check if p is None else replace(check, p_value=p, verdict="FAIL" if p <= guard.fdr else "pass")
        for check, p in zip(checks, adjusted, strict=True)
    ]


def _check(rule: Rule, rules: Rules, pair: PairedRows, language: str | None) -> Check:
    first = [row.values.get(rule.metric) for row in pair.first]
    second = [row.values.get(rule.metric) for row in pair.second]
    check = Check(pair.task, rule.metric, language, "not comparable")
    for where, values in (("baseline", first), ("candidate", second)):
        if all(value is None for value in values):
            return replace(check, reason=f"the {where} has no {rule.metric}")
    found = difference(pair, rule.metric, language, rules.seed)
    # if less is better, a rise is the drop: swap the runs
    a, b = (second, first) if rule.lower_is_better else (first, second)
    groups = [row.group for row in pair.first]
    grouped = groups if len(set(groups)) < len(groups) else None
    alpha = rule.alpha or rules.alpha
    limit = _limit(rule, found.first)
    detectable = smallest_detectable(b, a, grouped, alpha=alpha, one_sided=True)
    check = replace(
        check,
        n=found.n,
        baseline=found.first,
        candidate=found.second,
        difference=found.difference,
        low=found.low,
        high=found.high,
        limit=limit,
        detectable=detectable,
    )
    lost = sum((x is None) != (y is None) for x, y in zip(first, second, strict=True))
    if lost > rule.max_unpaired * len(first):
        return replace(check, reason=f"{lost} of {len(first)} rows are scored in one run only (max_unpaired allows it)")
    needed = rule.min_n or rules.min_n
    if found.n < needed:
        return replace(check, reason=f"{found.n} rows, {needed} needed")
    if rule.must_detect is not None and detectable is not None and detectable > rule.must_detect:
        return replace(
            check, reason=f"too few rows to show a drop of {rule.must_detect:g} (the smallest is {detectable:.3g})"
        )
    p = p_drop(b, a, limit, grouped, seed=rules.seed)
    if p is None:
        return replace(check, reason="fewer than two independent rows")
    return replace(check, p_value=p, verdict="FAIL" if p <= alpha else "pass")


def _limit(rule: Rule, baseline: float | None) -> float:
    if rule.max_drop_relative is not None:
        return rule.max_drop_relative * abs(baseline or 0.0)
    return rule.max_drop or 0.0


def p_drop(
    second: Sequence[float | None],
    first: Sequence[float | None],
    limit: float = 0.0,
    groups: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> float | None:
    """Return the one-sided p of a drop from first to second by more than ``limit``; None below two units.

    Without a limit and without groups, the paired tests of :mod:`mrag_eval.metrics` are used (McNemar's
    exact one for 0 and 1, a permutation of the runs for other values), halved on the side of a drop. Otherwise a t test
    of second - first + limit, with the cluster-robust error over groups and units - 1 degrees of freedom.
    """
    from scipy.stats import t

    from mrag_eval.metrics import mcnemar_exact, paired_permutation

    found = standard_error(second, first, groups)
    if found is None:
        return None
    mean, error, units = found
    if limit == 0 and groups is None:
        if {*first, *second} <= {0.0, 1.0, None}:
            test = mcnemar_exact(second, first)
        else:
            test = paired_permutation(second, first, seed=seed)
        if test.p_value is None:
            return None
        return test.p_value / 2 if mean < 0 else 1 - test.p_value / 2 if mean > 0 else 1.0
    if error == 0:
        return 0.0 if mean + limit < -1e-12 else 1.0
    return float(t.cdf((mean + limit) / error, units - 1))
