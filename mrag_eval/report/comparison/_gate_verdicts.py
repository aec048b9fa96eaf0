"""Verdicts of a gate: what its rules test, as one family, what keeps a check from passing, and floors and ceilings.

The values that a rule compares are turned so that a positive difference is a drop.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

from mrag_eval.report.comparison._gate_rules import Check, GateRules, Rule, Worst
from mrag_eval.report.comparison._paired_rows import PairedRows, cell_of
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import nearer_zero_is_better, scale_of

if TYPE_CHECKING:
    from mrag_eval.metrics import MarginTest, PairedCell, Place

Values = Sequence[float | bool | None]


def _filled(cell: PairedCell) -> PairedCell:
    low, high = cell.bounds or (-math.inf, math.inf)
    if not math.isfinite(high - low):
        return replace(cell, first=[None] * len(cell.first), second=[None] * len(cell.second))
    both = [
        (high if a is None and b is not None else a, low if b is None and a is not None else b)
        for a, b in zip(cell.first, cell.second, strict=True)
    ]
    return replace(cell, first=[a for a, _ in both], second=[b for _, b in both])


def drop_of(rule: Rule, pair: PairedRows, limit: float) -> tuple[PairedCell, ...]:
    """Return the cells of a rule on its rows."""
    cell = replace(cell_of(pair, rule.metric), margin=limit)
    if nearer_zero_is_better(rule.metric):
        known = [(a, b) for a, b in zip(cell.first, cell.second, strict=True) if a is not None and b is not None]
        side = -1.0 if sum(a for a, _ in known) < 0 else 1.0
        reach = _reach(rule.metric, pair)
        inside = all(abs(value) <= reach for both in known for value in both)
        # farther on the side of the baseline, or as far on the other
        return tuple(
            replace(
                cell,
                first=_times(cell.first, -side),
                second=_times(cell.second, turn),
                bounds=(-reach, reach) if inside else None,
            )
            for turn in (-side, side)
        )
    return (_turned(cell) if rule.less_is_better else cell,)


def _reach(metric: str, pair: PairedRows) -> float:
    """Return the largest value of a territory in a delta of concurrence, infinite without a range.

    The values of Con - Non are those of T territories, of which C count for Con and D for Non: T / C or T / D at most.
    """
    if metric == "concurrence.delta_CS_difference":
        of_run = [
            [sum(name in row.values for row in run) for name in (metric, "concurrence.Con_CS", "concurrence.Non_CS")]
            for run in (pair.first, pair.second)
        ]
        return max(total / max(1, min(parts)) for total, *parts in of_run)
    low, high = scale_of(metric).bounds
    return max(abs(low), abs(high))


def unscored_of(rule: Rule, pair: PairedRows, limit: float) -> tuple[PairedCell, ...]:
    """Return the cell of the rows that have the rule's metric: a drop is a rise in the share without it."""
    a, b = ([float(rule.metric in row.values) for row in run] for run in (pair.first, pair.second))
    cell = cell_of(pair, rule.metric)
    return (replace(cell, first=a, second=b, margin=limit, bounds=(0.0, 1.0)),)


def _turned(cell: PairedCell) -> PairedCell:
    """Return the cell with values of which more is better, in the same range if it has two ends."""
    low, high = cell.bounds or (-math.inf, math.inf)
    if math.isfinite(low + high):
        first, second = ([None if v is None else low + high - v for v in run] for run in (cell.first, cell.second))
        return replace(cell, first=first, second=second)
    bounds = None if cell.bounds is None else (-high, -low)
    return replace(cell, first=_times(cell.first, -1.0), second=_times(cell.second, -1.0), bounds=bounds)


def _as_measured(cell: PairedCell, tasks: Sequence[str]) -> PairedCell:
    """Return the cell with values whose mean over rows is the plain mean of the tasks' means.

    A row of a task with n of the N rows that both runs scored, of T tasks, counts N / (T n) times.
    """
    known = [a is not None and b is not None for a, b in zip(cell.first, cell.second, strict=True)]
    sizes = Counter(compress(tasks, known))
    if len({*sizes.values()}) < 2:
        return cell
    counts = [sizes.total() / (len(sizes) * sizes[task]) if sizes[task] else 1.0 for task in tasks]
    first, second = (
        [None if value is None else count * value for value, count in zip(run, counts, strict=True)]
        for run in (cell.first, cell.second)
    )
    most = max(counts)
    bounds = None if cell.bounds is None else (min(0.0, cell.bounds[0] * most), max(0.0, cell.bounds[1] * most))
    return replace(cell, first=first, second=second, bounds=bounds)


def mean_of(values: Sequence[float | None], tasks: Sequence[str] = ()) -> float | None:
    """Return the mean of the values that there are, of ``tasks`` the plain mean of each one's; None without a value."""
    known: dict[str, list[float]] = {}
    for value, task in zip(values, tasks or [""] * len(values), strict=True):
        if value is not None:
            known.setdefault(task, []).append(value)
    return sum(sum(found) / len(found) for found in known.values()) / len(known) if known else None


def _times(values: Values, factor: float) -> list[float | None]:
    return [None if value is None else factor * value for value in values]


def groups_of(rows: Sequence[ScoredRow]) -> list[str] | None:
    """Return the groups to resample; None if every row is its own group."""
    groups = [row.group for row in rows]
    return groups if len(set(groups)) < len(groups) else None


def units_word(groups: list[str] | None) -> str:
    """Return the name of what is independent."""
    return "rows" if groups is None else "groups of rows"


def no_rows(pair: str | None) -> str:
    return "no row to compare" if pair is None else f"no row has the languages {pair} (question->document)"


@dataclass(frozen=True)
class RuleTest:
    """A test that a rule asks for, before its verdict: the rows of the check, and the cells by which it goes.

    There is one cell or, for a distance from 0, one for each side of it. ``place`` is that of the check in the
    hierarchy of its rule; with ``may_be_left_out``, it is one of all pairs of languages, and needs not be told.
    """

    check: Check
    rule: Rule
    rows: PairedRows
    cells: tuple[PairedCell, ...]
    place: Place
    may_be_left_out: bool = False

    @property
    def measured(self) -> tuple[PairedCell, ...]:
        """Return the cells as the score is measured."""
        return tuple(replace(_as_measured(cell, self.tasks), place=self.place) for cell in self.cells)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the task of each row if the check is of the plain mean of their scores; shares of rows never are."""
        return () if self.check.unscored else self.rows.tasks

    @property
    def lost(self) -> int:
        """Return the number of rows that one run alone scored."""
        return sum((a is None) != (b is None) for a, b in zip(self.cells[0].first, self.cells[0].second, strict=True))

    @property
    def filled(self) -> tuple[PairedCell, ...] | None:
        """Return the cells with the best value for rows that the baseline alone lacks, and the worst for the
        candidate's.

        None if there are no such rows; with a metric without a range, they cannot be filled, and the cells are empty.
        """
        if not self.lost:
            return None
        return tuple(replace(_as_measured(_filled(cell), self.tasks), place=self.place) for cell in self.cells)


def verdicts(asked: Sequence[RuleTest], rules: GateRules) -> tuple[list[Check | None], int]:
    """Return the checks with their verdicts, tested as one family, and the number of tests.

    None stands for a pair of languages of too few rows to fail, which is left out.
    """
    from mrag_eval.metrics import margin_tests

    def tested(cells: Sequence[Sequence[PairedCell]]) -> list[list[MarginTest]]:
        flat = [cell for part in cells for cell in part]
        results = iter(margin_tests(flat, alpha=rules.alpha, correction=rules.correction, seed=rules.seed))
        return [[next(results) for _ in part] for part in cells]

    own = tested([part.measured for part in asked])
    filled = [part.filled for part in asked]
    worst = own
    if any(cells is not None for cells in filled):
        worst = tested([cells or part.measured for cells, part in zip(filled, asked, strict=True)])
    checks = [
        None
        if part.may_be_left_out and not any(test.possible for test in tests)
        else _decided(part, tests, None if cells is None else with_worst, rules)
        for part, tests, cells, with_worst in zip(asked, own, filled, worst, strict=True)
    ]
    return checks, sum(test.p_adjusted is not None for tests in own for test in tests)


def _decided(
    asked: RuleTest, tests: Sequence[MarginTest], with_worst: Sequence[MarginTest] | None, rules: GateRules
) -> Check:
    """Return the check with its verdict: a drop that is shown comes first, then what keeps the rule from passing."""
    rule, cell = asked.rule, asked.measured[0]
    # of a distance from 0, the side to which the candidate is nearer
    at = max(range(len(tests)), key=lambda i: -math.inf if (found := tests[i].difference) is None else found)
    test = tests[at]
    limit = cell.margin
    groups = groups_of(asked.rows.first)
    check = _measured(asked, test, groups)
    if test.p_value is None:
        return replace(check, reason=test.reason)
    most = max(t.upper if t.upper is not None else math.inf for t in (*tests, *(with_worst or ())))
    check = replace(
        check,
        p_value=test.p_value,
        p_adjusted=min((t.p_adjusted for t in tests if t.p_adjusted is not None), default=None),
        # a row that the candidate alone lacks may be lost
        could_miss=most if math.isfinite(most) else None,
        detectable=test.detectable,
        method=test.method,
        caution=_caution(test),
    )
    if any(t.shown for t in tests):
        return replace(check, verdict="fail")
    if test.enough is not None:
        told = f"a drop is likely, and {test.units} {units_word(groups)} may lack those that gained much"
        return replace(check, needed=test.enough, reason=f"{told}: about {test.enough:,} would show it", caution=None)
    check = replace(check, caution=None)
    fewest = rule.min_n or rules.min_n
    if test.units < fewest:
        return replace(check, needed=fewest, reason=f"{test.units} of {fewest} {units_word(groups)} needed")
    reason = check.reason or _lost(asked, tests, with_worst)
    if reason is not None:
        return replace(check, reason=reason)
    if test.method == "sign test" and (test.difference or 0.0) > limit:
        return replace(check, reason="fewer than ten rows differ, and the metric has no range to bound their drop by")
    # a candidate that is shown to be better is no worse, whatever the rule could show
    if not all(t.possible for t in tests) and most >= 0:
        return replace(check, needed=test.needed, reason=_impossible(test, groups))
    if most < limit or most < 0:
        return replace(check, verdict="no worse", caution=_caution(test))
    if rule.non_inferiority and asked.check.language == rule.pair and not asked.check.unscored:
        return replace(check, needed=_for_margin(test, limit), reason=f"a drop larger than {limit:.3g} is not excluded")
    if rule.must_detect is not None and (check.detectable is None or check.detectable > rule.must_detect):
        least = check.detectable
        enough = None if least is None else int(test.units * (least / rule.must_detect) ** 2) + 1
        smallest = "none is sure to be shown" if least is None else f"the smallest is {least:.3g}"
        return replace(check, needed=enough, reason=f"too few rows to show a drop of {rule.must_detect:g} ({smallest})")
    return replace(check, verdict="no drop shown", caution=_caution(test) if test.difference else None)


def _measured(asked: RuleTest, test: MarginTest, groups: list[str] | None) -> Check:
    """Return the check with scores, difference and its bounds, in the direction of the metric."""
    check, rows, metric = asked.check, asked.rows, asked.check.metric
    cell = asked.cells[0]
    kept = [x is not None and y is not None for x, y in zip(cell.first, cell.second, strict=True)]
    pairs = [pair for pair, keep in zip(zip(rows.first, rows.second, strict=True), kept, strict=True) if keep]
    if check.unscored:
        values = [(float(metric not in a.values), float(metric not in b.values)) for a, b in pairs]
    else:
        values = [(a.values[metric], b.values[metric]) for a, b in pairs]
    n, tasks = len(values), tuple(compress(asked.tasks, kept))
    before, after = (mean_of(side, tasks) for side in zip(*values, strict=True)) if n else (None, None)
    worse_up = check.unscored or bool(asked.rule.less_is_better)
    ends = (_minus(test.upper), _minus(test.lower))
    ends = (_minus(ends[1]), _minus(ends[0])) if worse_up else ends
    difference = test.difference if worse_up else _minus(test.difference)
    return replace(
        check,
        n=n,
        lost=asked.lost,
        baseline=before,
        candidate=after,
        difference=difference,
        low=ends[0],
        high=ends[1],
        limit=cell.margin,
        better=tuple(a.id for (a, _), (x, y) in zip(pairs, values, strict=True) if y > x),
        worse=tuple(a.id for (a, _), (x, y) in zip(pairs, values, strict=True) if y < x),
        worst=_worst_language([a.language for a, _ in pairs], values, worse_up),
    )


def _worst_language(languages: Sequence[str], values: Sequence[tuple[float, float]], worse_up: bool) -> Worst | None:
    """Return the language of most rows that got worse, less those that got better, with its counts; None for no row."""
    fell, rose = (
        Counter(name for name, (x, y) in zip(languages, values, strict=True) if name and (y - x) * side > 0)
        for side in ((1, -1) if worse_up else (-1, 1))
    )
    if not fell:
        return None
    name = max(sorted(fell), key=lambda one: fell[one] - rose[one])
    return Worst(name, fell[name], rose[name], languages.count(name))


def _minus(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else 0.0 - value


def _impossible(test: MarginTest, groups: list[str] | None) -> str:
    if test.needed is None:
        return "no candidate could fail: as much as the whole score is allowed"
    return f"{test.units} of about {test.needed:,} {units_word(groups)} needed to show even the worst candidate"


def _lost(asked: RuleTest, tests: Sequence[MarginTest], with_worst: Sequence[MarginTest] | None) -> str | None:
    """Return why rows that one run alone scored keep the check from passing; None if they do not."""
    rule, cell, lost = asked.rule, asked.cells[0], asked.lost
    if rule.max_unpaired is not None:
        if lost <= rule.max_unpaired * len(cell.first):
            return None
        return f"{lost} of {len(cell.first)} rows are scored in one run only, and max_unpaired is {rule.max_unpaired:g}"
    if with_worst is None:
        return None
    why = why_unscored(asked.check.metric, asked.rows)
    told = f"{lost} of {len(cell.first)} rows are scored in one run only{f' ({why})' if why else ''}"
    if all(test.difference is None for test in with_worst):
        return f"{told}, and {rule.metric} has no range to bound them by"
    if any(test.shown for test in with_worst):
        worst = max(test.difference or 0.0 for test in with_worst)
        return f"{told}: with the worst values there the drop would be {scale_of(rule.metric).factor * worst:.1f}"
    within = all(test.upper is not None and test.upper < cell.margin for test in with_worst)
    if rule.non_inferiority and not within and all((t.upper or 0.0) < cell.margin for t in tests):
        return f"{told}: with the worst values there a larger drop is not excluded"
    return None


def why_unscored(metric: str, pair: PairedRows) -> str | None:
    """Return the most frequent reasons why the candidate's rows have no score; None without any."""
    reasons = Counter(row.unscored.get(metric, "") for row in pair.second if metric not in row.values)
    return "; ".join(f"{n} {reason}" for reason, n in reasons.most_common(3) if reason) or None


def _for_margin(test: MarginTest, limit: float) -> int | None:
    """Return about how many units would show that the drop is smaller than the limit, if it is what was seen."""
    drop = test.difference or 0.0
    if test.upper is None or drop >= limit:
        return None
    return int(test.units * ((test.upper - drop) / (limit - drop)) ** 2) + 1


def _caution(test: MarginTest) -> str | None:
    """Return a warning if too few rows, or groups of rows, differ for the test to find much."""
    word = "rows" if test.units == test.n else "groups of rows"
    few = test.method.startswith("betting")
    return f"fewer than ten {word} changed, and not all of them whole: only a large drop is found" if few else None


def bounded(rule: Rule, rules: GateRules, check: Check, rows: Sequence[ScoredRow], tasks: Sequence[str] = ()) -> Check:
    """Return the check of the candidate's score, as measured, against a floor or a ceiling.

    ``tasks`` has the task of each row if the score is the plain mean of several tasks' scores.
    """
    from mrag_eval.metrics import interval_for, stratified_bootstrap, unscored_range

    if not rows:
        return replace(check, reason=no_rows(rule.pair))
    values: list[float | None] = [row.values.get(rule.metric) for row in rows]
    groups = groups_of(rows)
    scale = scale_of(rule.metric)
    if len({*Counter(compress(tasks, (value is not None for value in values))).values()}) > 1:
        low, high = scale.bounds
        inside = all(value is None or low <= value <= high for value in values)
        bounds = scale.bounds if inside else None
        score = stratified_bootstrap(values, tasks, groups=groups, bounds=bounds, seed=rules.seed)
    else:
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
        ends = unscored_range(values, tasks or [0] * len(values), scale.bounds)
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
