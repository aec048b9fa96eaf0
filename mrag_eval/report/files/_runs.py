"""The scored rows of a run, one set a task."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from mrag_eval.config import UNKNOWN, Measurement, differences
from mrag_eval.platform import DataError, task_and_date
from mrag_eval.report.files._row_texts import RowTexts
from mrag_eval.report.files._samples import (
    counts,
    files_at,
    models_beside,
    newest_last,
    open_samples,
    result_beside,
)
from mrag_eval.report.files._scored_rows import TERRITORY, ScoredRow


@dataclass(frozen=True)
class RunOf:
    """Name a run: its model, the revision of the weights if it is known, and its time (UNIX seconds; 0: unknown)."""

    model: str = "unnamed model"
    revision: str | None = None
    date: float = 0.0

    @property
    def day(self) -> str | None:
        """Return the time of the run, None if it is unknown."""
        return datetime.fromtimestamp(self.date, tz=timezone.utc).strftime("%Y-%m-%d %H:%M") if self.date else None

    def __str__(self) -> str:
        known = [f"revision {self.revision[:12]}" if self.revision else None, self.day]
        named = ", ".join(text for text in known if text)
        return f"{self.model} ({named})" if named else self.model


@dataclass(frozen=True)
class SampleSet:
    """The rows of one task of one run, and its record (None if there is no result file in the same folder).

    ``groups`` are the groups of tasks in which the run reports it, ``plain_means`` the metrics of which a group has the
    plain mean of its tasks, whatever their numbers of rows. ``part`` says how many of the rows were run, if not all,
    and that it is an upper bound. ``run`` names the run. ``kept`` holds the answers that a baseline keeps; None: the
    file has samples.
    """

    task: str
    path: Path
    measurement: Measurement | None
    rows: Mapping[str, ScoredRow]
    groups: tuple[str, ...] = ()
    part: str | None = None
    run: RunOf = RunOf()
    kept: Mapping[str, RowTexts] | None = None
    plain_means: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def answered_by(self) -> tuple[str, ...]:
        """Return the models that replies named; none if that is the one that was asked alone."""
        if self.measurement is None:
            return ()
        names = tuple(self.measurement.answered_by or ())
        return () if names == ((self.measurement.subject.get("model_args") or {}).get("model"),) else names

    def texts(self, rows: Collection[str]) -> dict[str, RowTexts]:
        """Return the texts of these rows, by id: those that the run's file holds."""
        if self.kept is not None:
            return {row: self.kept[row] for row in rows if row in self.kept}
        return {s.record.row: RowTexts.of(s) for s in open_samples(self.path) if s.record.row in rows}

    def repeats(self, other: SampleSet) -> bool:
        """Return whether this run repeats an older one: the same measurement, and every score that the older one has.

        What failed there may have a score here.
        """
        known = {(key, metric): value for key, row in self.rows.items() for metric, value in row.values.items()}
        older = {(key, metric): value for key, row in other.rows.items() for metric, value in row.values.items()}
        same = not differences(self.measurement, other.measurement, allowed=[UNKNOWN])
        return same and older.items() <= known.items()


def read_runs(paths: Sequence[Path], model: str | None = None, *, of_several: bool = False) -> dict[str, SampleSet]:
    """Return task name -> its scored rows, from sample files or from folders searched for them.

    A file that ``mrag-eval judge answers`` wrote takes precedence over its source, and the newest run over those that
    it repeats. ``model`` keeps the runs of one model, with ``of_several`` only where there are several. Raises
    DataError for a path without sample files, for runs of several models, and for several runs of a task, listing them.
    """
    files = files_at(paths)
    model_of = models_beside(files)
    models = sorted({*model_of.values()})
    if of_several and len(models) < 2:
        model = None
    if model is not None and model not in models:
        raise DataError(f"{_listed(paths)}: no run of the model {model}", f"the models there: {', '.join(models)}")
    if model is None and len(models) > 1:
        raise DataError(
            f"{_listed(paths)}: runs of {len(models)} models: {', '.join(models)}",
            "name the folder of one, or choose it by its name (mrag-eval gate --model, --baseline-model)",
        )
    found: dict[str, dict[str, Path]] = {}
    for file in sorted(files, key=newest_last):
        if model is None or model_of[file] == model:
            task, date = task_and_date(file)
            found.setdefault(task, {})[date] = file
    out = {}
    for task, dated in sorted(found.items()):
        *older, out[task] = (_sample_set(task, path) for path in dated.values())
        if not all(out[task].repeats(one) for one in older):
            newest = result.path if (result := result_beside(out[task].path)) is not None else out[task].path
            raise DataError(
                f"{_listed(paths)}: {len(dated)} runs of {task}, of {' | '.join(dated)}",
                f"name one of them: the newest is {newest}",
            )
    return out


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _sample_set(task: str, path: Path) -> SampleSet:
    found = open_samples(path).scored
    rows = dict(found.rows)
    # scores over territories compare as those over rows do, with a row for each territory
    for territory, values in found.territories.items():
        name = f"{TERRITORY}{territory}"
        rows[name] = ScoredRow(name, "", territory, values)
    file = result_beside(path)
    if file is None:
        return SampleSet(task, path, None, rows)
    leaf = file.leaves.get(task)
    part = None if leaf is None else file.remark(task)
    run = RunOf(file.model, file.model_revision, file.date)
    measured = file.measurement(task) if counts(path) else None
    groups = file.groups_of(task)
    plain = {group: means for group, means in file.plain_means.items() if group in groups}
    return SampleSet(task, path, measured, rows, groups, part, run, plain_means=plain)
