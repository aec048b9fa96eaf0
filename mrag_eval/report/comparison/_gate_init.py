"""A first file of rules for a gate, from what a run can show."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from mrag_eval.platform import DataError
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._compare import POWER
from mrag_eval.report.files._runs import SampleSet
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import TASK_MEASURES, more_is_better

# Share of answers that change between two releases, for the power of a rule.
_CHURN = 0.1
# A gate has to be able to show a drop of this size, in the metric's unit.
_COARSE = 0.1
_FEWEST = 100
_CORRECT_LANGUAGE = "correct_language"

_HEAD = """\
# Rules of `mrag-eval gate`: every key is described in docs/gate.md.
# The drops named are found in 7 to 8 of 10 gates if {churn:.0%} of the answers change, or as many as drop.
alpha: 0.05          # chance of a false alarm of the whole gate
correction: holm     # over all tests of the gate; bh or none on demand
min_n: {min_n:<13} # fewer rows (or groups of rows) cannot pass
rules:
"""


@dataclass(frozen=True)
class _Proposal:
    """A rule to write: a metric of a task or group, perhaps of one pair of languages, and how many independent
    rows (``units``) have it.
    """

    task: str
    metric: str
    units: int
    word: str
    pair: str | None = None
    unscored: bool = False

    @property
    def tests(self) -> int:
        """Return the number of tests of the rule."""
        return 1 + self.unscored

    def __str__(self) -> str:
        return f"{self.task}: {self.metric}" + (f" [{self.pair}]" if self.pair else "")


def starter_rules(runs: Sequence[Path], model: str | None = None) -> str:
    """Return a file of rules for ``runs`` (folders, sample files or a baseline file).

    For each task, or group of tasks: the benchmark's main metric (or every metric that has a better side, if none is
    declared) with the share of unscored rows, the correct language, and the pair of languages with the worst score. The
    file says what each rule can show, and what was left out. Raises DataError if no rule could show a drop of ten
    points: such a gate passes whatever happens.
    """
    found: list[_Proposal] = []
    left: list[str] = []
    for task, members in _by_group(read_runs_or_baseline(runs, model)).items():
        rows = [row for run in members for row in run.rows.values()]
        names = dict.fromkeys(name for row in rows for name in row.values)
        chosen = _metrics(members, list(names))
        extra = [_CORRECT_LANGUAGE] if _CORRECT_LANGUAGE in names and _CORRECT_LANGUAGE not in chosen else []
        found += [_proposal(task, name, rows, unscored=name == chosen[0]) for name in (*chosen, *extra)]
        if chosen and (worst := _worst_pair(chosen[0], rows)) is not None:
            found.append(_proposal(task, chosen[0], [row for row in rows if row.pair == worst], pair=worst))
        left += [f"{task}: {name}" for name in names if name not in (*chosen, *extra)]
    tests = sum(one.tests for one in found)
    kept = [one for one in found if _detectable(one.units, tests) <= _COARSE]
    if not kept:
        raise DataError(_toy(found), f"run more rows: about {_enough(tests):,} show a drop of ten points")
    tests = sum(one.tests for one in kept)
    coarse = [str(one) for one in found if one not in kept]
    return "".join(
        [
            _HEAD.format(churn=_CHURN, min_n=min(_FEWEST, *(one.units for one in kept), _FEWEST)),
            *(_rule(one, tests) for one in kept),
            *([f"# too few rows for a rule: {', '.join(coarse)}\n"] if coarse else []),
            *([f"# without a rule: {', '.join(left)}\n"] if left else []),
        ]
    )


def _toy(found: Sequence[_Proposal]) -> str:
    if not found:
        return "no metric of these runs has a better side, so none can get worse"
    most = max(found, key=lambda one: one.units)
    return f"{most.units:,} {most.word} make no gate: most drops of ten points of {most.metric} would pass it"


def _rule(one: _Proposal, tests: int) -> str:
    """Return one rule as YAML, with the drop that it finds."""
    drop = _detectable(one.units, tests)
    allowed = math.ceil(drop * 50) / 200
    lines = [
        f"  # {one.units:,} {one.word}: a drop of {100 * (drop + allowed):.1f} points is found",
        f"  - metric: {_quoted(one.metric)}",
        f"    task: {_quoted(one.task)}",
    ]
    lines += [f"    pair: {_quoted(one.pair)}   # the pair of languages with the worst score"] if one.pair else []
    lines += [f"    max_drop: {allowed:g}   # how much worse it may be: 0.01 is one point"]
    lines += (
        [f"    max_unscored: {allowed:g}   # rise allowed in the share of rows without a score"] if one.unscored else []
    )
    return "\n".join(lines) + "\n"


def _by_group(runs: Mapping[str, SampleSet]) -> dict[str, list[SampleSet]]:
    """Return the runs under the first group of each, or under their own name without one."""
    found: dict[str, list[SampleSet]] = {}
    for name, run in runs.items():
        found.setdefault(run.groups[0] if run.groups else name, []).append(run)
    return found


def _metrics(runs: Sequence[SampleSet], scored: Sequence[str]) -> list[str]:
    from mrag_eval.datasets import declaration_of

    record = runs[0].measurement
    declared = None if record is None else declaration_of(record.setting.get("data") or {})
    main = None if declared is None else declared.main_metric
    if main is not None and main in scored:
        return [main]
    # a rule needs a worse side
    return [name for name in scored if more_is_better(name) is not None]


def _proposal(
    task: str, metric: str, rows: Sequence[ScoredRow], *, pair: str | None = None, unscored: bool = False
) -> _Proposal:
    scored = [row.group for row in rows if metric in row.values]
    units = len(set(scored))
    word = "rows" if units == len(scored) else "groups of rows"
    return _Proposal(task, metric, units, word, pair, unscored and metric not in TASK_MEASURES)


def _worst_pair(metric: str, rows: Sequence[ScoredRow]) -> str | None:
    """Return the pair of languages with the worst mean; None if there are fewer than two pairs."""
    by_pair: dict[str, list[float]] = {}
    for row in rows:
        if row.pair and metric in row.values:
            by_pair.setdefault(row.pair, []).append(row.values[metric])
    if len(by_pair) < 2:
        return None
    pick = max if more_is_better(metric) is False else min
    return pick(sorted(by_pair), key=lambda pair: sum(by_pair[pair]) / len(by_pair[pair]))


def _detectable(n: int, tests: int) -> float:
    """Return the drop found with 80% power at level .05 / tests, one-sided: (z(1 - level) + z(.8)) sqrt(churn / n).

    If that is larger than the share of answers that change, as many change as drop.
    """
    z = _reach(tests)
    return max(z * math.sqrt(_CHURN / max(n, 1)), z * z / max(n, 1))


def _enough(tests: int) -> int:
    """Return about how many rows show a drop of ten points."""
    return math.ceil(_CHURN * (_reach(tests) / _COARSE) ** 2)


def _reach(tests: int) -> float:
    """Return how many standard errors a drop has to be for 80% power at level .05 / tests."""
    inverse = NormalDist().inv_cdf
    return inverse(1 - 0.05 / max(tests, 1)) + inverse(POWER)


def _quoted(name: str) -> str:
    """Return the name as YAML."""
    plain = name.replace("_", "").replace("-", "").isalnum()
    return name if plain else json.dumps(name, ensure_ascii=False)
