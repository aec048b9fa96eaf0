"""Runs for exports: every figure of tasks and groups, with its interval, n and reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from mrag_eval.core import DataError, did_you_mean
from mrag_eval.report.files._leaves import mode_of
from mrag_eval.report.files._results import ResultFile, read_results
from mrag_eval.report.files._samples import read_samples
from mrag_eval.report.files._scores import Score, ScoredTask, scores_of
from mrag_eval.scoring import RESAMPLES

# The harness may sum the mean of a group's leaves in another order than we do.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Run:
    """Hold one result file and the figures that are exported from it."""

    file: ResultFile
    tasks: tuple[ScoredTask, ...] = ()

    @property
    def path(self) -> Path:
        """Return the path of the result file."""
        return self.file.path

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self.file.model

    @property
    def model_id(self) -> str:
        """Return ``organisation/name`` if the model was named so, else the name alone."""
        return self.file.model_id

    @property
    def time(self) -> datetime:
        """Return the time of the run."""
        return datetime.fromtimestamp(self.file.date, tz=timezone.utc)


def runs_of(paths: Sequence[Path], metrics: Sequence[str] = ()) -> list[Run]:
    """Return the runs at ``paths``; if a model ran a task several times in one mode, the newest counts.

    If ``metrics`` is given, only those are kept, in that order (the first is then the main one); by default all are
    kept, in the order of the task. Raises DataError if there is no result of our tasks, and for a metric that no task
    has.
    """
    files = read_results(paths)
    newest: dict[tuple[str, str, str], Path] = {}
    for file in files:
        for task, leaf in file.leaves.items():
            newest[file.model, task, mode_of(leaf)] = file.path
    modes: dict[tuple[str, str], set[str]] = {}
    for model, task, mode in newest:
        modes.setdefault((model, task), set()).add(mode)
    every = {name for file in files for leaf in file.leaves.values() for name in (*leaf.metrics, *leaf.unscored)}
    missing = next((name for name in metrics if name not in every), None)
    if missing is not None and every:
        raise DataError(
            f"--metric: no task in these results has '{missing}'{did_you_mean(missing, every)}",
            "mrag-eval report RESULTS   shows the metrics of every task",
        )
    runs = [run for file in files if (run := _run(file, newest, modes, metrics)).tasks]
    if not runs:
        raise DataError(
            f"{', '.join(map(str, paths))}: no task of ours in these results", "name the --output_path of a run"
        )
    return runs


def _run(
    file: ResultFile,
    newest: Mapping[tuple[str, str, str], Path],
    modes: Mapping[tuple[str, str], set[str]],
    metrics: Sequence[str],
) -> Run:
    tasks = []
    for name, leaf in file.leaves.items():
        mode = mode_of(leaf)
        if newest[file.model, name, mode] != file.path:
            continue
        lower = frozenset(metric for metric, higher in leaf.directions.items() if higher is False)
        label = name if len(modes[file.model, name]) == 1 else f"{name} ({mode})"
        scores = tuple(_chosen(list(scores_of(leaf)), metrics or leaf.config.metrics, bool(metrics)))
        tasks.append(ScoredTask(name, label, scores, lower, leaf, samples=file.samples(name)))
    kept = {task.name: task for task in tasks}
    groups = [
        _group(name, file, kept, metrics)
        for name in file.groups
        if file.tasks_of(name) and set(file.tasks_of(name)) <= {*kept}
    ]
    return Run(file, (*(group for group in groups if group.scores), *(task for task in tasks if task.scores)))


def _chosen(scores: Sequence[Score], order: Sequence[str], alone: bool) -> list[Score]:
    rank = {name: i for i, name in enumerate(order)}
    kept = [score for score in scores if not alone or score.metric in rank]
    return sorted(kept, key=lambda score: rank.get(score.metric, len(rank)))


def _group(name: str, file: ResultFile, tasks: Mapping[str, ScoredTask], metrics: Sequence[str]) -> ScoredTask:
    """Return a group's means as the harness reports them, with our interval if the samples give the same mean."""
    leaves = tuple(file.tasks_of(name))
    reported = file.reported(name)
    rows = _rows([tasks[leaf] for leaf in leaves])
    scores = []
    for key, value in reported.items():
        metric = key.removesuffix(",none")
        if metric == key or metric.endswith("_stderr") or not isinstance(value, int | float) or metric == "rows":
            continue
        parts = [s for leaf in leaves for s in tasks[leaf].overall() if s.metric == metric]
        stderr = reported.get(f"{metric}_stderr,none")
        score = Score(
            metric,
            float(value),
            n=sum(part.n or 0 for part in parts),
            method="mean over tasks by lm-eval",
            reason=None if len(parts) == len(leaves) else "not every task of the group has it",
            unscored=_summed([part.unscored for part in parts]),
            stderr=float(stderr) if isinstance(stderr, int | float) else None,
        )
        scores.append(_with_interval(score, rows))
    order = metrics or [score.metric for leaf in leaves for score in tasks[leaf].overall()]
    kept = _chosen(scores, list(dict.fromkeys(order)), bool(metrics))
    lower = frozenset().union(*(tasks[leaf].lower_is_better for leaf in leaves))
    return ScoredTask(name, name, tuple(kept), lower, None, leaves)


def _rows(tasks: Sequence[ScoredTask]) -> list[tuple[str, str, Mapping[str, float]]] | None:
    """Return ``(task, group to resample, values)`` of every row of the tasks; None if samples are missing."""
    out = []
    for task in tasks:
        if task.samples is None:
            return None
        for sample in read_samples(task.samples):
            out.append((task.name, sample.record.resampled_with, sample.record.values))
    return out


def _with_interval(score: Score, rows: Sequence[tuple[str, str, Mapping[str, float]]] | None) -> Score:
    """Return the score with its bootstrap interval over tasks; unchanged if the harness reports another mean."""
    if rows is None:
        return score
    from mrag_eval.metrics import stratified_bootstrap

    scored = [(task, group, values[score.metric]) for task, group, values in rows if score.metric in values]
    groups = [group for _, group, _ in scored]
    found = stratified_bootstrap(
        [value for _, _, value in scored],
        [task for task, _, _ in scored],
        groups=groups if len(set(groups)) < len(groups) else None,
        n_resamples=RESAMPLES,
    )
    if found.value is None or score.value is None or abs(found.value - score.value) > _EQUAL:
        return score
    reason = score.reason or found.reason
    return replace(score, low=found.low, high=found.high, method=found.method, reason=reason)


def _summed(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for part in parts:
        for reason, n in part.items():
            out[reason] = out.get(reason, 0) + n
    return out
