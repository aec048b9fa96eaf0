"""A release gate: tests for drops of a candidate beyond what the rules allow, as one family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.config import EVERYTHING, called_here
from mrag_eval.models import UNKNOWN_MODEL
from mrag_eval.platform import ConfigError, DataError, Places, Wait, close_match, paths_of
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._control_marks import limits_of, out_of_reach
from mrag_eval.report.comparison._failed_rows import FailedRows, marks
from mrag_eval.report.comparison._gate_rules import Check, GateResult, GateRules, Guard, Rule, Side, read_rules
from mrag_eval.report.comparison._gate_verdicts import (
    RuleTest,
    bounded,
    drop_of,
    mean_of,
    no_rows,
    unscored_of,
    verdicts,
    why_unscored,
)
from mrag_eval.report.comparison._paired_rows import (
    PairedRows,
    changed,
    check_differs,
    is_of,
    is_plain_mean,
    other_versions,
    paired,
    parts_run,
    pooled,
)
from mrag_eval.report.files._runs import SampleSet
from mrag_eval.report.files._scored_rows import PAIR, ScoredRow
from mrag_eval.scoring import TASK_MEASURES, nearer_zero_is_better, scale_of

if TYPE_CHECKING:
    from mrag_eval.metrics import Place

Runs = Mapping[str, SampleSet]
# The key under which a record names the models that replied.
ANSWERED_BY = "answered_by"


def gate(
    baseline: Places,
    candidate: Places,
    rules: GateRules | Path | str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    pinned: Places = (),
    model: str | None = None,
    baseline_model: str | None = None,
) -> GateResult:
    """Check whether a run is worse than its baseline by more than the rules allow, as ``mrag-eval gate`` does.

    Args:
        baseline, candidate: the runs, as :func:`compare` takes them. ``model`` and ``baseline_model`` choose one of
            several models in their folders.
        rules: the drops allowed: a file (docs/gate.md), its content as a dictionary, or its list of rules, such as
            ``[{"metric": "match", "max_drop": 0.01}]``.
        pinned: a second, older baseline, against which drops add up. Of several models, ``baseline_model`` is taken.

    A drop that is shown fails. A check without one passes only if there is enough to compare. Raises DataError for
    runs that cannot be read, and for those of several models, or that several models answered.
    """
    rules = read_rules(rules)
    after = read_runs_or_baseline(paths_of(candidate), model)
    sides: dict[Side, Runs] = {"baseline": read_runs_or_baseline(paths_of(baseline), baseline_model)}
    if older := paths_of(pinned):
        sides["pinned"] = read_runs_or_baseline(older, baseline_model, of_several=True)
    for where, of_side in (*sides.items(), ("candidate", after)):
        _check_one_model(where, of_side, rules.differs)
    records = [run.measurement for runs in (*sides.values(), after) for run in runs.values()]
    check_differs(rules.differs, records)
    rules.check_bounds()
    with Wait("reading the rules", len(rules.rules), "rules") as wait:
        found = [part for rule in wait.over(rules.rules) for part in _apply(rule, rules, sides, after)]
    asked = [part for part in found if isinstance(part, RuleTest)]
    outcomes, tests = verdicts(asked, rules)
    decided = iter(outcomes)
    made = [next(decided) if isinstance(part, RuleTest) else part for part in found]
    checks = tuple(check for check in made if check is not None)
    runs: dict[str, str] = {side: _named(run) for side, run in (*sides.items(), ("candidate", after))}
    for side, before in sides.items():
        if versions := other_versions((before[task], after[task]) for task in before if task in after):
            runs[f"versions that differ, {side} | candidate"] = versions
    looked_at = [(rule, task) for rule in rules.rules for task in after if _matches(rule.task, after[task])]
    return GateResult(
        checks,
        rules.correction,
        tests,
        rules.alpha,
        runs,
        _without_rule(looked_at, sides["baseline"], after),
        len(made) - len(checks),
        changed((sides["baseline"][task], after[task]) for task in sides["baseline"] if task in after),
    )


def _check_one_model(side: str, runs: Runs, differs: Sequence[str]) -> None:
    """Raise DataError for a task whose replies named several models: a side of a gate is one model."""
    if EVERYTHING in differs or ANSWERED_BY in differs:
        return
    for run in runs.values():
        models = [name for name in run.answered_by if name != UNKNOWN_MODEL]
        if len(models) > 1:
            raise DataError(
                f"{side}, {run.task}: {len(models)} models answered: {', '.join(models)}",
                f"run again where one model answers; if on purpose, write differs: [{ANSWERED_BY}] in the rules",
            )


def _named(runs: Runs) -> str:
    """Return model and time of the runs of one side, and the models that replies named, if another answered."""
    newest = max(runs.values(), key=lambda run: run.run.date).run
    dates = {run.run.date for run in runs.values()}
    named = f"{newest}, the newest of {len(dates)} runs" if len(dates) > 1 else str(newest)
    models = dict.fromkeys(name for run in runs.values() for name in run.answered_by)
    return f"{named}, answered by {', '.join(models)}" if models else named


def _without_rule(looked_at: Sequence[tuple[Rule, str]], before: Runs, after: Runs) -> dict[str, tuple[str, ...]]:
    """Return the metrics that both runs of a task have and no rule looks at."""
    out = {}
    for task in sorted(before.keys() & after.keys()):
        ruled = {rule.metric for rule, name in looked_at if name == task}
        names = [
            dict.fromkeys(n for row in run.rows.values() for n in row.values) for run in (before[task], after[task])
        ]
        left = tuple(name for name in names[0] if name in names[1] and name not in ruled)
        if left:
            out[task] = left
    return out


def _apply(rule: Rule, rules: GateRules, sides: Mapping[Side, Runs], after: Runs) -> list[Check | RuleTest]:
    """Return the checks of a rule: floor and ceiling, and tests against each baseline."""
    known = {**sides["baseline"], **after} if rule.limits_drop else after
    named = sorted(task for task in known if _matches(rule.task, known[task]))
    blank = Check(rule.task, rule.metric, rule.pair)
    if not named:
        where = "either run" if rule.limits_drop else "the candidate"
        raise ConfigError(
            f"rule on {rule.metric}: no task of {where} is called '{rule.task}'{close_match(rule.task, known)}",
            f"the tasks there: {', '.join(sorted(known))}",
        )
    pairs = sorted({row.pair for task in named for row in known[task].rows.values() if row.pair})
    if rule.pair is not None and not any(fnmatchcase(pair, rule.pair) for pair in pairs):
        raise ConfigError(
            f"rule on {rule.metric}: {no_rows(rule.pair)}{close_match(rule.pair, pairs)}",
            f"the pairs there: {', '.join(pairs)}" if pairs else "leave 'pair' out: no row knows both languages",
        )
    found: list[Check | RuleTest] = []
    whole = Check(named[0] if len(named) == 1 else rule.task, rule.metric, rule.pair)
    rows = [(t, r) for t in named if t in after for r in after[t].rows.values() if is_of(r, rule.metric)]
    rows = [(task, row) for task, row in rows if rule.pair is None or fnmatchcase(row.pair, rule.pair)]
    found += _held(rule, rule, rules, whole, rows, after, plain_mean=_plain_mean(rule, named, after))
    for by, guard in rule.guards.items():
        bounded_below = guard.min_score is not None or guard.max_score is not None
        cells = sorted({cell for _, row in rows if (cell := row.cell(by))}) if bounded_below else []
        for cell in _named_cells(rule, by, guard, cells):
            here = replace(whole, language=cell, by=None if by in _KEYS else by)
            inside = [(task, row) for task, row in rows if row.cell(by) == cell]
            own = rule.model_copy(update={"min_n": guard.min_n})
            found += _held(guard, own, rules, here, inside, after, plain_mean=False)
    if rule.limits_drop:
        for side, before in sides.items():
            found += _compared(rule, rules, replace(blank, against=side), named, before, after)
    return found


def _held(
    bounds: Rule | Guard,
    rule: Rule,
    rules: GateRules,
    whole: Check,
    rows: Sequence[tuple[str, ScoredRow]],
    after: Runs,
    *,
    plain_mean: bool,
) -> list[Check]:
    """Return the checks of a floor and a ceiling on the candidate's rows, each with its task."""
    held = [] if bounds.min_score is None else [replace(whole, floor=bounds.min_score)]
    held += [] if bounds.max_score is None else [replace(whole, ceiling=bounds.max_score)]
    kept, named = [row for _, row in rows], [task for task, _ in rows]
    parts = {task: after[task].part for task in dict.fromkeys(named)}
    asked = sum((FailedRows.of(after[task].rows.values()) for task in parts), FailedRows())
    marked = marks({"candidate": asked}, {row.language for row in kept} - {""})
    found = []
    for check in held:
        limited = [limits_of(rule.metric, kept)]
        limited += [] if check.floor is None else [out_of_reach(rule.metric, check.floor, kept)]
        said = "; ".join(filter(None, limited)) or None
        outcome = bounded(rule, rules, check, kept, named if plain_mean else [])
        found.append(replace(outcome, part=parts_run(parts), marked=marked, limited=said))
    return found


def _named_cells(rule: Rule, by: str, guard: Guard, known: Sequence[str]) -> list[str]:
    """Return the cells that a guard is of. Raise ConfigError for one that it names and no row has."""
    for one in guard.only or ():
        if known and not any(fnmatchcase(cell, one) for cell in known):
            raise ConfigError(
                f"rule on {rule.metric}, only: no row has the cell '{one}' of {by}{close_match(one, known)}",
                f"the cells there: {', '.join(known)}",
            )
    return [cell for cell in known if guard.only is None or any(fnmatchcase(cell, one) for one in guard.only)]


def _compared(
    rule: Rule, rules: GateRules, blank: Check, named: Sequence[str], before: Runs, after: Runs
) -> list[Check | RuleTest]:
    pairs: list[PairedRows] = []
    for task in named:
        for where, runs in ((blank.against, before), ("candidate", after)):
            if task not in runs:
                return [replace(blank, reason=f"{task} is not in the {where}")]
        try:
            pairs.append(paired(before[task], after[task], rules.differs))
        except DataError as err:
            return [replace(blank, reason=err.message)]
    alone = "; ".join(
        f"{pair.task}: {pair.unpaired[0]} rows only in the {blank.against}, {pair.unpaired[1]} only in the candidate"
        for pair in pairs
        if any(pair.unpaired)
    )
    whole = pooled(rule.task, pairs)
    if _plain_mean(rule, named, before, after):
        whole = replace(whole, tasks=tuple(pair.task for pair in pairs for _ in pair.first))
    whole = whole.of_metric(rule.metric)
    if rule.pair is not None:
        whole = whole.of_cells(PAIR, *(cell for cell in whole.cells(PAIR) if fnmatchcase(cell, rule.pair)))
    _check_losable(rule, blank.against, whole)
    from mrag_eval.metrics import Place

    # a row that one run lacks is no score that could be bounded
    of = (rules.rules.index(rule), blank.against)
    parts = [_test(rule, blank, whole, rule.pair, Place(of), alone or None)]
    if rule.max_unscored is not None:
        parts.append(_unscored(rule, blank, whole, Place((*of, "unscored"))))
    for by, guard in rule.guards.items():
        parts += _guarded(rule, by, guard, blank, whole, of) if guard.limits_drop else []
    return parts


def _check_losable(rule: Rule, side: Side, whole: PairedRows) -> None:
    """Raise ConfigError for a drop of half the range or more that is all a side has to lose: no candidate fails it."""
    known = mean_of([row.values.get(rule.metric) for row in whole.first], whole.tasks)
    low, high = scale_of(rule.metric).bounds
    if rule.max_drop_relative is not None or known is None or nearer_zero_is_better(rule.metric):
        return
    limit = _limit(rule, side, whole)
    if limit >= max(high - known if rule.less_is_better else known - low, (high - low) / 2):
        raise ConfigError(
            f"rule on {rule.metric}: a drop of {limit:g} fails no candidate, as the {side} scores {known:.3g}",
            "write a smaller one: 0.01 is one point",
        )


def _matches(pattern: str, run: SampleSet) -> bool:
    return fnmatchcase(run.task, pattern) or pattern in run.groups


def _plain_mean(rule: Rule, named: Sequence[str], *sides: Runs) -> bool:
    """Return whether a rule is on the plain mean of several tasks' scores."""
    runs = [runs[task] for runs in sides for task in named if task in runs]
    return rule.pair is None and len(named) > 1 and is_plain_mean(rule.task, rule.metric, runs)


# The breakdowns with a key of their own, and what no row has without them.
_KEYS = {
    "query_lang": ("per_language", "no row has a language"),
    PAIR: ("per_pair", "no row has the languages of question and document"),
}


def _guarded(
    rule: Rule, by: str, guard: Guard, blank: Check, whole: PairedRows, of: tuple[int, Side]
) -> list[Check | RuleTest]:
    """Return the tests of a guard: one for each cell of its breakdown."""
    from mrag_eval.metrics import Place

    own = {"max_drop": guard.max_drop or 0.0, "max_drop_relative": None, "max_drop_pinned": None, "min_n": guard.min_n}
    rule = rule.model_copy(update={**own, "must_detect": None, "non_inferiority": False})
    unknown = f"no row has the breakdown '{by}'; there are {', '.join(whole.breakdowns) or 'none'}"
    key, reason = _KEYS.get(by, (f"per {by}", unknown))
    found: list[Check | RuleTest] = []
    for cell in _named_cells(rule, by, guard, whole.cells(by)):
        rows = whole.of_cells(by, cell)
        # questions and documents are the same in both runs, and what a run shows or says is not
        check = blank if by in _KEYS else replace(blank, by=by, elsewhere=rows.elsewhere(by))
        language = cell if by == "query_lang" else cell.partition("->")[0] if by == PAIR else ""
        place = Place(of, language, "" if by == "query_lang" else f"{by} {cell}")
        made = _test(rule, check, rows, cell, place)
        all_pairs = isinstance(made, RuleTest) and by == PAIR and guard.only is None
        found.append(replace(made, may_be_left_out=True) if isinstance(made, RuleTest) and all_pairs else made)
    return found or [replace(blank, language=key, reason=reason)]


def _test(
    rule: Rule, blank: Check, pair: PairedRows, language: str | None, place: Place, reason: str | None = None
) -> Check | RuleTest:
    """Return the test of one rule on its rows; ``reason`` is a known cause why it cannot pass."""
    check = replace(blank, task=pair.task, language=language, part=pair.part, reason=reason)
    limited = limits_of(rule.metric, pair.second, pair.first)
    check = replace(check, marked=pair.marked(blank.against, "candidate"), limited=limited)
    check = replace(check, less_is_better=bool(rule.less_is_better))
    if not pair.first:
        return replace(check, reason=no_rows(language))
    if rule.metric in pair.changed:
        return replace(check, reason=f"{rule.metric} is another metric in the candidate: what computes it has changed")
    names = sorted({name for row in (*pair.first, *pair.second) for name in row.values})
    if rule.metric not in names and names:
        raise ConfigError(
            f"rule on {rule.metric}: no row of {pair.task} has that metric{close_match(rule.metric, names)}",
            called_here(rule.metric, f"the metrics there: {', '.join(names)}"),
        )
    if rule.less_is_better is None:
        why = f"neither more nor less of {rule.metric} is better: write lower_is_better: true (or false) in the rule"
        return replace(check, reason=why)
    for where, rows in ((blank.against, pair.first), ("candidate", pair.second)):
        if not any(rule.metric in row.values for row in rows):
            return replace(check, reason=f"the {where} has no {rule.metric}")
    return RuleTest(check, rule, pair, drop_of(rule, pair, _limit(rule, blank.against, pair)), place)


def _limit(rule: Rule, against: Side, pair: PairedRows) -> float:
    """Return the drop allowed, in the metric's unit."""
    if against == "pinned" and rule.max_drop_pinned is not None:
        return rule.max_drop_pinned
    if rule.max_drop_relative is None:
        return rule.max_drop or 0.0
    known = mean_of([row.values.get(rule.metric) for row in pair.first], pair.tasks)
    return rule.max_drop_relative * abs(known or 0.0)


def _unscored(rule: Rule, blank: Check, pair: PairedRows, place: Place) -> Check | RuleTest:
    """Return the test of the share of rows without a score."""
    check = replace(blank, task=pair.task, language=rule.pair, unscored=True, part=pair.part)
    if not pair.first or rule.metric in TASK_MEASURES:
        return replace(check, reason=no_rows(rule.pair) if not pair.first else "territories have no unscored rows")
    cells = unscored_of(rule, pair, rule.max_unscored or 0.0)
    return RuleTest(replace(check, why=why_unscored(rule.metric, pair)), rule, pair, cells, place)
