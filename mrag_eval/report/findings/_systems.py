"""How good the systems are: which are ahead, which cannot be told apart, and what one scores beside its ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import NormalDist

import numpy as np

from mrag_eval.config import UNKNOWN, Measurement, differences, mode_named, shown
from mrag_eval.metrics import Estimate
from mrag_eval.platform import number_of
from mrag_eval.report.files._leaves import PageRow
from mrag_eval.report.files._systems import System
from mrag_eval.report.findings._record import Finding, Number
from mrag_eval.report.findings._tests import LEVEL, Array, flip_p
from mrag_eval.report.tables._leaderboard import (
    behind,
    common_keys,
    comparable,
    languages_score,
    macro_mean,
    not_ranked,
)
from mrag_eval.scoring import control_of, more_is_better

_Key = tuple[str, str]
# Systems, or benchmarks, that a sentence names.
_NAMED = 4
# Passages in the prompts of a reference run -> what it is called.
_BESIDE = {"nothing": "without passages", "gold": "with the passages that answer"}


@dataclass(frozen=True)
class Seen:
    """A system by its headline: the first metric of its benchmark that has a better side.

    ``name`` is that of the sentence; ``sign`` is -1 if less of the metric is better, else 1;
    ``shows`` says which passages its prompts hold.
    """

    system: System
    name: str
    metric: str
    benchmark: str
    sign: float
    shows: str

    @cached_property
    def rows(self) -> Mapping[_Key, PageRow]:
        """Return the rows that have the metric."""
        return {key: row for key, row in (self.system.rows or {}).items() if self.metric in row.values}

    @cached_property
    def score(self) -> Estimate:
        """Return the score of a task as its results have it; of several the mean over languages, or over tasks."""
        found = [leaf.result.metrics[self.metric] for leaf in self.system.leaves]
        if len(found) == 1:
            return found[0]
        if not self.rows:
            values = [one.value for one in found if one.value is not None]
            return Estimate(sum(values) / len(values), n=sum(one.n for one in found))
        return languages_score(self.system, self.metric, sorted(self.rows))

    def over(self, keys: Sequence[_Key]) -> Estimate:
        """Return the mean over languages of these rows; where the results have that figure, with their interval."""
        found, own = languages_score(self.system, self.metric, keys), self.score
        same = None not in (found.value, own.value) and abs(found.or_else(0.0) - own.or_else(0.0)) < 1e-9
        return own if same and own.n == len(keys) else found


def seen(systems: Sequence[System]) -> list[Seen]:
    """Return the systems that have a headline with rows."""
    out = []
    for system in systems:
        known = system.leaves[0].result
        metrics = known.in_order(dict.fromkeys(name for leaf in system.leaves for name in leaf.result.metrics))
        metric = next((name for name in metrics if more_is_better(name) is not None), "")
        modes = {other.mode for other in systems if (other.run, other.benchmark) == (system.run, system.benchmark)}
        name = system.run if len(modes) == 1 else system.name
        scored = [leaf.result.metrics[metric].value for leaf in system.leaves if metric in leaf.result.metrics]
        if scored and len(scored) == len(system.leaves) and None not in scored:
            sign, shows = 1.0 if more_is_better(metric) else -1.0, mode_named(known.config.mode).shows
            out.append(Seen(system, name, metric, system.benchmark, sign, shows))
    return out


def ranked(shown: Sequence[Seen]) -> list[Seen]:
    """Return the systems that may be best: no bounds, and none without passages where others have some."""
    own = [one for one in shown if not_ranked(one.system, one.metric) is None]
    kept = [one for one in own if one.shows not in ("nothing", "gold")]
    return kept or own


@dataclass(frozen=True)
class _Contest:
    """The systems of a benchmark over the same questions, the best first, and the paired differences of every two."""

    among: tuple[Seen, ...]
    keys: tuple[_Key, ...]
    pairs: tuple[tuple[int, int], ...]
    differences: Array

    def numbers(self, p: float, level: float, tests: int) -> dict[str, Number]:
        """Return the scores of the first two, how far apart they are, and about the least distance that is shown."""
        first, second = self.among[:2]
        scores = [one.over(self.keys) for one in (first, second)]
        gap = behind(first.system, second.system, first.metric, self.keys)
        spread = float(np.sqrt((self.differences[:, 0] ** 2).sum()))
        quantiles = NormalDist().inv_cdf(1 - level / tests / 2) + NormalDist().inv_cdf(0.8)
        return {
            "score": Number.of(scores[0], first.metric),
            "rival": Number.of(scores[1], first.metric),
            "gap": Number.of(gap, first.metric, min(1.0, p * LEVEL / level)),
            "seen": Number(quantiles * spread, first.metric),
        }


def _paired(among: Sequence[Seen], keys: Sequence[_Key]) -> _Contest:
    """Return the paired differences of every two systems, the sum over groups of each its mean over languages."""
    metric = among[0].metric
    values = np.array([[one.sign * one.rows[key].values[metric] for key in keys] for one in among])
    _, codes, sizes = np.unique([key[0] for key in keys], return_inverse=True, return_counts=True)
    weights = 1.0 / sizes[codes] / len(sizes)
    _, groups = np.unique([among[0].rows[key].group for key in keys], return_inverse=True)
    pairs = tuple(combinations(range(len(among)), 2))
    sums = [np.bincount(groups, weights * (values[a] - values[b])) for a, b in pairs]
    return _Contest(tuple(among), tuple(keys), pairs, np.stack(sums, axis=1))


class Systems:
    """Compare the systems of every benchmark, every two by sign flips, as one family by Holm."""

    def __init__(self, shown: Sequence[Seen]) -> None:
        from mrag_eval.metrics import holm

        self.shown = ranked(shown)
        found = [self._contest(name) for name in dict.fromkeys(one.benchmark for one in self.shown)]
        self.contests = [contest for contest in found if contest is not None]
        alone = [p for contest in self.contests for p in flip_p(contest.differences)]
        adjusted = iter(holm(alone))
        self.p = [[float(next(adjusted) or 0.0) for _ in contest.pairs] for contest in self.contests]
        self.tests = len(alone)
        self.everything = shown

    def _contest(self, benchmark: str) -> _Contest | None:
        here = [one for one in self.shown if one.benchmark == benchmark]
        metric = here[0].metric
        here = [one for one in here if one.metric == metric and one.rows]
        if len(here) < 2:
            return None
        together, _ = comparable([one.system for one in here], metric)
        if len(together) < 2 or not (keys := common_keys(together, metric)[0]):
            return None
        kept = [one for one in here if one.system in together]
        return _paired(sorted(kept, key=lambda one: -one.sign * macro_mean(one.system, metric, keys)), keys)

    def complete(self, level: float) -> bool:
        """Return whether every two systems are told apart at a level."""
        return all(p <= level for own in self.p for p in own)

    def say(self, level: float) -> list[Finding]:
        """Return what the systems show at a level: the best, or what a single one scores."""
        if not self.contests:
            return self._alone()
        if len(self.contests) == 1:
            return [self._one(self.contests[0], self.p[0], level)]
        ahead: dict[str, list[str]] = {}
        for contest, own in zip(self.contests, self.p, strict=True):
            first = [p for (a, _), p in zip(contest.pairs, own, strict=True) if a == 0]
            if all(p <= level for p in first):
                ahead.setdefault(contest.among[0].name, []).append(contest.among[0].benchmark)
        said = [f"{name} is best in {few(benchmarks)}" for name, benchmarks in ahead.items()]
        even = len(self.contests) - sum(map(len, ahead.values()))
        metrics = dict.fromkeys(contest.among[0].metric for contest in self.contests)
        words = {
            "metric": few([*metrics]),
            "ahead": "; ".join(said) or "no system is shown to be best",
            "even": str(even),
            "tests": f"{len(self.contests)} benchmarks",
            "corrected": f", corrected for {self.tests} comparisons",
        }
        return [Finding("good", "counted", words, subjects=tuple(ahead), test="sign flips, Holm")]

    def _one(self, contest: _Contest, own: Sequence[float], level: float) -> Finding:
        first, second = contest.among[:2]
        corrected = f", corrected for {self.tests} comparisons" if self.tests > 1 else ""
        words = {
            "system": first.name,
            "other": second.name,
            "metric": first.metric,
            "where": "",
            "corrected": corrected,
        }
        rows = {"tasks": [leaf.label for leaf in (*first.system.leaves, *second.system.leaves)]}
        numbers = contest.numbers(own[0], level, self.tests)
        template = "best" if own[0] <= level else "tied" if contest.differences[:, 0].any() else "even"
        return Finding("good", template, words, numbers, (first.name, second.name), "sign flips, Holm", rows)

    def _alone(self) -> list[Finding]:
        """Return the score of one system beside its ends; of several that no test compares, each score."""
        if len(self.shown) != 1:
            scores = [f"{one.name} {Number.of(one.score, one.metric)} on {one.benchmark}" for one in self.shown]
            words = {"scores": few(scores), "metric": few([one.metric for one in self.shown])}
            return [Finding("good", "each", words)] if scores else []
        (one,) = self.shown
        beside: list[str] = []
        control = control_of(one.metric)
        tables = [leaf.result.scores.controls.get(one.metric, {}) for leaf in one.system.leaves]
        for called, names in (("a floor", control.floors[:1]), ("a ceiling", control.ceilings)):
            kept = [
                [own.means[name] for name in names if name in own.found][:1] for by in tables for own in by.values()
            ]
            found = [value for values in kept for value in values]
            if known := [value for value in found if value is not None]:
                beside.append(f"{called} of {Number(sum(known) / len(known), one.metric):value}")
        for other in self.everything:
            same = (other.system.run, other.metric) == (one.system.run, one.metric)
            if same and other is not one and other.shows in _BESIDE:
                beside.append(f"{Number.of(other.score, one.metric):value} {_BESIDE[other.shows]}")
        words = {"system": one.name, "metric": one.metric, "beside": f"; beside it {few(beside)}" if beside else ""}
        words["where"] = f" over {number_of(one.score.n, 'row')}" if one.score.n else ""
        return [Finding("good", "alone", words, {"score": Number.of(one.score, one.metric)}, (one.name,))]


class RunAgain:
    """Compare each system with its last run before this one, over the questions of both, as one family by Holm."""

    def __init__(self, before: Sequence[Seen], now: Sequence[Seen]) -> None:
        from mrag_eval.metrics import holm

        def named(one: Seen) -> tuple[str, ...]:
            return one.system.run, one.benchmark, one.metric, one.system.leaves[0].mode

        last = {named(one): one for one in before if one.rows}
        both = [(one, last[key]) for one in now if (key := named(one)) in last and one.rows]
        found = [((one, then), sorted({*one.rows} & {*then.rows})) for one, then in both]
        self.contests = [_paired(two, shared) for two, shared in found if shared]
        alone = [p for contest in self.contests for p in flip_p(contest.differences)]
        self.p = [float(p or 0.0) for p in holm(alone)]
        self.tests = len(alone)

    def complete(self, level: float) -> bool:
        """Return whether every change is shown at a level."""
        return all(p <= level for p in self.p)

    def say(self, level: float) -> list[Finding]:
        """Return the change that is surest, and what differs between its two runs."""
        if not self.contests:
            return []
        p, contest = min(zip(self.p, self.contests, strict=True), key=lambda one: one[0])
        now, then = contest.among
        numbers = contest.numbers(p, level, self.tests)
        tasks = {leaf.task: leaf.result.measurement for leaf in then.system.leaves}
        both = ((tasks[leaf.task], leaf.result.measurement) for leaf in now.system.leaves if leaf.task in tasks)
        words = {
            "system": now.system.run,
            "metric": now.metric,
            "side": "better" if numbers["gap"].value * now.sign > 0 else "worse",
            "corrected": f", corrected for {self.tests} comparisons" if self.tests > 1 else "",
            "differ": cause(both),
        }
        rows = {"tasks": [leaf.label for leaf in (*now.system.leaves, *then.system.leaves)]}
        template = "changed" if p <= level else "unchanged" if contest.differences.any() else "same"
        return [Finding("changed", template, words, numbers, (now.system.run,), "sign flips, Holm", rows)]


def cause(records: Iterable[tuple[Measurement | None, Measurement | None]]) -> str:
    """Return what differs between the records of two runs of a system, task by task."""
    found = [
        f"{one.key} ({shown(one.first)} → {shown(one.second)})"
        for first, second in records
        for one in differences(first, second, allowed=("ran", UNKNOWN))
    ]
    return f"what differs: {few(found)}" if found else "nothing that is recorded differs"


def few(names: Sequence[str]) -> str:
    """Return the first names, each once, and how many more there are."""
    once = list(dict.fromkeys(names))
    return ", ".join(once[:_NAMED]) + (f" and {len(once) - _NAMED} more" if len(once) > _NAMED else "")
