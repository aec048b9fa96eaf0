"""All scores of some runs as one tidy table: one row per run, task, metric and cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.config import mode_named
from mrag_eval.metrics import Estimate
from mrag_eval.report.files._leaves import Leaf, mode_of, result_leaves
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._task_config import TaskConfig

if TYPE_CHECKING:
    from pandas import DataFrame

# Figures that are ratios or counts; all others are shares between 0 and 1.
_NOT_SHARES = ("delta_CS_ratio", "countries_")


@dataclass(frozen=True, slots=True)
class Score:
    """Hold a figure, 0 to 1, of a task or group as a whole, or of one cell (``("query_lang", "ar")``).

    If ``value`` is None, nothing could be scored, and ``reason`` says why. ``unscored`` counts rows by reason.
    ``stderr`` is the harness's, for groups without an interval.
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

    @property
    def dimension(self) -> str:
        """Return the dimension by which the figure is broken down; empty for the whole."""
        return "" if self.cell is None else self.cell[0]

    @property
    def unscored_line(self) -> str | None:
        """Return e.g. ``3 rows unscored (timeout)``; None if every row has a score."""
        parts = [f"{n} {'row' if n == 1 else 'rows'} unscored ({reason})" for reason, n in self.unscored.items()]
        return ", ".join(parts) or None


@dataclass(frozen=True)
class ScoredTask:
    """Hold a task or a group of a run, its main metric first.

    ``leaf`` is None for a group, whose ``leaves`` are its tasks. ``label`` distinguishes a task from the same task in
    another mode.
    """

    name: str
    label: str
    scores: tuple[Score, ...]
    lower_is_better: frozenset[str]
    leaf: LeafResult | None
    leaves: tuple[str, ...] = ()
    samples: Path | None = None

    @property
    def config(self) -> TaskConfig:
        """Return the task's configuration; empty for a group."""
        return TaskConfig() if self.leaf is None else self.leaf.config

    def overall(self) -> list[Score]:
        """Return the figures of the whole, the main one first."""
        return [score for score in self.scores if score.cell is None]

    def by(self, dimension: str) -> dict[str, list[Score]]:
        """Return cell -> figures, for one dimension."""
        out: dict[str, list[Score]] = {}
        for score in self.scores:
            if score.cell is not None and score.cell[0] == dimension:
                out.setdefault(score.cell[1], []).append(score)
        return out

    @property
    def settings(self) -> dict[str, str]:
        """Return the task's settings as texts: mode, passages, corpus, embedder, judges, fingerprint, version."""
        config = self.config
        judge = None if self.leaf is None else self.leaf.scores.judge
        found = {
            "mrag_eval_version": version("mrag-eval"),
            "retrieval_mode": config.mode,
            "passages": config.k if config.mode is not None and mode_named(config.mode).shows != "nothing" else None,
            "index": config.index.get("kind"),
            "embedder": config.index.get("embedder"),
            "index_content": config.index.get("content_hash"),
            "judges": ", ".join(judge.models) if judge is not None else "",
            "prompt": config.prompt,
            "task_version": config.version,
            "fingerprint": config.fingerprints.get("task"),
        }
        if self.leaves:
            found |= {"tasks": ", ".join(self.leaves)}
        return {key: str(value) for key, value in found.items() if value not in (None, "")}


def scores_of(leaf: LeafResult) -> Iterator[Score]:
    """Yield every figure of a task: each metric as a whole, in every cell, and as macro means."""
    for metric, score in leaf.metrics.items():
        yield _score(metric, score, None, leaf.unscored.get(metric) or {})
        for dimension, cells in score.by.items():
            for cell, part in cells.items():
                yield _score(metric, part, (dimension, cell), {})
        for name, part in score.macro.items():
            yield _score(metric, part, ("macro", name), {})
    for metric, reasons in leaf.unscored.items():
        if metric not in leaf.metrics:
            yield Score(metric, None, n=0, reason="; ".join(reasons), unscored=reasons)


def _score(metric: str, part: Estimate, cell: tuple[str, str] | None, unscored: Mapping[str, int]) -> Score:
    n = part.n if part.n or part.value is None else None
    method = part.method or None
    return Score(metric, part.value, part.low, part.high, n, method, part.reason, cell, unscored)


# The columns of the table, with the types that keep missing values apart from numbers.
COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("model", "date", "task", "kind", "benchmark", "mode", "dimension", "cell", "metric"), "object"),
    **dict.fromkeys(("value", "low", "high"), "Float64"),
    "n": "Int64",
    **dict.fromkeys(("method", "reason", "unscored"), "object"),
    "unscored_rows": "Int64",
    "lower_is_better": "bool",
    **dict.fromkeys(("unit", "name", "path"), "object"),
    **dict.fromkeys(("retrieval_mode", "passages", "corpus", "index", "embedder", "judges", "prompt"), "object"),
    **dict.fromkeys(("task_version", "fingerprint", "seed", "mrag_eval_version"), "object"),
}


def score_frame(tasks: Iterable[tuple[ResultFile, ScoredTask]]) -> DataFrame:
    """Return the tidy table of the tasks' scores; its columns are those of :data:`COLUMNS`.

    ``value`` is a share, 0 to 1, unless ``unit`` says otherwise, with its 95% interval from ``low`` to ``high`` over
    ``n`` rows. ``dimension`` is empty for a task as a whole; else ``cell`` names the part: ``query_lang`` and ``ar``,
    ``pair`` and ``ar->en``, ``macro`` and ``cross_language``. A missing value has a ``reason``, and ``unscored`` says
    which rows a value leaves out. ``task`` tells a task (its ``name``) apart from the same task under other settings.
    """
    from pandas import DataFrame

    rows = [_row(file, task, score) for file, task in tasks for score in task.scores]
    return DataFrame(rows, columns=list(COLUMNS)).astype(dict(COLUMNS))


def _row(file: ResultFile, task: ScoredTask, score: Score) -> dict[str, Any]:
    config = task.config
    whole = score.cell is None
    return {
        "model": file.model_id,
        "date": datetime.fromtimestamp(file.date, tz=timezone.utc).isoformat(),
        "task": task.label,
        "kind": "group" if task.leaf is None else "task",
        "benchmark": None if task.leaf is None else config.benchmark or task.name,
        "mode": None if task.leaf is None else mode_of(task.leaf),
        "dimension": score.dimension,
        "cell": "" if score.cell is None else score.cell[1],
        "metric": score.metric,
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "n": score.n,
        "method": score.method,
        "reason": score.reason,
        "unscored": score.unscored_line if whole else None,
        "unscored_rows": sum(score.unscored.values()) if whole else None,
        "lower_is_better": score.metric in task.lower_is_better,
        "unit": "number" if any(part in score.metric for part in _NOT_SHARES) else "share",
        "name": task.name,
        "path": str(file.path),
        "corpus": config.corpus,
        "seed": config.seed,
        **{key: value for key, value in task.settings.items() if key in COLUMNS},
    }


def leaf_frame(leaves: Iterable[tuple[Leaf, ResultFile]]) -> DataFrame:
    """Return the tidy table of the scores of tasks as the report shows them, without groups."""
    return score_frame((file, _scored_task(leaf)) for leaf, file in leaves)


def _scored_task(leaf: Leaf) -> ScoredTask:
    result = leaf.result
    lower = frozenset(metric for metric, higher in result.directions.items() if higher is False)
    return ScoredTask(leaf.task, leaf.label, tuple(scores_of(result)), lower, result, samples=leaf.samples)


def load_results(results: Path | str | Sequence[Path | str]) -> DataFrame:
    """Return all scores of result files, or of folders searched for them, as a tidy pandas DataFrame.

    Of several runs of a model and task with the same settings the newest counts; see :func:`score_frame` for the
    columns. Raises DataError for a path without results of our tasks, and for a file of another schema.
    """
    given = [results] if isinstance(results, Path | str) else list(results)
    return leaf_frame(result_leaves([Path(path) for path in given]))


def records(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries, with None for missing values."""
    found: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found
