"""Scores as a flat CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.platform import csv_cell, replaced
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import Run, frame_of
from mrag_eval.scoring import better_side

_COLUMNS = ("model", "date", "task", "kind", "dimension", "cell", "metric", "value", "low", "high", "n", "method",
            "unit", "lowest", "highest", "lower_is_better", "better", "reason", "unscored", "worst_case", "best_case",
            "no_headline", "outcomes", "groups", "design_effect", "tasks", "mean", "weights", "retrieval_mode",
            "passages", "index", "embedder", "judges", "failed_votes", "prompt", "part", "task_version", "fingerprint",
            "mrag_eval_version")  # fmt: skip


def write_csv(runs: Sequence[Run], path: Path, options: Options) -> Written:
    """Write one line per figure of every task, group and cell, unrounded."""
    frame = frame_of(runs)
    frame["better"] = [better_side(metric) for metric in frame["metric"]]
    # a spreadsheet would calculate a model named =1+1
    safe = frame.apply(lambda column: column.map(lambda cell: csv_cell(cell) if isinstance(cell, str) else cell))
    with replaced(path) as part:
        safe.to_csv(part, columns=list(_COLUMNS), index=False, lineterminator="\n")
    return Written((path,), (f"{len(frame):,} figures",))


EXPORT = Export(
    "csv", "every figure of every task, group and cell, one line each", write_csv, file="scores.csv", ranked=False
)
