"""Runs as exports see them: every figure with its interval, n and reason, of tasks and of groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mrag_eval.core import DataError, did_you_mean
from mrag_eval.report.files._results import LeafResult, ResultFile, read_results
from mrag_eval.report.files._samples import read_samples

# The mean of a group's leaves may be summed in another order than ours.
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Score:
    """A figure, 0 to 1: of a task or group as a whole, or of one cell (``("query_lang", "ar")``).

    ``value`` None: nothing could be scored, ``reason`` says why. ``unscored`` counts rows by reason. ``stderr`` is the
    harness's, of groups without an interval.
    """

    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    method: str | None = None
    reason: str | None = None
    cell: tuple[str, str] | None = None
    unscored: Mapping[str, int] = field(default_factory=dict)
    stderr: float | None = None


@dataclass(frozen=True)
class Exported:
    """A task or a group of a run, its main metric first. ``leaf`` is None for a group, whose ``leaves`` are its tasks.

    ``label`` tells a task apart from the same task in another mode.
    """

    name: str
    label: str
    scores: tuple[Score, ...]
    lower_is_better: frozenset[str]
    leaf: LeafResult | None
    leaves: tuple[str, ...] = ()
    samples: Path | None = None

    @property
    def config(self) -> Mapping[str, Any]:
        """The task's configuration; empty for a group."""
        return {} if self.leaf is None else self.leaf.config

    def overall(self) -> list[Score]:
        """The figures of the whole, the main one first."""
        return [score for score in self.scores if score.cell is None]

    def by(self, dimension: str) -> dict[str, list[Score]]:
        """Cell -> figures, of one dimension."""
        out: dict[str, list[Score]] = {}
        for score in self.scores:
            if score.cell is not None and score.cell[0] == dimension:
                out.setdefault(score.cell[1], []).append(score)
        return out


@dataclass(frozen=True)
class Run:
    """One result file: the model, when it ran, the whole file, and what is exported of it."""

    path: Path
    model: str
    time: datetime
    content: Mapping[str, Any] = field(repr=False)
    tasks: tuple[Exported, ...] = ()

    @property
    def model_id(self) -> str:
        """``organisation/name`` where the model was named so, else the name alone."""
        return str(self.content.get("model_name") or self.model) if "/" in self.model else self.model

    @property
    def harness_version(self) -> str:
        """Of lm-eval, as the run recorded it."""
        return str(self.content.get("lm_eval_version") or "unknown")


def runs_of(paths: Sequence[Path], metrics: Sequence[str] = ()) -> list[Run]:
    """The runs at ``paths``; of a task that a model ran several times in one mode, the newest counts.

    ``metrics`` keeps those alone, in that order (the first is then the main one); by default all are kept, in the order
    of the task. Raises DataError where there is no result of our tasks, and for a metric that no task has.
    """
    files = read_results(paths)
    newest: dict[tuple[str, str, str], Path] = {}
    for file in files:
        for task, leaf in file.leaves.items():
            newest[file.model, task, _mode(leaf)] = file.path
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


def _mode(leaf: LeafResult) -> str:
    return str((leaf.config.get("retrieval") or {}).get("mode", "no_ir"))


def _run(
    file: ResultFile,
    newest: Mapping[tuple[str, str, str], Path],
    modes: Mapping[tuple[str, str], set[str]],
    metrics: Sequence[str],
) -> Run:
    content = json.loads(file.path.read_text(encoding="utf-8"))
    better = content.get("higher_is_better") or {}
    tasks = []
    for name, leaf in file.leaves.items():
        if newest[file.model, name, _mode(leaf)] != file.path:
            continue
        lower = frozenset(metric for metric, higher in (better.get(name) or {}).items() if higher is False)
        label = name if len(modes[file.model, name]) == 1 else f"{name} ({_mode(leaf)})"
        scores = tuple(_chosen(list(_scores(leaf)), metrics or list(leaf.config.get("metrics") or ()), bool(metrics)))
        tasks.append(Exported(name, label, scores, lower, leaf, samples=_samples(file.path, name)))
    kept = {task.name: task for task in tasks}
    groups = [
        _group(name, content, kept, metrics)
        for name in content.get("group_subtasks") or {}
        if _leaves_of(name, content) and set(_leaves_of(name, content)) <= {*kept}
    ]
    when = datetime.fromtimestamp(file.date, tz=timezone.utc)
    shown = (*(group for group in groups if group.scores), *(task for task in tasks if task.scores))
    return Run(file.path, file.model, when, content, shown)


def _scores(leaf: LeafResult) -> Iterator[Score]:
    for metric, entry in leaf.metrics.items():
        reasons = leaf.unscored.get(metric) or {}
        yield _score(metric, entry, None, reasons)
        for dimension, cells in (entry.get("by") or {}).items():
            for cell, part in cells.items():
                yield _score(metric, part, (dimension, cell), {})
        for name, part in (entry.get("macro") or {}).items():
            yield _score(metric, part, ("macro", name), {})
    for metric, reasons in leaf.unscored.items():
        if metric not in leaf.metrics:
            yield Score(metric, None, n=0, reason="; ".join(reasons), unscored=reasons)


def _score(metric: str, entry: Mapping[str, Any], cell: tuple[str, str] | None, unscored: Mapping[str, int]) -> Score:
    keys = ("value", "low", "high", "n", "method", "reason")
    return Score(metric, cell=cell, unscored=unscored, **{key: entry.get(key) for key in keys})


def _chosen(scores: Sequence[Score], order: Sequence[str], alone: bool) -> list[Score]:
    rank = {name: i for i, name in enumerate(order)}
    kept = [score for score in scores if not alone or score.metric in rank]
    return sorted(kept, key=lambda score: rank.get(score.metric, len(rank)))


def _samples(results: Path, task: str) -> Path | None:
    date = results.stem.removeprefix("results_")
    names = (f"judged_samples_{task}_{date}.jsonl", f"samples_{task}_{date}.jsonl")
    return next((path for name in names if (path := results.parent / name).is_file()), None)


def _leaves_of(group: str, content: Mapping[str, Any]) -> list[str]:
    """The tasks of a group, those of its groups too; empty for a task."""
    children: Sequence[str] = (content.get("group_subtasks") or {}).get(group) or ()
    out: dict[str, None] = {}
    for child in children:
        inner = _leaves_of(child, content)
        out |= dict.fromkeys(inner or ([child] if child in content["configs"] else []))
    return list(out)


def _group(name: str, content: Mapping[str, Any], tasks: Mapping[str, Exported], metrics: Sequence[str]) -> Exported:
    """A group's means as the harness reports them, with our interval where the samples give the same mean."""
    leaves = tuple(_leaves_of(name, content))
    reported: Mapping[str, Any] = (content.get("results") or {}).get(name) or {}
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
    return Exported(name, name, tuple(kept), lower, None, leaves)


def _rows(tasks: Sequence[Exported]) -> list[tuple[str, str, Mapping[str, float]]] | None:
    """``(task, group to resample, values)`` of every row of the tasks; None where samples are missing."""
    out = []
    for task in tasks:
        if task.samples is None:
            return None
        for sample in read_samples(task.samples):
            record = sample["rows"]
            out.append((task.name, str(record.get("group", record["row"])), record.get("values", {})))
    return out


def _with_interval(score: Score, rows: Sequence[tuple[str, str, Mapping[str, float]]] | None) -> Score:
    """The mean of the tasks' means, resampled; left alone where that is not the mean that the harness reports."""
    if rows is None:
        return score
    from mrag_eval.metrics import stratified_bootstrap

    scored = [(task, group, values[score.metric]) for task, group, values in rows if score.metric in values]
    groups = [group for _, group, _ in scored]
    found = stratified_bootstrap(
        [value for _, _, value in scored],
        [task for task, _, _ in scored],
        groups=groups if len(set(groups)) < len(groups) else None,
        n_resamples=2_000,
    ).as_dict()
    if found["value"] is None or score.value is None or abs(found["value"] - score.value) > _EQUAL:
        return score
    return Score(score.metric, score.value, found["low"], found["high"], score.n, found["method"],
                 score.reason or found.get("reason"), unscored=score.unscored, stderr=score.stderr)  # fmt: skip


def _summed(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for part in parts:
        for reason, n in part.items():
            out[reason] = out.get(reason, 0) + n
    return out
