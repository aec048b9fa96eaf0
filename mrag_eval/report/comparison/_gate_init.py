"""A first file of rules for a gate, from what a run can show."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from mrag_eval.platform import DataError, number_of
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._compare import POWER, headline
from mrag_eval.report.files._runs import SampleSet
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import TASK_MEASURES, more_is_better, scale_of

# Share of answers that change between two releases, for the power of a rule.
_CHURN = 0.1
# A gate has to be able to show a drop of this size, in the metric's unit, and a language or pair of this one.
_COARSE, _COARSEST = 0.1, 0.25
_FEWEST = 100
# The drop allowed in a language or a pair.
_ALLOWED = 0.05
_LEVEL = 0.05

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
    """A rule to write: a metric of a task or group, and how many independent rows have it: ``units`` of all, and those
    of each language and pair of languages.
    """

    task: str
    metric: str
    units: int
    word: str
    languages: Mapping[str, int]
    pairs: Mapping[str, int]
    unscored: bool = False

    def found(self, rules: int) -> tuple[float, dict[str, float], dict[str, float]]:
        """Return the drop that is found in all rows, and those in the languages and pairs that can show one."""
        from mrag_eval.metrics import Place, hierarchy

        cells = [("", ""), *((name, "") for name in self.languages), *((x.partition("->")[0], x) for x in self.pairs)]
        shares = hierarchy([Place(0, *cell) for cell in cells])[0] / rules
        sizes = [self.units, *self.languages.values(), *self.pairs.values()]
        drops = [_detectable(n, _LEVEL * share) for n, share in zip(sizes, shares, strict=True)]
        names = [*self.languages, *self.pairs]
        shown = {name: drop + _ALLOWED for name, drop in zip(names, drops[1:], strict=True) if drop <= _COARSEST}
        own = {name: drop for name, drop in shown.items() if name in self.languages}
        return drops[0], own, {name: drop for name, drop in shown.items() if name in self.pairs}


def starter_rules(runs: Sequence[Path], model: str | None = None) -> str:
    """Return a file of rules for ``runs`` (folders, sample files or a baseline file).

    For each task, or group of tasks, a rule on each metric of its :func:`headline`, of the first with the share of
    unscored rows. It guards every language, and every pair of languages, whose rows can show a drop. The file says what
    each rule can show, and what was left out. Raises DataError if no rule could show a drop of ten points: such a gate
    passes whatever happens.
    """
    found: list[_Proposal] = []
    left: list[str] = []
    for task, members in _by_group(read_runs_or_baseline(runs, model)).items():
        rows = [row for run in members for row in run.rows.values()]
        names = dict.fromkeys(name for row in rows for name in row.values)
        chosen = [name for name in headline(members, list(names)) if more_is_better(name) is not None]
        found += [_proposal(task, name, rows, unscored=name == chosen[0]) for name in chosen]
        left += [f"{task}: {name}" for name in names if name not in chosen]
    rules = sum(1 + one.unscored for one in found)
    kept = [one for one in found if one.found(rules)[0] <= _COARSE]
    if not found:
        raise DataError(
            "no metric of these runs has a better side, so none can get worse", "score them by one that has"
        )
    if not kept:
        most = max(found, key=lambda one: one.units)
        enough = math.ceil(_CHURN * (_reach(_LEVEL / rules) / _COARSE) ** 2)
        raise DataError(
            f"{most.units:,} {most.word} make no gate: most drops of ten points of {most.metric} would pass it",
            f"run more rows: about {enough:,} show a drop of ten points",
        )
    rules = sum(1 + one.unscored for one in kept)
    coarse = [f"{one.task}: {one.metric}" for one in found if one not in kept]
    return "".join(
        [
            _HEAD.format(churn=_CHURN, min_n=min(_FEWEST, *(one.units for one in kept), _FEWEST)),
            *(_rule(one, rules) for one in kept),
            *([f"# too few rows for a rule: {', '.join(coarse)}\n"] if coarse else []),
            *([f"# without a rule: {', '.join(left)}\n"] if left else []),
        ]
    )


def _rule(one: _Proposal, rules: int) -> str:
    """Return one rule as YAML, with the drops that it finds."""
    drop, languages, pairs = one.found(rules)
    allowed = math.ceil(drop * 50) / 200
    lines = [
        f"  # {one.units:,} {one.word}: a drop of {100 * (drop + allowed):.1f} points is found",
        f"  - metric: {_quoted(one.metric)}",
        f"    task: {_quoted(one.task)}",
        f"    max_drop: {allowed:g}   # how much worse it may be: 0.01 is one point",
    ]
    lines += (
        [f"    max_unscored: {allowed:g}   # rise allowed in the share of rows without a score"] if one.unscored else []
    )
    for key, what, shown, every in (
        ("per_language", "language", languages, one.languages),
        ("per_pair", "pair", pairs, one.pairs),
    ):
        if not shown:
            continue
        few = [name for name in every if name not in shown]
        only = f", only: [{', '.join(map(_quoted, shown))}]" if few else ""
        named = number_of(len(few), what) if len(few) > 5 else ", ".join(few)
        rest = f"; too few rows: {named}" if few else ""
        least, most = 100 * min(shown.values()), 100 * max(shown.values())
        span = f"{most:.0f}" if round(least) == round(most) else f"{least:.0f} to {most:.0f}"
        lines += [
            f"    # a drop of {span} points in one {what} is found{rest}",
            f"    {key}: {{max_drop: {_ALLOWED:g}{only}}}",
        ]
    return "\n".join(lines) + "\n"


def _by_group(runs: Mapping[str, SampleSet]) -> dict[str, list[SampleSet]]:
    """Return the runs under the first group of each, or under their own name without one."""
    found: dict[str, list[SampleSet]] = {}
    for name, run in runs.items():
        found.setdefault(run.groups[0] if run.groups else name, []).append(run)
    return found


def _proposal(task: str, metric: str, rows: Sequence[ScoredRow], *, unscored: bool) -> _Proposal:
    scored = [row for row in rows if metric in row.values]
    units: dict[str, set[str]] = defaultdict(set)
    for row in scored:
        for cell in ("", row.language, row.pair):
            units[cell].add(row.group)
    counts = {cell: len(groups) for cell, groups in sorted(units.items()) if cell}
    word = "rows" if len(units[""]) == len(scored) else "groups of rows"
    # a pair that holds all rows of its language is the language
    pairs = {cell: n for cell, n in counts.items() if "->" in cell and n < counts[cell.partition("->")[0]]}
    languages = {cell: n for cell, n in counts.items() if "->" not in cell}
    own, both = (part if len(part) > 1 and scale_of(metric).percent else {} for part in (languages, pairs))
    return _Proposal(task, metric, len(units[""]), word, own, both, unscored and metric not in TASK_MEASURES)


def _detectable(n: int, level: float) -> float:
    """Return the drop found with 80% power at a level, one-sided: (z(1 - level) + z(.8)) sqrt(churn / n).

    If that is larger than the share of answers that change, as many change as drop.
    """
    z = _reach(level)
    return max(z * math.sqrt(_CHURN / max(n, 1)), z * z / max(n, 1))


def _reach(level: float) -> float:
    """Return how many standard errors a drop has to be for 80% power at a level."""
    inverse = NormalDist().inv_cdf
    return inverse(1 - level) + inverse(POWER)


def _quoted(name: str) -> str:
    """Return the name as YAML."""
    plain = name.replace("_", "").replace("-", "").isalnum()
    return name if plain else json.dumps(name, ensure_ascii=False)
