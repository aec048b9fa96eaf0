"""The rows that two runs share, paired by their ids, if both measured the same thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Literal

from mrag_eval.config import (
    ALL_BUT_THE_MODEL,
    EVERYTHING,
    OWN,
    UNKNOWN,
    Differs,
    Measurement,
    differences,
    names_in,
)
from mrag_eval.platform import ConfigError, DataError, close_match
from mrag_eval.report.comparison._failed_rows import FailedRows, marks
from mrag_eval.report.files._runs import RunOf, SampleSet
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.report.findings._systems import cause
from mrag_eval.scoring import TASK_MEASURES, scale_of

if TYPE_CHECKING:
    from mrag_eval.metrics import PairedCell

# Rows are paired by their ids: which of them ran is counted apart.
_PAIRED = ("ran",)


@dataclass(frozen=True)
class PairedRows:
    """The rows that both runs of a task contain, row by row, and the numbers of rows in only one run.

    ``part`` says how many of the task's rows were run, if not all. ``failed`` counts the failures of all rows of each
    run, by language. ``changed`` are metrics of both that something else computes in each; they have no values here.
    ``tasks`` has the task of each row if the score is the plain mean of several tasks' scores; else it is empty.
    """

    task: str
    first: tuple[ScoredRow, ...]
    second: tuple[ScoredRow, ...]
    unpaired: tuple[int, int]
    part: str | None = None
    failed: tuple[FailedRows, FailedRows] = (FailedRows(), FailedRows())
    changed: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    def of_metric(self, metric: str) -> PairedRows:
        """Return the pairs that the metric is of in either run."""
        keeps = [is_of(a, metric) or is_of(b, metric) for a, b in zip(self.first, self.second, strict=True)]
        return replace(self._kept(keeps), tasks=tuple(compress(self.tasks, keeps)))

    def of_rows(self, only: Collection[str]) -> PairedRows:
        """Return the pairs with these ids."""
        return self._kept([row.id in only for row in self.first])

    def of_language(self, language: str) -> PairedRows:
        """Return the pairs in one language."""
        return self._kept([row.language == language for row in self.first])

    def of_cells(self, by: str, *cells: str) -> PairedRows:
        """Return the pairs of rows in any of these cells of a breakdown."""
        return self._kept([found in cells for found in self._cells(by)])

    def _kept(self, keeps: Sequence[bool]) -> PairedRows:
        first, second = tuple(compress(self.first, keeps)), tuple(compress(self.second, keeps))
        return PairedRows(self.task, first, second, (0, 0), self.part, self.failed, self.changed)

    def marked(self, first: str, second: str) -> str | None:
        """Return the languages of these rows of which many rows failed, in runs of these names; None: there is none."""
        return marks(dict(zip((first, second), self.failed, strict=True)), self.languages)

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages of the questions, sorted."""
        return tuple(sorted({row.language for row in self.first} - {""}))

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """Return the breakdowns of which a row of either run has a cell, sorted."""
        return tuple(sorted({name for run in (self.first, self.second) for row in run for name in row.breakdowns}))

    def cells(self, by: str) -> tuple[str, ...]:
        """Return the cells of a breakdown, sorted."""
        return tuple(sorted({*self._cells(by)} - {""}))

    def elsewhere(self, by: str) -> str | None:
        """Return where in a breakdown those of the rows are that the second run has in another cell; None: none is."""
        both = zip(self._cells(by), self.second, strict=True)
        found = Counter(b.cell(by) or "none" for cell, b in both if b.cell(by) != cell)
        most_first = sorted(found.items(), key=lambda one: (-one[1], one[0]))
        return ", ".join(f"{cell} {n:,}" for cell, n in most_first) or None

    def _cells(self, by: str) -> list[str]:
        """Return the cell of each row: that of the first run, or of the second if the first does not have it."""
        return [cell_in(by, a, b) for a, b in zip(self.first, self.second, strict=True)]

    def alone(self) -> Iterator[str]:
        """Yield a line on the metrics that have values in one of the runs alone."""
        for name in self.changed:
            yield f"{self.task}: '{name}' is another metric in the second run: what computes it has changed"
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


def paired(first: SampleSet, second: SampleSet, differs: Sequence[str] = ()) -> PairedRows:
    """Return the rows of both runs, paired by row id.

    Raises DataError if a setting differs that ``differs`` does not name, and if the runs share no row.
    """
    name = first.task if first.task == second.task else f"{first.task} / {second.task}"
    unlike = unlike_settings(first, second, differs)
    # a metric that something else computes is another metric, and changes no other
    changed = {found.key.partition(".")[0].removeprefix(OWN) for found in unlike if found.key.startswith(OWN)}
    changed &= _valued(first) & _valued(second)
    unlike = [found for found in unlike if not found.key.startswith(OWN)]
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
        tuple(_without(first.rows[key], changed) for key in ids),
        tuple(_without(second.rows[key], changed) for key in ids),
        (len(first.rows) - len(ids), len(second.rows) - len(ids)),
        _part(first.part, second.part),
        (FailedRows.of(first.rows.values()), FailedRows.of(second.rows.values())),
        tuple(sorted(changed)),
    )


def pooled(name: str, pairs: Sequence[PairedRows]) -> PairedRows:
    """Return the rows of several tasks as one; groups with the same name in several tasks are resampled together."""
    return PairedRows(
        pairs[0].task if len(pairs) == 1 else name,
        tuple(row for pair in pairs for row in pair.first),
        tuple(row for pair in pairs for row in pair.second),
        (0, 0),
        parts_run({pair.task: pair.part for pair in pairs}),
        (
            sum((pair.failed[0] for pair in pairs), FailedRows()),
            sum((pair.failed[1] for pair in pairs), FailedRows()),
        ),
        tuple(sorted({name for pair in pairs for name in pair.changed})),
    )


def parts_run(parts: Mapping[str, str | None]) -> str | None:
    """Return how many rows of the tasks were run, by task if there are several; None for all."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    return ", ".join(f"{task}: {part}" for task, part in parts.items() if part) or None


def is_plain_mean(group: str, metric: str, runs: Iterable[SampleSet]) -> bool:
    """Return whether a group's score is the plain mean of its tasks' scores, as one of the runs reports it."""
    return any(metric in run.plain_means.get(group, ()) for run in runs)


def _valued(run: SampleSet) -> set[str]:
    """Return the metrics that a row of a run has a value of."""
    return {name for row in run.rows.values() for name in row.values}


def _without(row: ScoredRow, metrics: Collection[str]) -> ScoredRow:
    if not metrics:
        return row
    return replace(row, values={name: value for name, value in row.values.items() if name not in metrics})


def _part(first: str | None, second: str | None) -> str | None:
    """Return how many rows two runs are over; of both if they differ."""
    return first if first == second else f"{first or 'all rows'} | {second or 'all rows'}"


def cell_of(pair: PairedRows, metric: str, *, baseline: Literal["first", "second"] = "first") -> PairedCell:
    """Return the values of a metric in both runs as a cell of a family of tests, the ``baseline``'s as its first.

    The second run of the cell is so the one whose worst value is known. Rows that belong together are a unit.
    """
    from mrag_eval.metrics import PairedCell

    runs = (pair.first, pair.second) if baseline == "first" else (pair.second, pair.first)
    a, b = ([row.values.get(metric) for row in run] for run in runs)
    low, high = scale_of(metric).bounds
    known = [value for value in (*a, *b) if value is not None]
    # the values of territories whose mean is a difference of means are outside its range
    inside = not known or (low <= min(known) and max(known) <= high)
    return PairedCell(a, b, [row.group for row in pair.first], bounds=(low, high) if inside else None)


def cell_in(by: str, first: ScoredRow, second: ScoredRow) -> str:
    """Return the cell of a row in a breakdown: that of the first run, else of the second; empty without one."""
    return first.cell(by) or second.cell(by)


def is_of(row: ScoredRow, metric: str) -> bool:
    """Return whether a metric is of this row: of a territory that counts for a score over territories, or a question.

    A question without the metric is unscored, but a territory without the score does not count for it.
    """
    return metric in row.values if metric in TASK_MEASURES else not row.of_territory


def unlike_settings(first: SampleSet, second: SampleSet, differs: Sequence[str] = ()) -> list[Differs]:
    """Return everything but model and rows in which two runs measured something else, unless ``differs`` names it."""
    return differences(first.measurement, second.measurement, ALL_BUT_THE_MODEL, (*differs, *_PAIRED))


def other_versions(pairs: Iterable[tuple[SampleSet, SampleSet]]) -> str | None:
    """Return the versions in which runs of the same tasks differ: ``mrag-eval 0.0.9 | 0.1.0``; None if in none."""
    found = [differences(a.measurement, b.measurement, ["environment"], [UNKNOWN]) for a, b in pairs]
    said = {f"{one.key.partition('.')[2]} {one.values}": None for part in found for one in part}
    return ", ".join(said) or None


def changed(pairs: Iterable[tuple[SampleSet, SampleSet]]) -> str | None:
    """Return what differs between a system's two runs of the same tasks; None for two systems, or two modes of one."""
    both = [*pairs]
    if any(a.task != b.task or a.run.model != b.run.model or a.run == RunOf() for a, b in both):
        return None
    records = [(a.measurement, b.measurement) for a, b in both]
    asked = {one.key for first, second in records for one in differences(first, second, ["setting"])}
    return None if "retrieval.mode" in asked else cause(records)


def check_differs(differs: Sequence[str], records: Sequence[Measurement | None]) -> None:
    """Raise ConfigError for a setting that is meant to differ and that no task could have."""
    known = {EVERYTHING, UNKNOWN, *names_in(records)}
    for name in differs:
        if name not in known and any(records):
            raise ConfigError(
                f"differs {name}: the runs have no such setting{close_match(name, known)}",
                "name a block or a key (compare --differs, or differs: of the rules), "
                "such as retrieval or retrieval.mode, or all",
            )
