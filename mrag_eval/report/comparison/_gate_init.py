"""A first file of rules for a gate, from the tasks and metrics of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._compare import POWER
from mrag_eval.report.files._samples import SampleSet
from mrag_eval.scoring import more_is_better

# Share of answers that change between two releases, for the power in the comments.
_CHURN = 0.1

_HEAD = """\
# Rules of `mrag-eval gate`: every key is described in docs/gate.md.
alpha: 0.05          # chance of a false alarm of the whole gate
correction: holm     # over all tests of the gate; bh or none on demand
min_n: {min_n:<13} # fewer rows (or groups of rows) cannot pass
rules:
"""
_RULE = """\
  # {units}: if {churn:.0%} of the answers change, a drop of {drop:.1f} points is found in {found:.0f} of 10 gates
  - metric: {metric}
    task: {task}
    max_drop: 0      # how much worse it may be: 0.01 allows one point
"""
_MORE = """\
    # min_score: 0.5                      a floor under the score itself
    # non_inferiority: true               pass only if the drop is shown to be smaller than max_drop (0.02, say)
    # per_language: {max_drop: 0.05}      the same in every language
"""


def starter_rules(runs: Sequence[Path]) -> str:
    """Return a file of rules for ``runs`` (folders, sample files or a baseline file).

    There is one rule for each task, or group of tasks: on its benchmark's main metric, or on each of its metrics if it
    declares none.
    """
    found = [
        (task, metric, *_units(members, metric))
        for task, members in _by_group(read_runs_or_baseline(runs)).items()
        for metric in _metrics(members)
    ]
    smallest = min((n for *_, n, _ in found), default=100)
    parts = [_HEAD.format(min_n=min(100, max(2, smallest)))]
    power = {"churn": _CHURN, "found": 10 * POWER}
    for at, (task, metric, n, word) in enumerate(found):
        drop = 100 * _detectable(n, len(found))
        named = {"task": _quoted(task), "metric": _quoted(metric)}
        parts.append(_RULE.format(units=f"{n:,} {word}", drop=drop, **power, **named) + ("" if at else _MORE))
    return "".join(parts)


def _by_group(runs: Mapping[str, SampleSet]) -> dict[str, list[SampleSet]]:
    """Return the runs under the first group of each, or under their own name without one."""
    found: dict[str, list[SampleSet]] = {}
    for name, run in runs.items():
        found.setdefault(run.groups[0] if run.groups else name, []).append(run)
    return found


def _metrics(runs: Sequence[SampleSet]) -> list[str]:
    from mrag_eval.datasets import declaration_of

    scored = dict.fromkeys(name for run in runs for row in run.rows.values() for name in row.values)
    record = runs[0].measurement
    declared = None if record is None else declaration_of(record.setting.get("data") or {})
    main = None if declared is None else declared.main_metric
    if main is not None and main in scored:
        return [main]
    # a rule needs a worse side
    return [name for name in scored if more_is_better(name) is not None]


def _units(runs: Sequence[SampleSet], metric: str) -> tuple[int, str]:
    """Return the number of independent rows or groups of rows that have the metric, and the word for them."""
    scored = [row.group for run in runs for row in run.rows.values() if metric in row.values]
    units = len(set(scored))
    return units, "rows" if units == len(scored) else "groups of rows"


def _detectable(n: int, tests: int) -> float:
    """Return the drop found with 80% power at level .05 / tests, one-sided: (z(1 - level) + z(.8)) sqrt(churn / n)."""
    from scipy.stats import norm

    return float((norm.ppf(1 - 0.05 / tests) + norm.ppf(POWER)) * (_CHURN / n) ** 0.5)


def _quoted(name: str) -> str:
    """Return the name as YAML."""
    plain = name.replace("_", "").replace("-", "").isalnum()
    return name if plain else json.dumps(name, ensure_ascii=False)
