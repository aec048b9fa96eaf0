"""All scores of some runs as one tidy table: one row per run, task, metric and cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mrag_eval.metrics import Estimate
from mrag_eval.platform import Places, number_of, paths_of
from mrag_eval.report.files._leaves import Leaf, mode_of, result_leaves
from mrag_eval.report.files._results import LeafResult, ResultFile, outcomes_text
from mrag_eval.scoring import OF_ANOTHER_RATE, better_side, more_is_better, scale_of, vote_lines

if TYPE_CHECKING:
    from pandas import DataFrame

# Types that keep missing values apart from numbers; every other column holds objects.
_TYPES = {"float | None": "Float64", "int | None": "Int64", "bool | None": "boolean"}
# Columns that describe how a task was run, in the order of exports.
_SETTINGS = ("part", "mrag_eval_version", "retrieval_mode", "passages", "index", "embedder", "index_content",
             "failed_votes", "prompt", "task_version", "fingerprint", "tasks")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A row of the table: a figure in ``unit``, from ``lowest`` to ``highest``, of a task or group.

    ``dimension`` is empty for a task as a whole; else ``cell`` names the part. If ``value`` is None, nothing could be
    scored, and ``reason`` says why. ``unscored_reasons`` counts the rows that the value leaves out, by reason, and
    ``worst_case`` and ``best_case`` are the score with all of them at 0 or at 1 (of a task as a whole); of a language,
    with all unread choices wrong or right. ``groups`` and ``design_effect`` as in
    :class:`~mrag_eval.metrics.Estimate`.
    ``lower_is_better`` is the metric's, None if neither less nor more is better. ``stderr`` is the harness's, for
    groups without an interval. ``judges`` are those that decide the metric, each once. ``tasks`` are those of a group,
    ``mean`` says which mean of them its value is, and ``weights`` what each of them weighs in it: ``rag_de 100,
    rag_ar 90``. ``part`` says how many of the rows were run, if not all. ``passages`` is their number in a prompt, or
    which they are if it differs by row.
    ``outcomes`` says what came of the run, if much of it was cut, untranslated or unscored.
    ``no_headline`` says why the figure is no headline and has no rank (an upper bound, or many rows failed); else None.
    """

    model: str
    date: str
    task: str
    kind: str
    benchmark: str | None = None
    mode: str | None = None
    dimension: str = ""
    cell: str = ""
    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    method: str | None = None
    reason: str | None = None
    unscored: str | None = None
    unscored_rows: int | None = None
    unscored_reasons: Mapping[str, int] = field(default_factory=dict)
    worst_case: float | None = None
    best_case: float | None = None
    groups: int | None = None
    design_effect: float | None = None
    stderr: float | None = None
    lower_is_better: bool | None = None
    unit: str
    lowest: float | None = None
    highest: float | None = None
    name: str
    path: str
    languages: str | None = None
    retrieval_mode: str | None = None
    passages: str | None = None
    corpus: str | None = None
    index: str | None = None
    embedder: str | None = None
    index_content: str | None = None
    judges: str | None = None
    failed_votes: str | None = None
    prompt: str | None = None
    task_version: str | None = None
    fingerprint: str | None = None
    seed: Any = None
    mrag_eval_version: str
    tasks: str | None = None
    mean: str | None = None
    weights: str | None = None
    part: str | None = None
    no_headline: str | None = None
    outcomes: str | None = None

    @property
    def withheld(self) -> dict[str, str]:
        """Return why a score is no headline, and between which bounds it lies; empty for one that may be one."""
        if self.no_headline is None:
            return {}
        found = {"no headline": self.no_headline}
        if self.worst_case is not None and self.best_case is not None:
            found["bounds"] = f"{self.worst_case:.3f} to {self.best_case:.3f} with all unscored rows wrong, or right"
        return found

    @property
    def better(self) -> str:
        """Return which side of the metric is better, as :func:`~mrag_eval.scoring.better_side` does."""
        return better_side(self.metric)

    @property
    def averaged(self) -> dict[str, str]:
        """Return which mean of its tasks the value of a group is, and their weights; empty for a task."""
        found = {"mean": self.mean, "weights": self.weights}
        return {key: value for key, value in found.items() if value is not None}

    @property
    def settings(self) -> dict[str, str]:
        """Return how the task was run, as texts: mode, passages, index, embedder, fingerprint, version."""
        return {key: value for key in _SETTINGS if (value := getattr(self, key)) is not None}


# The columns of the table, with their types.
COLUMNS: Mapping[str, str] = {column.name: _TYPES.get(str(column.type), "object") for column in fields(Score)}


def scores_of(file: ResultFile, leaf: LeafResult, label: str | None = None) -> Iterator[Score]:
    """Yield every figure of a task: each metric as a whole, in every cell, and as macro means.

    ``label`` tells the task apart from the same task under other settings.
    """
    run = task_columns(file, leaf.task, label) | _settings(leaf) | {"part": file.part(leaf.task)}
    run |= {"outcomes": outcomes_text([leaf]) or None}
    for metric in leaf.in_order((*leaf.metrics, *leaf.unscored)):
        task = run | {"judges": _judges(leaf, metric)}
        score, reasons = leaf.metrics.get(metric), leaf.unscored.get(metric) or {}
        if score is None:
            yield figure(task, metric, reasons, value=None, n=0, reason="; ".join(reasons))
            continue
        yield figure(task, metric, reasons, **_estimate(score), no_headline=leaf.no_headline(metric))
        for dimension, cells in (*score.by.items(), ("macro", score.macro)):
            for cell, part in cells.items():
                ends = score.unread.get(cell) if dimension == "query_lang" else None
                cases = {} if ends is None else {"worst_case": ends[0], "best_case": ends[1]}
                yield figure(task, metric, {}, dimension=dimension, cell=cell, **cases, **_estimate(part))
    for metric, by_language in leaf.scores.controls.items():
        task = run | {"judges": _judges(leaf, metric)}
        for language, own in by_language.items():
            for name, part in own.found.items():
                yield figure(task, metric, {}, dimension="control", cell=f"{language}, {name}", **_estimate(part))
            if own.share is not None:
                place = {"dimension": "control", "cell": f"{language}, share"}
                # a share of the gap between the ends, which it may pass
                yield replace(figure(task, metric, {}, **place, **_estimate(own.share)), lowest=None, highest=None)


def task_columns(file: ResultFile, name: str, label: str | None = None) -> dict[str, Any]:
    """Return the columns that name a task or group and its run."""
    return {
        "model": file.model,
        "date": file.time.isoformat(),
        "task": label or name,
        "kind": "task" if name in file.leaves else "group",
        "name": name,
        "path": str(file.path),
        "mrag_eval_version": version("mrag-eval"),
    }


def _judges(leaf: LeafResult, metric: str) -> str | None:
    """Return the judges that decide a metric; None if none does."""
    return ", ".join(leaf.scores.judges(metric)) or None


def _settings(leaf: LeafResult) -> dict[str, Any]:
    config = leaf.config
    texts = {
        "languages": ", ".join(leaf.scores.query_langs),
        "retrieval_mode": config.mode,
        "passages": config.passages,
        "index": ", ".join(filter(None, (config.index.get("kind"), config.starter))),
        "embedder": config.index.get("embedder"),
        "index_content": config.index_content,
        "failed_votes": "; ".join(vote_lines(leaf.scores)),
        "prompt": config.prompt,
        "task_version": config.version,
        "fingerprint": leaf.measurement.sha256,
    }
    said = {key: str(value) for key, value in texts.items() if value not in (None, "")}
    where = {"benchmark": config.benchmark or leaf.task, "mode": mode_of(leaf)}
    return where | said | {"corpus": config.corpus_shown, "seed": config.seed}


def figure(task: Mapping[str, Any], metric: str, unscored: Mapping[str, int], **columns: Any) -> Score:
    """Return a row of the table from the columns of its task and its own; ``unscored`` counts rows by reason."""
    scale, more = scale_of(metric), more_is_better(metric)
    lacking = sum(n for reason, n in unscored.items() if reason not in OF_ANOTHER_RATE)
    parts = [f"{number_of(n, 'row')} unscored ({reason})" for reason, n in unscored.items()]
    return Score(
        **task,
        **_cases(columns, lacking if scale.unit == "share" else 0),
        metric=metric,
        unscored=", ".join(parts) or None,
        unscored_rows=None if columns.get("dimension") else sum(unscored.values()),
        unscored_reasons=unscored,
        lower_is_better=None if more is None else not more,
        unit=scale.unit,
        lowest=scale.low,
        highest=scale.high,
        **columns,
    )


def _cases(columns: Mapping[str, Any], unscored: int) -> dict[str, Any]:
    """Return the score with every unscored row of its own at 0 and at 1 (Manski 1989); empty if all rows are scored."""
    value, n = columns.get("value"), columns.get("n")
    if not unscored or columns.get("dimension"):
        return {}
    total, scored = (0.0, 0) if value is None or not n else (value * n, n)
    rows = scored + unscored
    return {"worst_case": total / rows, "best_case": (total + unscored) / rows}


def _estimate(found: Estimate) -> dict[str, Any]:
    # rows are counted wherever something was computed, even if none could be scored
    n = found.n or (0 if found.value is None and found.method else None)
    ends = {"value": found.value, "low": found.low, "high": found.high}
    known = {"groups": found.groups, "design_effect": found.design_effect}
    return {**ends, **known, "n": n, "method": found.method or None, "reason": found.reason}


def score_frame(scores: Iterable[Score]) -> DataFrame:
    """Return the scores as the tidy table; its columns are those of :data:`COLUMNS`.

    ``value`` is in ``unit`` (``share``, ``ratio``, or the plural of what is counted), whose range is from ``lowest`` to
    ``highest`` (missing: no bound). Its 95% interval is from ``low`` to ``high`` over ``n`` rows. ``dimension`` is
    empty for a task as a whole; else ``cell`` names the part: ``query_lang`` and ``ar``, ``pair`` and ``ar->en``,
    ``macro`` and ``cross_language``, ``control`` and ``ar, sentence`` or ``ar, share`` (of the gap between floor and
    ceiling). A missing value has a ``reason``, and ``unscored`` says which rows a value leaves
    out. ``task`` tells a task (its ``name``) apart from the same task under other settings.
    """
    from pandas import DataFrame

    rows = [attrgetter(*COLUMNS)(score) for score in scores]
    return DataFrame(rows, columns=list(COLUMNS), dtype=object).astype(dict(COLUMNS))


def task_scores(files: Iterable[ResultFile]) -> list[Score]:
    """Return the scores of every task in the files, in their order."""
    return [score for file in files for leaf in file.leaves.values() for score in scores_of(file, leaf)]


def leaf_scores(leaves: Iterable[tuple[Leaf, ResultFile]]) -> list[Score]:
    """Return the scores of tasks as the report shows them, without groups."""
    return [score for leaf, file in leaves for score in scores_of(file, leaf.result, leaf.label)]


def load_results(results: Places) -> DataFrame:
    """Return all scores of result files, or of folders searched for them, as a tidy pandas DataFrame.

    Of several runs of a model and task with the same settings, over as many rows, the newest counts; see
    :func:`score_frame` for the columns. Raises DataError for a path without results of our tasks, and for a file of
    another schema.
    """
    return score_frame(leaf_scores(result_leaves(paths_of(results))))
