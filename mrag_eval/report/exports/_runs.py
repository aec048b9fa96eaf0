"""Runs for exports: views of one tidy table with every figure of tasks and groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_eval.core import DataError, did_you_mean
from mrag_eval.metrics import Estimate
from mrag_eval.report.exports._licences import Source, source_of
from mrag_eval.report.files._results import LeafResult, ResultFile, read_results
from mrag_eval.report.files._samples import read_samples
from mrag_eval.report.files._scores import Score, figure, rows_of, score_frame, task_columns, task_frame
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import RESAMPLES, RowRecord

if TYPE_CHECKING:
    from pandas import DataFrame

# The harness may sum the mean of a group's leaves in another order than we do.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Task:
    """Hold a task or a group of a run, and its rows of the table, those of its main metric first.

    ``label`` distinguishes it from the same task in another mode.
    """

    file: ResultFile
    scores: Sequence[Score]
    name: str
    label: str

    @property
    def leaf(self) -> LeafResult | None:
        """Return the task's result; None for a group."""
        return self.file.leaves.get(self.name)

    @property
    def config(self) -> TaskConfig:
        """Return the task's configuration; empty for a group."""
        return TaskConfig() if self.leaf is None else self.leaf.config

    @property
    def samples(self) -> Path | None:
        """Return the task's sample file; None for a group and if there is none."""
        return None if self.leaf is None else self.file.samples(self.name)

    @property
    def source(self) -> Source:
        """Return the source of the task's rows. For a group, return that of its tasks if they share one."""
        if self.leaf is not None:
            return source_of(self.config)
        found = {source_of(self.file.configs[leaf]) for leaf in self.file.tasks_of(self.name)}
        return found.pop() if len(found) == 1 else Source(self.name, None, None, False)

    @property
    def overall(self) -> list[Score]:
        """Return the figures of the whole, the main one first."""
        return [score for score in self.scores if not score.dimension]


@dataclass(frozen=True)
class Run:
    """Hold one result file, and the groups and tasks that are exported from it."""

    file: ResultFile
    tasks: tuple[Task, ...]

    @property
    def blank(self) -> dict[str, str]:
        """Return the metrics of tasks without a figure, each with the reason."""
        return {
            f"{score.task}, {score.metric}": score.reason or "no row could be scored"
            for task in self.tasks
            for score in task.overall
            if score.value is None
        }


def runs_of(paths: Sequence[Path], metrics: Sequence[str] = ()) -> list[Run]:
    """Return the runs at ``paths``; if a model ran a task several times in one mode, the newest counts.

    If ``metrics`` is given, only those are kept, in that order (the first is then the main one); by default all are
    kept, in the order of the task. Raises DataError if there is no result of our tasks, and for a metric that no task
    has.
    """
    files = read_results(paths)
    frame = task_frame(files)
    if frame.empty:
        raise DataError(
            f"{', '.join(map(str, paths))}: no task of ours in these results", "name the --output_path of a run"
        )
    known = set(frame["metric"])
    missing = next((name for name in metrics if name not in known), None)
    if missing is not None:
        raise DataError(
            f"--metric: no task in these results has '{missing}'{did_you_mean(missing, known)}",
            "mrag-eval report RESULTS   shows the metrics of every task",
        )
    newest = frame.groupby(["model", "name", "mode"])["path"].transform("last")
    frame = frame[frame["path"] == newest]
    several = frame.groupby(["model", "name"])["mode"].transform("nunique") > 1
    frame = frame.assign(task=frame["task"].where(~several, frame["name"] + " (" + frame["mode"] + ")"))
    runs = [_run(file, frame[frame["path"] == str(file.path)], metrics) for file in files]
    return [run for run in runs if run.tasks]


def frame_of(runs: Sequence[Run]) -> DataFrame:
    """Return the tidy table of everything that is exported, groups included."""
    return score_frame(score for run in runs for task in run.tasks for score in task.scores)


def _run(file: ResultFile, frame: DataFrame, metrics: Sequence[str]) -> Run:
    """Return the groups and tasks of a file, with the figures of each in the order of the metrics."""
    tasks: dict[str, list[Score]] = {}
    for score in rows_of(frame):
        tasks.setdefault(score.name, []).append(score)
    tasks = {name: _ordered(own, metrics or file.leaves[name].config.metrics) for name, own in tasks.items()}
    groups = [
        _group(name, file, [score for leaf in leaves for score in tasks[leaf] if not score.dimension], metrics)
        for name in file.groups
        if (leaves := file.tasks_of(name)) and tasks.keys() >= set(leaves)
    ]
    kept = ([s for s in scores if not metrics or s.metric in metrics] for scores in (*groups, *tasks.values()))
    return Run(file, tuple(Task(file, scores, scores[0].name, scores[0].task) for scores in kept if scores))


def _ordered(scores: Sequence[Score], metrics: Iterable[str]) -> list[Score]:
    rank = {name: i for i, name in enumerate(dict.fromkeys(metrics))}
    return sorted(scores, key=lambda score: rank.get(score.metric, len(rank)))


def _group(name: str, file: ResultFile, parts: Sequence[Score], metrics: Sequence[str]) -> list[Score]:
    """Return a group's means as the harness reports them, with our interval if the samples give the same mean.

    ``parts`` are the figures of its tasks.
    """
    leaves, reported, rows = file.tasks_of(name), file.reported(name), _rows(name, file)
    columns = task_columns(file, name) | {"tasks": ", ".join(leaves)}
    scores = []
    for key, value in reported.items():
        metric = key.removesuffix(",none")
        if metric == key or metric.endswith("_stderr") or not isinstance(value, int | float) or metric == "rows":
            continue
        found = [part for part in parts if part.metric == metric]
        unscored: Counter[str] = Counter()
        for part in found:
            unscored.update(part.unscored_reasons)
        stderr = reported.get(f"{metric}_stderr,none")
        mean = _mean(metric, float(value), rows)
        scores.append(
            figure(
                columns,
                metric,
                unscored,
                value=float(value),
                low=mean.low,
                high=mean.high,
                n=sum(part.n or 0 for part in found),
                method=mean.method,
                reason=mean.reason if len(found) == len(leaves) else "not every task of the group has it",
                stderr=float(stderr) if isinstance(stderr, int | float) else None,
                lower_is_better=any(file.leaves[leaf].directions.get(metric) is False for leaf in leaves),
            )
        )
    return _ordered(scores, metrics or [part.metric for part in parts])


def _rows(group: str, file: ResultFile) -> list[tuple[str, RowRecord]] | None:
    """Return every row of a group with its task; None if samples are missing."""
    samples = {leaf: file.samples(leaf) for leaf in file.tasks_of(group)}
    if None in samples.values():
        return None
    return [(leaf, sample.record) for leaf, path in samples.items() if path for sample in read_samples(path)]


def _mean(metric: str, value: float, rows: Sequence[tuple[str, RowRecord]] | None) -> Estimate:
    """Return the mean over tasks with its bootstrap interval; without one if the harness reports another mean."""
    from mrag_eval.metrics import stratified_bootstrap

    scored = [(task, row.resampled_with, row.values[metric]) for task, row in rows or () if metric in row.values]
    groups = [group for _, group, _ in scored]
    found = stratified_bootstrap(
        [value for _, _, value in scored],
        [task for task, _, _ in scored],
        groups=groups if len(set(groups)) < len(groups) else None,
        n_resamples=RESAMPLES,
    )
    if found.value is None or abs(found.value - value) > _EQUAL:
        return Estimate(value, method="mean over tasks by lm-eval")
    return found
