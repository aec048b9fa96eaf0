"""A release gate: tests for drops of a candidate beyond what the rules allow, corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from mrag_eval.core import DataError, Wait
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._compare import PairedRows, difference, is_of, paired, smallest_detectable
from mrag_eval.report.comparison._failed_rows import FailedRows, marks
from mrag_eval.report.comparison._gate_rules import Correction, Guard, Rule, Rules
from mrag_eval.report.files._samples import SampleSet
from mrag_eval.report.files._scored_rows import ScoredRow

# Rows, or groups, from which the studentised bootstrap holds its level for differences of any shape: with fewer, a
# sample may contain none of the rows that change a lot (docs/gate.md).
EXACT_FROM = 300
Verdict = Literal["pass", "FAIL", "not comparable", "not shown"]
Values = list[float | None]


@dataclass(frozen=True)
class Check:
    """Hold the outcome of one rule on all its rows (``language`` None), on one language or on a pair (``de->en``).

    ``limit`` is the drop allowed, in the metric's unit, ``floor`` the lowest score allowed, ``ceiling`` the highest.
    ``p_value`` is one-sided, for a drop larger than the limit; ``p_adjusted`` the same after the correction over all
    tests of the gate. ``p_within`` is that for a drop smaller than the limit, which a rule of non-inferiority has to
    show. ``low`` and ``high`` bound the 95% interval of ``difference`` (candidate minus baseline), or of the score that
    a floor or a ceiling holds.
    ``detectable`` is the smallest drop beyond the limit that these pairs show with 80% power in this gate. ``better``
    and ``worse`` are the ids of rows that gained and lost. ``reason`` says why there is nothing to pass. ``part`` says
    how many of the rows were run, if not all. ``caution`` says from how many rows on the test of a verdict is exact, if
    there are fewer. ``marked`` names the languages of which more than a tenth of the rows failed.
    """

    task: str
    metric: str
    language: str | None
    verdict: Verdict = "not comparable"
    n: int = 0
    baseline: float | None = None
    candidate: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    floor: float | None = None
    ceiling: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    p_within: float | None = None
    detectable: float | None = None
    reason: str | None = None
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    part: str | None = None
    caution: str | None = None
    marked: str | None = None


@dataclass(frozen=True)
class GateResult:
    """Hold all checks; ``exit_code`` is 0 if all pass, 1 for a regression, 2 if one cannot be compared or shown.

    ``tests`` is the number of p-values that the ``correction`` is over.
    """

    checks: tuple[Check, ...]
    correction: Correction = "holm"
    tests: int = 0
    alpha: float = 0.05

    @property
    def exit_code(self) -> int:
        verdicts = {check.verdict for check in self.checks}
        return 1 if "FAIL" in verdicts else 0 if verdicts <= {"pass"} else 2

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"exit_code": self.exit_code, **asdict(self)}


@dataclass(frozen=True)
class _Tested:
    """Hold a check before its verdict: its rule, and the values that were compared (better is higher).

    ``caution`` is the check's, if its verdict rests on a p-value.
    """

    check: Check
    rule: Rule
    before: Values
    after: Values
    groups: list[str] | None
    caution: str | None = None


def gate(baseline: Sequence[Path], candidate: Sequence[Path], rules: Rules) -> GateResult:
    """Compare the candidate's sample files with the baseline's (sample files, folders of them, or a baseline file).

    A drop that is shown fails. A rule without one passes only if there is enough to compare; else it is not comparable,
    with the reason.
    """
    before, after = read_runs_or_baseline(baseline), read_runs_or_baseline(candidate)
    with Wait("testing the rules", len(rules.rules), "rules") as wait:
        found = [part for rule in wait.over(rules.rules) for part in _apply(rule, rules, before, after)]
    adjusted = iter(_adjusted([part.check.p_value for part in found if isinstance(part, _Tested)], rules.correction))
    tests = sum(isinstance(part, _Tested) for part in found)
    checks = (_decided(part, next(adjusted), tests, rules) if isinstance(part, _Tested) else part for part in found)
    return GateResult(tuple(checks), rules.correction, tests, rules.alpha)


def _adjusted(p_values: Sequence[float | None], correction: Correction) -> Sequence[float | None]:
    from mrag_eval.metrics import benjamini_hochberg, holm

    return p_values if correction == "none" else (holm if correction == "holm" else benjamini_hochberg)(p_values)


def _decided(part: _Tested, adjusted: float | None, tests: int, rules: Rules) -> Check:
    """Return the check with its verdict: a drop that is shown comes first, then what keeps the rule from passing."""
    rule, alpha = part.rule, part.rule.alpha or rules.alpha
    # Holm's first step is at this level, so it is the one that the power of a single drop is for
    level = alpha / tests if rules.correction == "holm" else alpha
    detectable = smallest_detectable(part.after, part.before, part.groups, alpha=level, one_sided=True)
    check = replace(part.check, p_adjusted=adjusted, detectable=detectable)
    if adjusted is not None and adjusted <= alpha:
        return replace(check, verdict="FAIL", caution=part.caution)
    if check.reason is not None:
        return check
    if check.p_within is not None:
        shown = check.p_within <= alpha
        return replace(check, verdict="pass", caution=part.caution) if shown else replace(
            check, verdict="not shown", reason=f"not shown: a drop smaller than {check.limit:.3g}"
        )  # fmt: skip
    if rule.must_detect is not None and detectable is not None and detectable > rule.must_detect:
        reason = f"too few rows to show a drop of {rule.must_detect:g} (the smallest is {detectable:.3g})"
        return replace(check, reason=reason)
    return replace(check, verdict="pass")


def _apply(
    rule: Rule, rules: Rules, before: Mapping[str, SampleSet], after: Mapping[str, SampleSet]
) -> list[Check | _Tested]:
    runs = {**before, **after} if rule.limits_drop else after
    named = sorted(task for task in runs if _matches(rule.task, before.get(task) or after[task]))
    blank = Check(rule.task, rule.metric, rule.pair)
    if not named:
        where = "either run" if rule.limits_drop else "the candidate"
        return [replace(blank, reason=f"no task of {where} is called {rule.task}")]
    found: list[Check | _Tested] = []
    whole = Check(named[0] if len(named) == 1 else rule.task, rule.metric, rule.pair)
    held = [] if rule.min_score is None else [replace(whole, floor=rule.min_score)]
    held += [] if rule.max_score is None else [replace(whole, ceiling=rule.max_score)]
    for check in held:
        rows = [r for task in named if task in after for r in after[task].rows.values() if is_of(r, rule.metric)]
        kept = [row for row in rows if rule.pair is None or fnmatchcase(row.pair, rule.pair)]
        parts = {task: after[task].part for task in named if task in after}
        asked = sum((FailedRows.of(after[task].rows.values()) for task in parts), FailedRows())
        languages = {row.language for row in kept} - {""}
        marked = marks({"candidate": asked}, languages)
        found.append(replace(_bounded(rule, rules, check, kept), part=_parts(parts), marked=marked))
    if rule.limits_drop:
        found += _compared(rule, rules, blank, named, before, after)
    return found


def _compared(
    rule: Rule,
    rules: Rules,
    blank: Check,
    named: Sequence[str],
    before: Mapping[str, SampleSet],
    after: Mapping[str, SampleSet],
) -> list[Check | _Tested]:
    pairs: list[PairedRows] = []
    for task in named:
        for where, runs in (("baseline", before), ("candidate", after)):
            if task not in runs:
                return [replace(blank, reason=f"{task} is not in the {where}")]
        try:
            pairs.append(paired(before[task], after[task], rules.differs))
        except DataError as err:
            return [replace(blank, reason=err.message)]
    alone = [
        f"{pair.task}: {pair.unpaired[0]} rows only in the baseline, {pair.unpaired[1]} only in the candidate"
        for pair in pairs
        if any(pair.unpaired)
    ]
    whole = _pooled(rule.task, pairs).of_metric(rule.metric)
    if rule.pair is not None:
        whole = whole.of_pair(rule.pair)
    parts = [_test(rule, rules, whole, rule.pair, "; ".join(alone) or None)]
    if rule.per_language is not None:
        own = _guarded(rule, rule.per_language)
        parts += [_test(own, rules, whole.of_language(language), language) for language in whole.languages]
    if rule.per_pair is not None:
        own = _guarded(rule, rule.per_pair)
        parts += [_test(own, rules, whole.of_pair(name), name) for name in whole.pairs]
    return parts


def _matches(pattern: str, run: SampleSet) -> bool:
    return fnmatchcase(run.task, pattern) or pattern in run.groups


def _pooled(name: str, pairs: Sequence[PairedRows]) -> PairedRows:
    """Return the rows of several tasks as one; groups with the same name in several tasks are resampled together."""
    return PairedRows(
        pairs[0].task if len(pairs) == 1 else name,
        tuple(row for pair in pairs for row in pair.first),
        tuple(row for pair in pairs for row in pair.second),
        (0, 0),
        _parts({pair.task: pair.part for pair in pairs}),
        (
            sum((pair.failed[0] for pair in pairs), FailedRows()),
            sum((pair.failed[1] for pair in pairs), FailedRows()),
        ),
    )


def _parts(parts: Mapping[str, str | None]) -> str | None:
    """Return how many rows of the tasks were run, by task if there are several; None for all."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    return ", ".join(f"{task}: {part}" for task, part in parts.items() if part) or None


def _guarded(rule: Rule, guard: Guard) -> Rule:
    """Return the rule for one language or pair."""
    own = {"max_drop": guard.max_drop, "max_drop_relative": None, "min_n": guard.min_n}
    return rule.model_copy(update={**own, "must_detect": None, "non_inferiority": False})


def _bounded(rule: Rule, rules: Rules, check: Check, rows: Sequence[ScoredRow]) -> Check:
    """Return the check of the candidate's score, as measured, against a floor or a ceiling."""
    from mrag_eval.metrics import interval_for

    if not rows:
        return replace(check, reason=_no_rows(rule.pair))
    values: Values = [row.values.get(rule.metric) for row in rows]
    groups = _groups(rows)
    score = interval_for(values, groups=groups, seed=rules.seed)
    if score.value is None:
        return replace(check, reason=f"the candidate has no {rule.metric}")
    check = replace(check, n=score.n, candidate=score.value, low=score.low, high=score.high)
    if check.floor is not None and score.value < check.floor:
        return replace(check, verdict="FAIL")
    if check.ceiling is not None and score.value > check.ceiling:
        return replace(check, verdict="FAIL")
    unscored = sum(value is None for value in values)
    if unscored > rule.max_unpaired * len(values):
        lacking = f"{unscored} of {len(values)} rows are unscored, and max_unpaired is {rule.max_unpaired:g}"
        return replace(check, reason=lacking)
    reason = _too_few(values, values, groups, rule.min_n or rules.min_n)
    return replace(check, reason=reason) if reason else replace(check, verdict="pass")


def _test(
    rule: Rule, rules: Rules, pair: PairedRows, language: str | None, reason: str | None = None
) -> Check | _Tested:
    """Return the tests of one rule on its rows; ``reason`` is a known cause why it cannot pass."""
    from mrag_eval.metrics import paired_margin

    check = Check(pair.task, rule.metric, language, part=pair.part, marked=pair.marked("baseline", "candidate"))
    if rule.less_is_better is None:
        why = f"neither more nor less of {rule.metric} is better: write lower_is_better: true (or false) in the rule"
        return replace(check, reason=why)
    if not pair.first:
        return replace(check, reason=_no_rows(language))
    first: Values = [row.values.get(rule.metric) for row in pair.first]
    second: Values = [row.values.get(rule.metric) for row in pair.second]
    for where, values in (("baseline", first), ("candidate", second)):
        if all(value is None for value in values):
            return replace(check, reason=f"the {where} has no {rule.metric}")
    found = difference(pair, rule.metric, language, rules.seed)
    limit = rule.max_drop or (rule.max_drop_relative or 0.0) * abs(found.first or 0.0)
    # if less is better, a rise is the drop: swap the runs
    before, after = (second, first) if rule.less_is_better else (first, second)
    groups = _groups(pair.first)
    dropped = paired_margin(before, after, limit, groups=groups, seed=rules.seed)
    within = paired_margin(after, before, -limit, groups=groups, seed=rules.seed) if rule.non_inferiority else None
    check = replace(
        check,
        n=found.n,
        baseline=found.first,
        candidate=found.second,
        difference=found.difference,
        low=found.low,
        high=found.high,
        limit=limit,
        p_value=dropped.p_value,
        p_within=None if within is None else within.p_value,
        reason=reason or _obstacle(rule, rules, first, second, groups) or dropped.reason,
        better=found.better,
        worse=found.worse,
    )
    caution = _caution(dropped.method, found.n, groups)
    return check if dropped.p_value is None else _Tested(check, rule, before, after, groups, caution)


def _caution(method: str, n: int, groups: list[str] | None) -> str | None:
    """Return from how many rows (groups of rows, where there are groups) the test is exact, if there are fewer."""
    units, word = (n, "rows") if groups is None else (len(set(groups)), "groups of rows")
    if not method.startswith("studentised bootstrap") or units >= EXACT_FROM:
        return None
    return f"exact from {EXACT_FROM} {word} on: {units} may contain none that change a lot"


def _groups(rows: Sequence[ScoredRow]) -> list[str] | None:
    """Return the groups to resample; None if every row is its own group."""
    groups = [row.group for row in rows]
    return groups if len(set(groups)) < len(groups) else None


def _obstacle(rule: Rule, rules: Rules, first: Values, second: Values, groups: list[str] | None) -> str | None:
    """Return why a rule without a drop does not pass; None if nothing is missing."""
    lost = sum((x is None) != (y is None) for x, y in zip(first, second, strict=True))
    if lost > rule.max_unpaired * len(first):
        return f"{lost} of {len(first)} rows are scored in one run only, and max_unpaired is {rule.max_unpaired:g}"
    return _too_few(first, second, groups, rule.min_n or rules.min_n)


def _too_few(first: Values, second: Values, groups: list[str] | None, needed: int) -> str | None:
    """Return a reason if fewer rows (groups of rows, where there are groups) than needed have a score in both runs."""
    names = groups if groups is not None else [str(i) for i in range(len(first))]
    units = {name for name, x, y in zip(names, first, second, strict=True) if x is not None and y is not None}
    word = "rows" if groups is None else "groups of rows"
    return f"too few {word} ({len(units)} of {needed})" if len(units) < needed else None


def _no_rows(pair: str | None) -> str:
    return "no row to compare" if pair is None else f"no row has the languages {pair} (question->document)"
