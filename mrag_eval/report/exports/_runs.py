"""Runs for exports: every figure of their tasks and groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.config import called_here, differences, dotted, harmless, shown, upper_bound
from mrag_eval.datasets import default_split
from mrag_eval.metrics import Estimate
from mrag_eval.planning import deviations, shipped
from mrag_eval.platform import DataError, did_you_mean, tasks_folder
from mrag_eval.report.exports._licences import LicensedData, source_of
from mrag_eval.report.files._results import EQUAL_MEANS, LeafResult, ResultFile, outcomes_text, read_results
from mrag_eval.report.files._samples import open_samples
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.report.files._scores import Score, figure, score_frame, task_columns, task_scores
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import RESAMPLES

if TYPE_CHECKING:
    from pandas import DataFrame

# Keys of the harness's results that measure the run, not the model.
_OF_THE_RUN = frozenset({"rows", "unscored"})
# Settings that a note names.
_NAMED = 3
# Flags of the command in a record.
_FLAGS = ("run", "gen_kwargs")
# Settings that a group has if its tasks share them.
_OF_A_GROUP = (
    "benchmark",
    "passages",
    "corpus",
    "index",
    "embedder",
    "index_content",
    "judges",
    "failed_votes",
    "prompt",
)


@dataclass(frozen=True)
class ExportedTask:
    """A task or a group of a run, and its rows of the table, those of its main metric first.

    ``label`` distinguishes it from the same task in another mode. ``main_metric`` is the benchmark's, or the one that
    the user named; None if there is no such metric. ``said`` is what is no system's of it, or not as shipped, which the
    label ends in.
    """

    file: ResultFile
    scores: Sequence[Score]
    name: str
    label: str
    main_metric: str | None = None
    said: tuple[str, ...] = ()

    def called(self, label: str) -> ExportedTask:
        """Return the task under another label."""
        return replace(self, label=label, scores=[replace(score, task=label) for score in self.scores])

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
        """Return the task's sample file; None for a group, and without samples."""
        return None if self.leaf is None else self.file.samples(self.name)

    @property
    def source(self) -> LicensedData:
        """Return the source of the task's rows. For a group, return that of its tasks if they share one."""
        if self.leaf is not None:
            return source_of(self.config)
        found = {source_of(self.file.configs[leaf]) for leaf in self.file.tasks_of(self.name)}
        return found.pop() if len(found) == 1 else LicensedData(self.name, None, None, False)

    @property
    def split(self) -> str | None:
        """Return the split of the task's rows; of a group, that of its tasks if they share one. None without splits."""
        if self.leaf is not None:
            return self.config.split or default_split(self.config.data)
        configs = [self.file.configs[leaf] for leaf in self.file.tasks_of(self.name)]
        found = {config.split or default_split(config.data) for config in configs}
        return found.pop() if len(found) == 1 else None

    @property
    def overall(self) -> list[Score]:
        """Return the figures of the whole, the main one first."""
        return [score for score in self.scores if not score.dimension]

    @property
    def headline(self) -> Score | None:
        """Return the figure of the main metric; None without one, and if too many of its rows failed."""
        main = (score for score in self.overall if score.metric == self.main_metric and score.value is not None)
        return next((score for score in main if score.no_headline is None), None)

    @property
    def no_headline(self) -> str | None:
        """Return why there is no headline; None if there is one."""
        if self.headline is not None:
            return None
        if self.main_metric is None:
            why = "no main metric is declared for its rows: name one with --metric"
            if self.leaf is None:
                why = "its tasks have no main metric in common"
        else:
            main = [score for score in self.overall if score.metric == self.main_metric]
            blank = [s.no_headline or f"there is no figure ({s.reason or 'no row could be scored'})" for s in main]
            why = f"of its main metric {self.main_metric}, {blank[0] if blank else 'there is no figure'}"
        return f"{self.label}: no headline, {why}"


@dataclass(frozen=True)
class Run:
    """One result file, and the groups and tasks that are exported from it."""

    file: ResultFile
    tasks: tuple[ExportedTask, ...]

    @property
    def blank(self) -> dict[str, str]:
        """Return the metrics of tasks without a figure, each with the reason."""
        return {
            f"{score.task}, {score.metric}": score.reason or "no row could be scored"
            for task in self.tasks
            for score in task.overall
            if score.value is None
        }

    @property
    def no_headlines(self) -> list[str]:
        """Return a note on every task and group without a headline."""
        return [note for task in self.tasks if (note := task.no_headline) is not None]


def runs_of(
    paths: Sequence[Path], metrics: Sequence[str] = (), *, whole: bool = False, ranked: bool = False
) -> tuple[list[Run], list[str]]:
    """Return the runs at ``paths``, and a note on each result that is left out, as for one with other settings or rows.

    Of several runs of a task in one mode, that with the fewest deviations and outcomes counts, then the newest.
    ``whole``: of those with all rows. ``ranked``: of those with a headline, and no other figure of which too many rows
    failed. If ``metrics`` is given, only those are kept, in that order, and the first is the main one. By default all
    are kept, in the order of the task, and the main one is the benchmark's. Raises DataError if there is no result of
    our tasks, for a metric that no task has, and if nothing is left that is whole and has a headline.
    """
    files, scores = _read(paths, metrics)
    refused = dict(_refused(files, metrics, whole, ranked))
    notes = [f"{Path(path).name}, {', '.join(named)} is left out: {why}" for (path, *named), why in refused.items()]
    scores = [s for s in scores if not refused.keys() & {(s.path, s.name), (s.path, s.name, s.metric)}]
    if not scores:
        raise DataError(
            f"{', '.join(map(str, paths))}: no task is left for a leaderboard: {notes[0]}",
            "run all rows without --limit, and again what failed; csv and latex take what there is, and say so",
        )
    marks = {
        (str(file.path), leaf.task): (
            file.part(leaf.task) is not None,
            len(deviations(leaf.measurement) if shipped(leaf.task) else _given(leaf)) + len(leaf.outcomes),
            len(leaf.outcomes),
        )
        for file in files
        for leaf in file.leaves.values()
    }
    ordered = sorted(scores, key=lambda score: marks[score.path, score.name], reverse=True)
    newest = {(score.model, score.name, score.mode): score.path for score in ordered}
    later = {(s.path, s.name): newest[s.model, s.name, s.mode] for s in scores}
    notes += _replaced(files, {run: path for run, path in later.items() if run[0] != path})
    return _runs(files, [score for score in scores if later[score.path, score.name] == score.path], metrics), notes


def _refused(
    files: Sequence[ResultFile], metrics: Sequence[str], whole: bool, ranked: bool
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what leaderboards do not take, and why: tasks by path and name, figures by their metric, too."""
    for file in files:
        path, known = str(file.path), upper_bound({}, file.model_type)
        for task, leaf in file.leaves.items():
            if whole and (part := file.part(task)) is not None:
                yield (path, task), f"{part}, and a leaderboard takes whole runs only"
            elif ranked and known:
                yield (path, task), f"it is no headline ({known})"
            elif ranked:
                main = metrics[0] if metrics else leaf.known.main_metric
                for metric in metrics or leaf.metrics:
                    if metric in leaf.metrics and (why := leaf.metrics[metric].no_headline):
                        yield (path, task, metric)[: 2 + (metric != main)], f"{metric} is no headline ({why})"


def _replaced(files: Sequence[ResultFile], older: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield a line for each run of a task (path and name) that a later one replaces which measured something else."""
    found = {str(file.path): file for file in files}
    for (path, name), later in older.items():
        before, after = found[path], found[later]
        changed = differences(before.leaves[name].measurement, after.leaves[name].measurement)
        if changed:
            said = "; ".join(f"{found.key}: {found.values}" for found in changed[:_NAMED])
            more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
            yield f"{Path(path).name}, {name} is left out: {Path(later).name} differs in {said}{more}"


def _read(paths: Sequence[Path], metrics: Sequence[str]) -> tuple[list[ResultFile], list[Score]]:
    files = read_results(paths)
    scores = task_scores(files)
    if not scores:
        raise DataError(
            f"{', '.join(map(str, paths))}: no task of ours in these results", "name the --output_path of a run"
        )
    known = {score.metric for score in scores}
    missing = next((name for name in metrics if name not in known), None)
    if missing is not None:
        raise DataError(
            f"--metric: no task in these results has '{missing}'{did_you_mean(missing, known)}",
            called_here(missing, "mrag-eval report RESULTS   shows the metrics of every task"),
        )
    return files, scores


def _runs(files: Sequence[ResultFile], scores: Sequence[Score], metrics: Sequence[str]) -> list[Run]:
    modes: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for score in scores:
        modes[score.model, score.name].add(score.mode)
    by_file: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        several = len(modes[score.model, score.name]) > 1
        by_file[score.path].append(replace(score, task=f"{score.name} ({score.mode})") if several else score)
    runs = [_marked(_run(file, by_file[str(file.path)], metrics)) for file in files]
    for run in runs:
        for task in run.tasks:
            modes[run.file.model, task.name].add(task.scores[0].mode)
    return [_labelled(run, modes) for run in runs if run.tasks]


def _marked(run: Run) -> Run:
    """Return the run with what is no system's, or not as the package ships it, in the names of its tasks and groups.

    No consumer's schema has a place for it, and a name reaches all of them.
    """
    file = run.file
    redefined = file.redefined(tasks_folder())
    redefined |= {above for group in redefined for above in file.groups_of(group)}

    def marked(task: ExportedTask) -> ExportedTask:
        leaves = [file.leaves[name] for name in file.tasks_of(task.name) or [task.name] if name in file.leaves]
        settings = list(dict.fromkeys(filter(None, map(_mark, leaves))))
        said = [
            "other tasks than those of the group as shipped" if task.name in redefined else "",
            "upper bound" if any(leaf.config.upper_bound for leaf in leaves) else "",
            "without samples" if any(file.samples(leaf.task) is None for leaf in leaves) else "",
            outcomes_text(leaves),
            *(f"translated by {by}" for by in dict.fromkeys(leaf.model_of("translator") for leaf in leaves) if by),
            "other settings, not the same in each task" if len(settings) > 1 else "".join(settings),
        ]
        told = tuple(filter(None, said))
        return replace(task.called(f"{task.label} ({'; '.join(told)})"), said=told) if told else task

    return replace(run, tasks=tuple(map(marked, run.tasks)))


def _mark(leaf: LeafResult) -> str:
    """Return how a task was run otherwise than its file says; empty if it was not."""
    if shipped(leaf.task):
        found = [one.text for one in deviations(leaf.measurement) if one.key not in ("rows", "translator")]
    else:
        found = [f"{key}={shown(value)}" for key, value in _given(leaf).items()]
    said = "; ".join(found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"other settings: {said}{more}" if found else ""


def _given(leaf: LeafResult) -> dict[str, Any]:
    """Return what the command of a run set besides the task's file, which need not be on this machine."""
    flags = leaf.measurement.flat(["subject", "setting"])
    given = {key: value for key, (_, value) in flags.items() if key.partition(".")[0] in _FLAGS}
    given |= dotted(leaf.config.overrides)
    decoding = {key for key in given if key.startswith("gen_kwargs.")}
    return {key: value for key, value in sorted(given.items()) if harmless(key) is None or key in decoding}


def _labelled(run: Run, modes: Mapping[tuple[str, str], set[str | None]]) -> Run:
    """Return the run with the mode in the name of each group that the model also ran in another one."""

    def labelled(task: ExportedTask) -> ExportedTask:
        if task.leaf is not None or len(modes[run.file.model, task.name]) == 1:
            return task
        return task.called(task.label.replace(task.name, f"{task.name} ({task.scores[0].mode})", 1))

    return replace(run, tasks=tuple(map(labelled, run.tasks)))


def frame_of(runs: Sequence[Run]) -> DataFrame:
    """Return the tidy table of everything that is exported, groups included."""
    return score_frame(score for run in runs for task in run.tasks for score in task.scores)


def _run(file: ResultFile, scores: Sequence[Score], metrics: Sequence[str]) -> Run:
    """Return the groups and tasks of a file, with the figures of each in the order of the metrics."""
    tasks: dict[str, list[Score]] = {}
    for score in scores:
        tasks.setdefault(score.name, []).append(score)
    main = {name: metrics[0] if metrics else file.leaves[name].known.main_metric for name in tasks}
    for name, own in tasks.items():
        tasks[name] = _ordered(own, metrics)
    groups: list[list[Score]] = []
    for name in file.groups:
        leaves = file.tasks_of(name)
        if leaves and tasks.keys() >= set(leaves):
            parts = [score for leaf in leaves for score in tasks[leaf] if not score.dimension]
            groups.append(_group(name, file, parts, metrics))
            shared = {main[leaf] for leaf in leaves}
            main[name] = shared.pop() if len(shared) == 1 else None
    kept = ([s for s in own if not metrics or s.metric in metrics] for own in (*groups, *tasks.values()))
    found = (ExportedTask(file, own, own[0].name, own[0].task, main[own[0].name]) for own in kept if own)
    return Run(file, tuple(found))


def _ordered(scores: Sequence[Score], metrics: Iterable[str]) -> list[Score]:
    rank = {name: i for i, name in enumerate(dict.fromkeys(metrics))}
    return sorted(scores, key=lambda score: rank.get(score.metric, len(rank)))


def _group(name: str, file: ResultFile, parts: Sequence[Score], metrics: Sequence[str]) -> list[Score]:
    """Return a group's means as the harness reports them, each with the weights of its tasks.

    ``parts`` are the figures of its tasks. An interval of ours is added if the samples give the same mean.
    """
    reported, rows = file.reported(name), _rows(name, file)
    columns = task_columns(file, name) | {"tasks": ", ".join(file.tasks_of(name))}
    scores = []
    for key, value in reported.items():
        metric = key.removesuffix(",none")
        found = [part for part in parts if part.metric == metric]
        if metric == key or metric in _OF_THE_RUN or not found:
            continue
        unscored: Counter[str] = Counter()
        for part in found:
            unscored.update(part.unscored_reasons)
        own = _group_mean(name, file, found, value, rows)
        if own["value"] is not None:
            stderr = reported.get(f"{metric}_stderr,none")
            own["stderr"] = float(stderr) if isinstance(stderr, int | float) else None
            own["n"] = sum(part.n or 0 for part in found)
            own["no_headline"] = next((f"{p.name}: {p.no_headline}" for p in found if p.no_headline is not None), None)
        scores.append(figure(columns | _shared(found), metric, unscored, **own))
    return _ordered(scores, metrics or [part.metric for part in parts])


def _group_mean(
    name: str,
    file: ResultFile,
    parts: Sequence[Score],
    reported: Any,
    rows: Sequence[tuple[str, ScoredRow]] | None,
) -> dict[str, Any]:
    """Return the value of a group, which mean of its tasks' values it is, and their weights; or why it has none."""
    metric, tasks = parts[0].metric, file.tasks_of(name)
    values = {part.name: part.value for part in parts if part.value is not None}
    # a mean over tasks of which one has no value is no mean
    if lacking := [task for task in tasks if task not in values]:
        return {"value": None, "reason": f"a mean needs every task, and {', '.join(lacking)} has no value"}
    sizes = {task: file.rows_of(task) for task in tasks}
    means = {"unweighted mean": dict.fromkeys(tasks, 1), "mean weighted by rows": sizes}
    known = {m: sum(w[task] * value for task, value in values.items()) / sum(w.values()) for m, w in means.items()}
    numbers = known.items() if isinstance(reported, int | float) else ()
    if (said := next((m for m, mean in numbers if abs(mean - reported) <= EQUAL_MEANS), None)) is None:
        return {"value": None, "reason": "lm-eval's mean is neither that of its tasks nor weighted by their rows"}
    weights = ", ".join(f"{task} {weight}" for task, weight in means[said].items())
    kept = {"mean": f"{said} of {len(tasks)} tasks", "weights": weights}
    found = _interval(metric, float(reported), rows)
    ends = {"value": found.value, "low": found.low, "high": found.high}
    return {**ends, "method": found.method or None, "reason": found.reason, **kept}


def _shared(parts: Sequence[Score]) -> dict[str, Any]:
    """Return the settings of a group: those that all its tasks have, and every mode and part of them."""
    found: dict[str, Any] = {}
    for key in _OF_A_GROUP:
        values = list(dict.fromkeys(getattr(part, key) for part in parts))
        found[key] = values[0] if len(values) == 1 else None
    for key in ("mode", "retrieval_mode"):
        found[key] = ", ".join(dict.fromkeys(mode for part in parts if (mode := getattr(part, key)))) or None
    in_part = {part.name: part.part for part in parts if part.part}
    return found | {"part": "; ".join(f"{name}: {part}" for name, part in in_part.items()) or None}


def _rows(group: str, file: ResultFile) -> list[tuple[str, ScoredRow]] | None:
    """Return every row of a group with its task; None if samples are missing."""
    samples = {leaf: file.samples(leaf) for leaf in file.tasks_of(group)}
    if None in samples.values():
        return None
    return [(leaf, row) for leaf, path in samples.items() if path for row in open_samples(path).scored.rows.values()]


def _interval(metric: str, value: float, rows: Sequence[tuple[str, ScoredRow]] | None) -> Estimate:
    """Return the mean over tasks with its bootstrap interval; without one if the harness reports another mean."""
    from mrag_eval.metrics import stratified_bootstrap

    scored = [(task, row.group, row.values[metric]) for task, row in rows or () if metric in row.values]
    groups = [group for _, group, _ in scored]
    found = stratified_bootstrap(
        [value for _, _, value in scored],
        [task for task, _, _ in scored],
        groups=groups if len(set(groups)) < len(groups) else None,
        n_resamples=RESAMPLES,
    )
    if found.value is None or abs(found.value - value) > EQUAL_MEANS:
        return Estimate(value)
    return found
