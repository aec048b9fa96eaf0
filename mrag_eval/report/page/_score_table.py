"""All scores of some runs as a table, and as one by pair of languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mrag_eval.config import unlisted
from mrag_eval.core import decimal, points
from mrag_eval.models import UNKNOWN_MODEL, answered_by_others
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._leaves import Leaf, result_leaves
from mrag_eval.report.files._results import ResultFile, metrics_in_order
from mrag_eval.report.files._scores import Score, leaf_scores
from mrag_eval.report.tables._controls import TaskControls, control_tables
from mrag_eval.report.tables._losses import loss_table
from mrag_eval.scoring import direction_lines, failure_line, scale_of, unfound_line, vote_lines


def score_tables(results: Sequence[Path]) -> list[Table]:
    """Return the table of scores, that by pair of languages if a score was measured in several, and those of losses and
    controls.
    """
    leaves = result_leaves(results)
    found = [_score_table(leaves), *_pair_table(leaves), *loss_table(leaf for leaf, _ in leaves)]
    return found + control_tables([TaskControls.of(leaf) for leaf, _ in leaves])


def score_table(results: Sequence[Path]) -> Table:
    """Return tasks x metrics with interval and n, from result files or folders; blanks have a reason."""
    return _score_table(result_leaves(results))


def _score_table(leaves: Sequence[tuple[Leaf, ResultFile]]) -> Table:
    found = {(score.task, score.metric): score for score in leaf_scores(leaves) if not score.dimension}
    metrics = metrics_in_order(leaf.result for leaf, _ in leaves)
    rows = []
    for leaf, _ in leaves:
        cells = tuple(_cell(found.get((leaf.label, metric)), leaf.task, metric) for metric in metrics)
        rows.append(Row((leaf.label,), leaf.run, cells))
    heads = tuple(f"{metric}{scale_of(metric).note}" for metric in metrics)
    units = () if heads == tuple(metrics) else ("in percent unless another unit is named",)
    shown = [leaf for leaf, _ in leaves]
    notes = (
        *units,
        *direction_lines(metrics),
        *_bounds(shown),
        *_words(shown),
        *_notes(found.values()),
        *_unread(shown),
        *_failures(shown),
        *_unfound(shown),
        *_answered_by_others(shown),
        *_unmeasured(shown),
    )
    return Table("scores", "Scores", ("task",), heads, tuple(rows), 1, notes, intervals=True)


def _pair_table(leaves: Sequence[tuple[Leaf, ResultFile]]) -> Iterator[Table]:
    """Yield tasks and metrics x pairs of the languages of question and relevant document, unless there is one pair."""
    found: dict[tuple[str, str], dict[str, Score]] = {}
    for score in leaf_scores(leaves):
        if score.dimension == "pair":
            found.setdefault((score.task, score.metric), {})[score.cell] = score
    pairs = sorted({pair for cells in found.values() for pair in cells})
    if len(pairs) < 2:
        return
    runs = {leaf.label: leaf for leaf, _ in leaves}
    rows = [
        Row(
            (task, f"{metric}{scale_of(metric).note}"),
            runs[task].run,
            tuple(_pair_cell(cells.get(pair), runs[task].task, metric) for pair in pairs),
        )
        for (task, metric), cells in found.items()
    ]
    note = "a->b: question in a, relevant document in b; a blank cell has no rows"
    stub, title = ("task", "metric"), "Scores by pair of languages"
    yield Table("pairs", title, stub, tuple(pairs), tuple(rows), 1, (note,), intervals=True)


def _pair_cell(score: Score | None, task: str, metric: str) -> Cell:
    if score is None or score.value is None:
        return Cell(None, "" if score is None else score.reason or "no scored row", task=task, metric=metric)
    return percent_cell(score, task, metric)


def _bounds(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield the tasks whose scores are upper bounds, by the reason."""
    reasons = ((leaf.result.config.upper_bound, leaf) for leaf in leaves)
    yield from _together((f"{why}; no headline, no rank", leaf) for why, leaf in reasons if why is not None)


def _words(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield how BM25 cut words, once for all tasks that it did alike."""
    found = ((leaf.result.config.index.get("analyzer"), leaf) for leaf in leaves)
    yield from _together((f"BM25 searched {words}", leaf) for words, leaf in found if words)


def _unread(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield what unread choices, which count as wrong, leave open of an accuracy in each language."""
    for leaf in leaves:
        for metric, score in leaf.result.metrics.items():
            if score.unread:
                parts = (f"{where} {points(low)} to {points(high)}" for where, (low, high) in score.unread.items())
                yield (
                    f"{leaf.run}, {leaf.label}, {metric}: languages differ in the share of replies without a readable "
                    f"choice, which count as wrong; with all of these wrong, and all right: {', '.join(parts)}"
                )


def _failures(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield what failed in each task, and how often the model gave no answer, which counts as wrong."""
    for leaf in leaves:
        scores = leaf.result.scores
        if scores.failures:
            yield f"{leaf.run}, {leaf.label}: failed: {failure_line(scores)}"
        yield from (f"{leaf.run}, {leaf.label}: {line}" for line in vote_lines(scores))
        if scores.outcomes:
            said = ", ".join(f"{n:,} {outcome}" for outcome, n in scores.outcomes.items())
            yield f"{leaf.run}, {leaf.label}: no answer by the model, counted as wrong: {said}"


def _unfound(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield the tasks in which a retriever that cannot be listed returned no relevant id at all."""
    for leaf in leaves:
        suspect = unfound_line(leaf.result.scores) if unlisted(leaf.result.config.retrieval) else None
        if suspect is not None:
            yield f"{leaf.run}, {leaf.label}: {suspect}"


def _answered_by_others(leaves: Sequence[Leaf]) -> Iterator[str]:
    """Yield the runs in which other models replied than the one asked, a cache that any may have filled included."""
    for leaf in leaves:
        block = leaf.result.config.outcome
        counts = dict(block.get("answered_by") or {})
        if number := counts.pop(UNKNOWN_MODEL, 0):
            yield f"{leaf.run}, {leaf.label}: {number:,} replies of the run by a model that is not known (--use_cache)"
        if others := answered_by_others(str(leaf.result.config.evaluated), counts):
            yield f"{leaf.run}, {leaf.label}: answered by {others}"


def _unmeasured(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield the metrics that were asked for and could not be measured, once for all tasks with the same ones."""
    found = ((reason, names, leaf) for leaf in leaves for reason, names in leaf.result.config.unmeasured.items())
    yield from _together((f"{', '.join(names)}: not measured, as {reason}", leaf) for reason, names, leaf in found)


def _together(found: Iterable[tuple[str, Leaf]]) -> Iterator[str]:
    """Yield each remark once, with the tasks that it is on."""
    tasks: dict[str, list[str]] = {}
    for remark, leaf in found:
        tasks.setdefault(remark, []).append(leaf.label)
    for remark, where in tasks.items():
        yield f"{remark} ({', '.join(where)})"


def _notes(scores: Iterable[Score]) -> Iterator[str]:
    """Yield what grouped rows are worth, once a task, and what unscored rows could change, for each score."""
    grouped: dict[str, tuple[list[int], list[float]]] = {}
    for score in scores:
        where = f"{score.model}, {score.task}"
        if score.groups is not None:
            sizes, effects = grouped.setdefault(where, ([], []))
            sizes.append(score.groups)
            effects += [] if score.design_effect is None else [score.design_effect]
        if score.worst_case is not None and score.value is not None:
            yield (
                f"{where}, {score.metric}: {score.unscored}; with all of them wrong {points(score.worst_case)}, "
                f"with all of them right {points(score.best_case)}"
                + ("" if score.no_headline is None else f"; no headline and no rank: {score.no_headline}")
            )
    if len(grouped) > 2:
        # a line for each task would hide the other remarks
        every = [*grouped.values()]
        all_of = ([one for known, _ in every for one in known], [one for _, known in every for one in known])
        grouped = {f"{len(grouped)} tasks": all_of}
    for where, (sizes, effects) in grouped.items():
        ends = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes), max(sizes))))
        told = " to ".join(dict.fromkeys(decimal(end) for end in (min(effects), max(effects)))) if effects else ""
        yield f"{where}: rows of {ends} groups were resampled together; design effect {told or 'not known'}"


def _cell(score: Score | None, task: str, metric: str) -> Cell:
    if score is None:
        return Cell(None, "", task=task, metric=metric)  # a metric of other tasks
    if score.value is None:
        return Cell(None, score.unscored or score.reason, task=task, metric=metric)
    return percent_cell(score, task, metric)
