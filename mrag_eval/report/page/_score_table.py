"""All scores of some runs as one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mrag_eval.core import decimal, points
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._leaves import result_leaves
from mrag_eval.report.files._scores import Score, leaf_frame, rows_of
from mrag_eval.scoring import scale_of


def score_table(results: Sequence[Path]) -> Table:
    """Return tasks x metrics with interval and n, from result files or folders; blanks have a reason."""
    leaves = result_leaves(results)
    frame = leaf_frame(leaves)
    found = {(row.task, row.metric): row for row in rows_of(frame[frame["dimension"] == ""])}
    metrics = list(dict.fromkeys(metric for (_, metric), row in found.items() if row.value is not None))
    rows = []
    for leaf, _ in leaves:
        cells = tuple(_cell(found.get((leaf.label, metric)), leaf.task, metric) for metric in metrics)
        rows.append(Row((leaf.label,), leaf.run, cells))
    heads = tuple(f"{metric}{scale_of(metric).note}" for metric in metrics)
    units = () if heads == tuple(metrics) else ("in percent unless another unit is named",)
    return Table("scores", "Scores", ("task",), heads, tuple(rows), 1, (*units, *_notes(found.values())))


def _notes(scores: Iterable[Score]) -> Iterator[str]:
    """Yield what grouped rows are worth, once a task, and what unscored rows could change, for each score."""
    effects: dict[tuple[str, str], list[float]] = {}
    for score in scores:
        where = f"{score.model}, {score.task}"
        if score.groups is not None:
            known = effects.setdefault((where, f"{score.groups:,} groups"), [])
            known += [] if score.design_effect is None else [score.design_effect]
        if score.worst_case is not None and score.value is not None:
            yield (
                f"{where}, {score.metric}: {score.unscored}; with all of them wrong {points(score.worst_case)}, "
                f"with all of them right {points(score.best_case)}"
            )
    for (where, groups), known in effects.items():
        ends = dict.fromkeys(decimal(end) for end in (min(known), max(known))) if known else ("not known",)
        yield f"{where}: rows of {groups} were resampled together; design effect {' to '.join(ends)}"


def _cell(score: Score | None, task: str, metric: str) -> Cell:
    if score is not None and score.value is not None:
        return percent_cell(score, task, metric)
    reasons = "; ".join(score.unscored_reasons) if score is not None else ""
    return Cell(None, reasons or f"{metric} is no metric of this task", task=task, metric=metric)
