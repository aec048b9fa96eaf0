"""Paired comparison of two runs: differences with intervals and p-values, and the rows that changed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.config import ALL_BUT_THE_MODEL, EVERYTHING, UNKNOWN, Differs, Measurement, differences, names_in
from mrag_eval.core import ConfigError, DataError, Wait, close_match
from mrag_eval.report.comparison._baseline import read_runs_or_baseline
from mrag_eval.report.comparison._failed_rows import FailedRows, marks
from mrag_eval.report.files._samples import SampleSet
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import TASK_MEASURES, scale_of

if TYPE_CHECKING:
    from mrag_eval.metrics import PairedTest

# Resamples of a difference between two runs.
RESAMPLES = 10_000
# Rows are paired by their ids: which of them ran is counted apart.
_PAIRED = ("ran",)
# Power at which the smallest detectable effect is given.
POWER = 0.8


@dataclass(frozen=True)
class Difference:
    """Hold second run minus first for one task and metric, on rows that both scored, in all or one ``language``.

    ``low`` and ``high`` bound the 95% interval of ``difference``. ``p_value`` is two-sided and paired, ``p_adjusted``
    the same after Holm's correction over all tests of this metric; both are None if no test is possible, and ``reason``
    says why. ``detectable`` is the smallest difference that this many pairs show with 80% power at the 5% level.
    ``better`` and ``worse`` are the ids of rows that gained and lost. ``part`` says how many of the task's rows were
    run, if not all. ``marked`` names the languages of which more than a tenth of the rows failed.
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


@dataclass(frozen=True)
class Comparison:
    """Hold all differences, and ``notes`` on rows and tasks that could not be paired."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    differs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class PairedRows:
    """Hold the rows that both runs of a task contain, row by row, and the numbers of rows in only one run.

    ``part`` says how many of the task's rows were run, if not all. ``failed`` counts the failures of all rows of each
    run, by language.
    """

    task: str
    first: tuple[ScoredRow, ...]
    second: tuple[ScoredRow, ...]
    unpaired: tuple[int, int]
    part: str | None = None
    failed: tuple[FailedRows, FailedRows] = (FailedRows(), FailedRows())

    def of_metric(self, metric: str) -> PairedRows:
        """Return the pairs that the metric is of in either run."""
        return self._kept([is_of(a, metric) or is_of(b, metric) for a, b in zip(self.first, self.second, strict=True)])

    def of_language(self, language: str) -> PairedRows:
        """Return the pairs in one language."""
        return self._kept([row.language == language for row in self.first])

    def of_pair(self, pair: str) -> PairedRows:
        """Return the pairs whose question and relevant document are in the languages ``de->en`` (or ``*->en``)."""
        return self._kept([fnmatchcase(row.pair, pair) for row in self.second])

    def _kept(self, keeps: Sequence[bool]) -> PairedRows:
        first, second = tuple(compress(self.first, keeps)), tuple(compress(self.second, keeps))
        return PairedRows(self.task, first, second, (0, 0), self.part, self.failed)

    def marked(self, first: str, second: str) -> str | None:
        """Return the languages of these rows of which many rows failed, in runs of these names; None: there is none."""
        return marks(dict(zip((first, second), self.failed, strict=True)), self.languages)

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages of the questions, sorted."""
        return tuple(sorted({row.language for row in self.first} - {""}))

    @property
    def pairs(self) -> tuple[str, ...]:
        """Return the pairs of question and document language, sorted."""
        return tuple(sorted({row.pair for row in self.second} - {""}))

    def alone(self) -> Iterator[str]:
        """Yield a line on the metrics that have values in one of the runs alone."""
        names = [list(dict.fromkeys(name for row in run for name in row.values)) for run in (self.first, self.second)]
        for here, there, where, failed in (
            (names[0], names[1], "second", self.failed[1]),
            (names[1], names[0], "first", self.failed[0]),
        ):
            if gone := [name for name in here if name not in there]:
                why = f" ({failed.of_all})" if failed.of_all else ""
                yield f"{self.task}: no value in the {where} run for {', '.join(gone)}{why}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics that both runs have on some row, in the order of the first run's rows."""
        first = dict.fromkeys(name for row in self.first for name in row.values)
        second = {name for row in self.second for name in row.values}
        return tuple(name for name in first if name in second)


def compare(
    first: Sequence[Path],
    second: Sequence[Path],
    *,
    metrics: Sequence[str] = (),
    pairs: Mapping[str, str] | None = None,
    differs: Sequence[str] = (),
    seed: int = 0,
) -> Comparison:
    """Compare two runs by their sample files.

    Args:
        first, second: sample files, folders of them, or a baseline file.
        metrics: those to compare; by default all that both runs have.
        pairs: task of the first run -> task of the second, where the names are not the same (two IR modes).
        differs: settings that differ on purpose, as keys or blocks (``retrieval.mode``, ``prompt``, ``all``).

    Raises DataError if no task is in both runs, if settings differ that were not named, and if rows do not
    pair.
    """
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
    _check_named(differs, [a[task].measurement for task in both] + [b[task].measurement for task in both.values()])
    notes = [f"{task}: only in the {where} run" for task, where in _alone(a, b, both)]
    unlike: dict[str, Mapping[str, str]] = {}
    lacking: list[str] = []
    found: list[Difference] = []
    with Wait("comparing runs", len(both), "tasks") as wait:
        for task, other in wait.over(both.items()):
            pair = paired(a[task], b[other], differs)
            unlike[task] = {found.key: found.values for found in unlike_settings(a[task], b[other])}
            alone = dict(zip(("first", "second"), pair.unpaired, strict=True))
            notes += [f"{task}: {n} rows only in the {where} run" for where, n in alone.items() if n]
            lacking += pair.alone()
            for metric in [m for m in pair.metrics if not metrics or m in metrics]:
                own = pair.of_metric(metric)
                parts: list[tuple[str | None, PairedRows]] = [(None, own)]
                if len(own.languages) > 1:
                    parts += [(language, own.of_language(language)) for language in own.languages]
                found += [
                    replace(difference(part, metric, language, seed), marked=part.marked("first run", "second run"))
                    for language, part in parts
                ]
    missing = [name for name in metrics if name not in {d.metric for d in found}]
    if missing:
        why = f" ({'; '.join(lacking)})" if lacking else ""
        raise DataError(
            f"no task of both runs has the metric '{missing[0]}'{why}",
            "mrag-eval report A B   shows the metrics of every task",
        )
    if not found and lacking:
        raise DataError("; ".join(lacking), "run again what failed, or score both runs by the same metrics")
    if not found:
        raise DataError("the runs share no metric", "score both runs by the same metrics: --metadata metrics=...")
    return Comparison(tuple(_holm(found)), (*notes, *lacking), {task: keys for task, keys in unlike.items() if keys})


def is_of(row: ScoredRow, metric: str) -> bool:
    """Return whether a metric is of this row: of a territory that counts for a score over territories, or a question.

    A question without the metric is unscored, but a territory without the score does not count for it.
    """
    return metric in row.values if metric in TASK_MEASURES else not row.of_territory


def unlike_settings(first: SampleSet, second: SampleSet, differs: Sequence[str] = ()) -> list[Differs]:
    """Return everything but model and rows in which two runs measured something else, unless ``differs`` names it."""
    return differences(first.measurement, second.measurement, ALL_BUT_THE_MODEL, (*differs, *_PAIRED))


def _check_named(differs: Sequence[str], records: Sequence[Measurement | None]) -> None:
    """Raise ConfigError for a setting that is meant to differ and that no task could have."""
    known = {EVERYTHING, UNKNOWN, *names_in(records)}
    for name in differs:
        if name not in known and any(records):
            raise ConfigError(
                f"--differs {name}: the runs have no such setting{close_match(name, known)}",
                "name a block or a key, such as retrieval or retrieval.mode, or all",
            )


def _alone(a: Mapping[str, SampleSet], b: Mapping[str, SampleSet], both: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        *((task, "first") for task in a if task not in both),
        *((task, "second") for task in b if task not in both.values()),
    ]


def paired(first: SampleSet, second: SampleSet, differs: Sequence[str] = ()) -> PairedRows:
    """Return the rows of both runs, paired by row id.

    Raises DataError if a setting differs that ``differs`` does not name, and if the runs share no row.
    """
    name = first.task if first.task == second.task else f"{first.task} / {second.task}"
    unlike = unlike_settings(first, second, differs)
    if unlike and unlike[0].key == UNKNOWN:
        run = next(run for run in (first, second) if run.measurement is None)
        raise DataError(
            f"{run.path}: what it measures is unknown: its results_*.json is not beside it, or from an older version",
            "put them there, or run again; to compare all the same: --differs all",
        )
    if unlike:
        shown = "; ".join(f"{found.key}: {found.values}" for found in unlike[:4])
        more = f" and {len(unlike) - 4} more" if len(unlike) > 4 else ""
        blocks = dict.fromkeys(found.key.partition(".")[0] for found in unlike)
        raise DataError(
            f"{name}: the runs differ in {shown}{more}",
            f"if that is on purpose:  {' '.join(f'--differs {block}' for block in blocks)}",
        )
    # sorted, so that figures do not depend on the order in a file
    ids = sorted(first.rows.keys() & second.rows.keys())
    if not ids:
        raise DataError(f"{name}: the runs share no row", "compare runs over the same rows (--limit, --samples)")
    return PairedRows(
        name,
        tuple(first.rows[key] for key in ids),
        tuple(second.rows[key] for key in ids),
        (len(first.rows) - len(ids), len(second.rows) - len(ids)),
        _part(first.part, second.part),
        (FailedRows.of(first.rows.values()), FailedRows.of(second.rows.values())),
    )


def _part(first: str | None, second: str | None) -> str | None:
    """Return how many rows two runs are over; of both if they differ."""
    return first if first == second else f"{first or 'all rows'} | {second or 'all rows'}"


def difference(pair: PairedRows, metric: str, language: str | None = None, seed: int = 0) -> Difference:
    """Return one difference, by the paired test for its values and the paired bootstrap over rows or groups."""
    from mrag_eval.metrics import paired_difference

    a: list[float | None] = [row.values.get(metric) for row in pair.first]
    b: list[float | None] = [row.values.get(metric) for row in pair.second]
    groups = [row.group for row in pair.first]
    grouped = groups if len(set(groups)) < len(groups) else None
    changes = [(row.id, y - x) for row, x, y in zip(pair.first, a, b, strict=True) if x is not None and y is not None]
    interval = paired_difference(
        b, a, groups=grouped, n_resamples=RESAMPLES, seed=seed, bounds=scale_of(metric).differences
    )
    test = _test(b, a, grouped, seed)
    kept = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return Difference(
        task=pair.task,
        metric=metric,
        language=language,
        n=len(kept),
        first=_mean([x for x, _ in kept]),
        second=_mean([y for _, y in kept]),
        difference=interval.value,
        low=interval.low,
        high=interval.high,
        p_value=test.p_value,
        p_adjusted=None,
        detectable=smallest_detectable(b, a, grouped),
        method=test.method,
        reason=test.reason or interval.reason,
        better=tuple(key for key, change in changes if change > 0),
        worse=tuple(key for key, change in changes if change < 0),
        part=pair.part,
    )


def _test(
    second: Sequence[float | None], first: Sequence[float | None], groups: Sequence[str] | None, seed: int
) -> PairedTest:
    """Return the p-value: McNemar's for 0 and 1, a permutation for other values, the cluster bootstrap for groups."""
    from mrag_eval.metrics import mcnemar_exact, paired_cluster_bootstrap, paired_permutation

    if groups is not None:
        return paired_cluster_bootstrap(second, first, groups, n_resamples=RESAMPLES, seed=seed)
    if {*first, *second} <= {0.0, 1.0, None}:
        return mcnemar_exact(second, first)
    return paired_permutation(second, first, n_resamples=RESAMPLES, seed=seed)


def standard_error(
    second: Sequence[float | None], first: Sequence[float | None], groups: Sequence[str] | None
) -> tuple[float, float, int] | None:
    """Return mean, standard error and number of units (rows or groups) of the differences; None below two units.

    With groups the error is the cluster-robust one: sqrt(G / (G - 1) * sum of (S_g - n_g * mean)^2) / n.
    """
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for i, (y, x) in enumerate(zip(second, first, strict=True)):
        if x is not None and y is not None:
            unit = sums[groups[i] if groups is not None else str(i)]
            unit[0] += y - x
            unit[1] += 1
    units = len(sums)
    if units < 2:
        return None
    n = sum(count for _, count in sums.values())
    mean = sum(total for total, _ in sums.values()) / n
    squares = sum((total - count * mean) ** 2 for total, count in sums.values())
    return mean, math.sqrt(units / (units - 1) * squares) / n, units


def smallest_detectable(
    second: Sequence[float | None],
    first: Sequence[float | None],
    groups: Sequence[str] | None = None,
    *,
    alpha: float = 0.05,
    one_sided: bool = False,
) -> float | None:
    """Return the smallest true difference found with 80% power: (t(1 - alpha / 2) + t(.8)) SE (Bloom 1995).

    The standard error is that of the given pairs. None below two units, and if no pair differs.
    """
    from scipy.stats import t

    found = standard_error(second, first, groups)
    if found is None or found[1] == 0:
        return None
    _, error, units = found
    level = alpha if one_sided else alpha / 2
    return float((t.ppf(1 - level, units - 1) + t.ppf(POWER, units - 1)) * error)


def _holm(found: Sequence[Difference]) -> list[Difference]:
    from mrag_eval.metrics import holm

    by_metric: dict[str, list[int]] = defaultdict(list)
    for i, one in enumerate(found):
        by_metric[one.metric].append(i)
    out = list(found)
    for places in by_metric.values():
        for i, p in zip(places, holm([found[i].p_value for i in places]), strict=True):
            out[i] = replace(found[i], p_adjusted=p)
    return out


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
