"""All scores of some runs as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.report._table import Cell, Row, Table
from mrag_eval.report.files._leaves import Leaf, result_leaves
from mrag_eval.report.files._scores import leaf_frame
from mrag_eval.report.page._points import score_points


def score_table(results: Sequence[Path]) -> Table:
    """Return tasks x metrics in percent, with interval and n, from result files or folders; blanks have a reason."""
    leaves = result_leaves(results)
    found = {(point["task"], point["metric"]): point for point in score_points(leaf_frame(leaves))}
    metrics = list(dict.fromkeys(metric for _, metric in found))
    rows = []
    for leaf, _ in leaves:
        cells = []
        for metric in metrics:
            point = found.get((leaf.label, metric))
            if point is None:
                cells.append(Cell(None, _why(leaf, metric), task=leaf.task, metric=metric))
                continue
            cells.append(Cell(point["value"], None, point["low"], point["high"], point["n"], leaf.task, metric))
        rows.append(Row((leaf.label,), leaf.run, tuple(cells)))
    return Table("scores", "Scores", ("task",), tuple(metrics), tuple(rows), 1)


def _why(leaf: Leaf, metric: str) -> str:
    return "; ".join(leaf.result.unscored.get(metric) or {}) or f"{metric} is no metric of this task"
