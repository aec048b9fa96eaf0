"""Paired comparison of two runs: differences with intervals and p-values, and the rows that changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from mrag_eval.config import EVERYTHING, RIGHT_LANGUAGE, SHOWN, called_here
from mrag_eval.core import Displayed, plain_name, same_language
from mrag_eval.platform import Allowed, DataError, Natural, Places, Wait, number_of, paths_of
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._control_marks import limits_of
from mrag_eval.report.comparison._gate_rules import beyond
from mrag_eval.report.comparison._paired_rows import (
    PairedRows,
    cell_of,
    changed,
    check_differs,
    is_plain_mean,
    other_versions,
    paired,
    pooled,
    unlike_settings,
)
from mrag_eval.report.files._runs import SampleSet
from mrag_eval.report.files._scored_rows import PAIR
from mrag_eval.scoring import scale_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from mrag_eval.metrics import PairedTest, Place

# Power at which the smallest detectable effect is given.
POWER = 0.8


@dataclass(frozen=True)
class Difference:
    """Second run minus first for one task and metric, on rows that both scored: all, or those of one ``language``.

    That may also be a pair of languages of question and document (``ar->en``), ``same language`` or ``cross language``.

    ``p_value`` is two-sided and paired, and ``low`` and ``high`` bound the 95% interval of ``difference`` by the same
    test: 0 is outside if and only if p is at most .05. ``p_adjusted`` is corrected for all tests of the comparison.
    They are None if no test is possible, and ``reason`` says why. Metrics that decide nothing have no p-values.
    ``equivalent``: whether the difference is shown to be smaller than the margin asked for, None without one.
    ``detectable`` is the smallest difference that this many pairs show with 80% power at the 5% level. ``better`` and
    ``worse`` are the ids of rows whose value rose and fell. ``part`` says how many of the task's rows were run, if not
    all. ``marked`` names the languages of which more than a tenth of the rows failed, ``limited`` those in which a
    right answer scores less than it should.
    """

    task: str
    metric: str
    language: str | None
    n: int
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    detectable: float | None
    method: str
    reason: str | None = None
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    part: str | None = None
    marked: str | None = None
    limited: str | None = None
    equivalent: bool | None = None


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """All differences, and ``notes`` on rows and tasks that could not be paired; it shows itself as the command prints.

    ``margin`` is the size of difference that counts as none, if one was asked for. ``runs`` names the two. ``left_out``
    counts the pairs of languages of too few rows to show any difference. ``groups`` maps a group to
    the tasks whose rows are compared together. ``cause`` is what differs, if both are runs of one system.
    """

    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    differs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    margin: float | None = None
    runs: tuple[str, str] = ("first run", "second run")
    left_out: int = 0
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cause: str | None = None

    @property
    def verdict(self) -> Literal["better", "worse", "mixed", "no difference", "no test"]:
        """Return what is shown of the second run by the metric that decides each task, over all languages."""
        from mrag_eval.report.comparison._compare_text import deciding, side_of

        sides = {side_of(d) for d in deciding(self).values()}
        if not sides:
            return "no test"
        return "mixed" if {1, -1} <= sides else "better" if 1 in sides else "worse" if -1 in sides else "no difference"

    @property
    def text(self) -> str:
        """Return what the command prints where there is room: the tables, and in the end the finding in words."""
        from mrag_eval.report.comparison._compare_text import comparison_text

        return comparison_text(self)

    @property
    def frame(self) -> DataFrame:
        """Return one row for each :class:`Difference`, with its fields as columns."""
        from pandas import DataFrame

        return DataFrame([asdict(d) for d in self.differences])

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return asdict(self)


class Contrast(NamedTuple):
    """A difference to look at: the rows, the metric, and what they are of, if not of all.

    ``place`` is that of its test among those of its task and metric. Without ``tested``, it has an interval alone.
    """

    rows: PairedRows
    metric: str
    language: str | None = None
    place: Place | None = None
    tested: bool = True


def compare(
    first: Places,
    second: Places,
    *,
    metrics: Sequence[str] = (),
    pairs: Mapping[str, str] | None = None,
    differs: Sequence[str] = (),
    equivalent: Annotated[float, Allowed(least=0)] | None = None,
    seed: Natural = 0,
) -> Comparison:
    """Compare two runs row by row, as ``mrag-eval compare`` does.

    Args:
        first, second: results of this session; or output folders, result files, sample files, or a baseline file.
        metrics: Compare only this metric. Repeat the option for several.
        pairs: task of the first run -> task of the second, where the names are not the same (two IR modes).
        differs: A setting that is meant to differ: retrieval.mode, prompt, ..., or `all`. May be repeated.
        equivalent: Say which differences are shown to be smaller than this, in the metric's unit (0.02: two points).
        seed: Random seed of the bootstrap resamples.

    Raises DataError if no task is in both runs, if settings differ that were not named, and if rows do not
    pair.
    """
    first, second = paths_of(first), paths_of(second)
    metrics, differs = ([one] if isinstance(one, str) else one for one in (metrics, differs))
    a, b = read_runs_or_baseline(first), read_runs_or_baseline(second)
    named = dict(pairs or {})
    for task, where, runs in [*((t, "first", a) for t in named), *((t, "second", b) for t in named.values())]:
        if task not in runs:
            raise DataError(
                f"no task '{task}' in the {where} run (it holds: {', '.join(runs)})",
                "--pair A_TASK=B_TASK names tasks that both runs hold",
            )
    both = named or {task: task for task in a if task in b}
    if not both:
        raise DataError(
            f"the runs share no task ({', '.join(a)} | {', '.join(b)})", "name the tasks to pair: --pair FIRST=SECOND"
        )
    check_differs(differs, [a[task].measurement for task in both] + [b[task].measurement for task in both.values()])
    versions = other_versions((a[task], b[other]) for task, other in both.items())
    notes = [f"versions that differ, first | second: {versions}"] if versions else []
    for where, sets in (("first", [a[task] for task in both]), ("second", [b[other] for other in both.values()])):
        if models := dict.fromkeys(name for one in sets for name in one.answered_by):
            notes.append(f"{where} run: answered by {', '.join(models)}")
    notes += [f"{task}: only in the first run" for task in a if task not in both]
    notes += [f"{task}: only in the second run" for task in b if task not in both.values()]
    unlike: dict[str, Mapping[str, str]] = {}
    lacking: list[str] = []
    parts: list[Contrast] = []
    pairs_of: dict[str, PairedRows] = {}
    with Wait("comparing runs", len(both), "tasks") as wait:
        for task, other in wait.over(both.items()):
            pairs_of[task] = pair = paired(a[task], b[other], differs)
            unlike[task] = {found.key: found.values for found in unlike_settings(a[task], b[other])}
            alone = dict(zip(("first", "second"), pair.unpaired, strict=True))
            notes += [f"{task}: {number_of(n, 'row')} only in the {where} run" for where, n in alone.items() if n]
            lacking += pair.alone()
            decisive = metrics or headline([a[task], b[other]], pair.metrics)
            for metric in [m for m in pair.metrics if not metrics or m in metrics]:
                low, high = scale_of(metric).bounds
                if equivalent is not None and metric in decisive and equivalent >= high - low:
                    raise beyond("--equivalent", equivalent, metric)
                parts += _asked(pair.of_metric(metric), metric, tested=metric in decisive)
    groups = _groups(a, b, both)
    for group, tasks in groups.items():
        parts += _of_group(pooled(group, [pairs_of[task] for task in tasks]), metrics, [a[task] for task in tasks])
    found, left_out = differences_of(parts, equivalent, seed)
    missing = [name for name in metrics if name not in {d.metric for d in found}]
    if missing:
        why = f" ({'; '.join(lacking)})" if lacking else ""
        raise DataError(
            f"no task of both runs has the metric '{missing[0]}'{why}",
            called_here(missing[0], "mrag-eval report A B   shows the metrics of every task"),
        )
    if not found and lacking:
        raise DataError("; ".join(lacking), "run again what failed, or score both runs by the same metrics")
    if not found:
        raise DataError("the runs share no metric", "score both runs by the same metrics: --metadata metrics=...")
    differing = {task: keys for task, keys in unlike.items() if keys}
    names = _names([a[task] for task in both], [b[other] for other in both.values()], first, second)
    cause = changed((a[task], b[other]) for task, other in both.items())
    return Comparison(tuple(found), (*notes, *lacking), differing, equivalent, names, left_out, groups, cause)


def _asked(rows: PairedRows, metric: str, *, tested: bool) -> Iterator[Contrast]:
    """Yield what is looked at of a metric: all rows, languages, and of a tested one pairs and their two kinds."""
    from mrag_eval.metrics import Place

    of = rows.task, metric
    yield Contrast(rows, metric, None, Place(of), tested)
    if len(rows.languages) > 1:
        for language in rows.languages:
            yield Contrast(rows.of_language(language), metric, language, Place(of, language), tested)
    pairs = rows.cells(PAIR) if tested else ()
    if len(pairs) < 2:
        return
    sizes = {language: len(rows.of_language(language).first) for language in rows.languages}
    for name in pairs:
        own, language = rows.of_cells(PAIR, name), name.partition("->")[0]
        # a pair that holds all rows of its language is the language
        if len(own.first) < sizes.get(language, 0):
            yield Contrast(own, metric, name, Place(of, language, name))
    kinds = {name: same_language(*name.split("->", 1)) for name in pairs}
    for kind, same in (("same language", True), ("cross language", False)):
        names = [name for name in pairs if kinds[name] is same]
        if 0 < len(names) < len(pairs):
            yield Contrast(rows.of_cells(PAIR, *names), metric, kind, Place(of, "", kind))


def _groups(a: Mapping[str, SampleSet], b: Mapping[str, SampleSet], both: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the groups of both runs -> their tasks of ``both``, several each; of groups within another, the outer."""
    members: dict[str, list[str]] = {}
    for task, other in both.items():
        for group in a[task].groups:
            if group in b[other].groups:
                members.setdefault(group, []).append(task)
    inner = {g for g, own in members.items() for out in members.values() if set(own) < set(out)}
    kept = {tuple(own): g for g, own in reversed(members.items()) if g not in inner and len(own) > 1}
    return {group: list(own) for own, group in kept.items()}


def _of_group(rows: PairedRows, metrics: Sequence[str], runs: Sequence[SampleSet]) -> Iterator[Contrast]:
    """Yield what is looked at of a group: its deciding metrics, over the rows of its tasks together."""
    for metric in [name for name in metrics or headline(runs, rows.metrics) if name in rows.metrics]:
        of_rows = is_plain_mean(rows.task, metric, runs)
        # the mean of all rows is not the group's score, which counts each task once
        yield from (c for c in _asked(rows.of_metric(metric), metric, tested=True) if c.language or not of_rows)


def _names(
    first: Sequence[SampleSet], second: Sequence[SampleSet], ours: Sequence[Path], theirs: Sequence[Path]
) -> tuple[str, str]:
    """Return names of two runs that differ: of their models, else of their folders, with the time if it is known."""
    newest = [max(runs, key=lambda one: one.run.date).run for runs in (first, second)]
    folders = [" ".join(path.name.removesuffix(".json") for path in paths) for paths in (ours, theirs)]
    named = [folder + (f" ({run.day})" if run.day else "") for folder, run in zip(folders, newest, strict=True)]
    for one, other in ([run.model for run in newest], named, [" ".join(map(str, paths)) for paths in (ours, theirs)]):
        if one != other:
            return one, other
    return "first run", "second run"


def compare_tasks(
    run: Path, tasks: Sequence[str], metric: str, *, only: Collection[str], seed: int = 0
) -> dict[tuple[str, str], Difference]:
    """Return the difference of every two of these tasks of a run, the second less the first, tested as one family.

    So any two may be looked at afterwards, also the best and another. Settings may differ. ``only`` are the ids of the
    rows that count: those that all tasks have a value for make every difference one of the same means.
    """
    runs = read_runs_or_baseline([run])
    both = list(combinations(tasks, 2))
    rows = [paired(runs[a], runs[b], [EVERYTHING]).of_rows(only) for a, b in both]
    return dict(zip(both, differences_of([Contrast(pair, metric) for pair in rows], seed=seed)[0], strict=True))


def headline(runs: Sequence[SampleSet], scored: Sequence[str]) -> list[str]:
    """Return the metrics by which runs of a task, or of a group, are decided, of those that their rows have.

    The benchmark's main metric or, of a log, the first that says whether an answer is right; the right language, and
    whether a relevant passage was shown, where they are known. Without any of the first, all that are left.
    """
    from mrag_eval.datasets import OWN_ROWS, known_of

    record = runs[0].measurement
    main = known_of({} if record is None else record.setting.get("data") or {}).main_metric
    first = main if main in scored else next((name for name in OWN_ROWS.metrics if name in scored), None)
    beside = [next((name for name in RIGHT_LANGUAGE if name in scored), None)]
    beside += [next((name for name in scored if plain_name(name) == SHOWN), None)]
    return list(dict.fromkeys(name for name in (first, *beside) if name is not None)) if first else list(scored)


def differences_of(
    parts: Sequence[Contrast], equivalent: float | None = None, seed: int = 0
) -> tuple[list[Difference], int]:
    """Return the differences of rows, metrics and languages, those that are tested as one family, and how many pairs of
    languages were left out, as no difference of theirs could be shown.

    With ``equivalent``, a difference is equivalent to none if its 90% interval is within that margin: two one-sided
    tests at 5% (Schuirmann 1987).
    """
    from mrag_eval.metrics import paired_tests

    def tested(confidence: float) -> list[PairedTest]:
        kinds = {}
        for kind in (False, True):
            own = [cell for cell, part in zip(cells, parts, strict=True) if part.tested is kind]
            kinds[kind] = iter(paired_tests(own, confidence=confidence, seed=seed))
        return [next(kinds[part.tested]) for part in parts]

    cells = [replace(cell_of(part.rows, part.metric, baseline="second"), place=part.place) for part in parts]
    found = tested(0.95)
    within = [None] * len(found) if equivalent is None else tested(0.9)
    out, left_out = [], 0
    for (pair, metric, language, _, decides), test, ends in zip(parts, found, within, strict=True):
        if not test.possible:
            left_out += 1
            continue
        changes = [
            (a.id, a.values[metric], b.values[metric])
            for a, b in zip(pair.first, pair.second, strict=True)
            if metric in a.values and metric in b.values
        ]
        out.append(
            Difference(
                task=pair.task,
                metric=metric,
                language=language,
                n=test.n,
                first=_mean([x for _, x, _ in changes]),
                second=_mean([y for _, _, y in changes]),
                difference=test.difference,
                low=test.low,
                high=test.high,
                p_value=test.p_value if decides else None,
                p_adjusted=test.p_adjusted if decides else None,
                detectable=test.detectable,
                method=test.method,
                reason=test.reason,
                better=tuple(key for key, x, y in changes if y > x),
                worse=tuple(key for key, x, y in changes if y < x),
                part=pair.part,
                marked=pair.marked("first run", "second run"),
                limited=limits_of(metric, pair.second, pair.first),
                equivalent=None if ends is None else _within(ends, equivalent),
            )
        )
    return out, left_out


def _within(test: PairedTest, margin: float | None) -> bool:
    if margin is None or test.low is None or test.high is None:
        return False
    return -margin < test.low and test.high < margin


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
