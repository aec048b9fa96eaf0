"""All scores of some runs as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.report.page_data import PageData, page_data
from mrag_eval.report.tables import Cell, Row, Table


def score_table(results: Sequence[Path]) -> Table:
    """Tasks x metrics in percent, with interval and n, from result files or folders of them; blanks say why."""
    data = page_data(results, samples=0)
    metrics = list(dict.fromkeys(point["metric"] for point in data.scores))
    found = {(point["task"], point["metric"]): point for point in data.scores}
    rows = []
    for leaf in data.leaves:
        cells = []
        for metric in metrics:
            point = found.get((leaf.label, metric))
            if point is None:
                cells.append(Cell(None, _why(data, leaf.label, metric), task=leaf.task, metric=metric))
                continue
            cells.append(Cell(point["value"], None, point["low"], point["high"], point["n"], leaf.task, metric))
        rows.append(Row((leaf.label,), leaf.run, tuple(cells)))
    return Table("scores", "Scores", ("task",), tuple(metrics), tuple(rows), 1)


def _why(data: PageData, label: str, metric: str) -> str:
    reasons = [p["reason"] for p in data.unscored if p["task"] == label and p["metric"] == metric]
    return "; ".join(reasons) or f"{metric} is no metric of this task"
