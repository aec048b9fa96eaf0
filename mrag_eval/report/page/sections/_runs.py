"""The section on the runs: model, data and judges of every result file, and the words that were searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Listing, Section, each_task


def _run_points(data: PageData) -> list[Point]:
    """Return one entry per result file."""
    out: dict[Path, dict[str, Any]] = {}
    for leaf, file in data.runs:
        place = "/".join(file.path.parts[-2:])
        date = f"{file.time:%Y-%m-%d %H:%M} UTC" if file.date else ""
        new = {"model": file.model, "date": date, "path": place, "tasks": 0, "rows": 0, "shortened": 0}
        entry = out.setdefault(file.path, new | {"benchmarks": {}, "judges": {}})
        scores = leaf.result.scores
        entry["tasks"] += 1
        entry["rows"] += scores.rows
        entry["shortened"] += (scores.prompts.shortened or 0) if scores.prompts is not None else 0
        entry["benchmarks"][leaf.benchmark] = None
        entry["judges"] |= dict.fromkeys(model for table in scores.panels.values() for model in table.models)
    return [
        entry
        | {"rows": f"{entry['rows']:,}", "shortened": f"{entry['shortened']:,}"}
        | {"benchmarks": ", ".join(entry["benchmarks"]), "judges": ", ".join(entry["judges"]) or "none"}
        for entry in out.values()
    ]


def _analyzer_points(leaf: Leaf) -> list[Point]:
    """Return how BM25 cut the words of a task's passages and questions."""
    words = leaf.result.config.index.get("analyzer")
    return [{"task": leaf.label, "words": words}] if words else []


SECTION = Section(
    "runs",
    "Runs",
    folded=True,
    blocks=(
        Listing(
            "Words of BM25, which decide its scores in each language",
            {"task": "task", "words": "words"},
            each_task(_analyzer_points),
            numbers=(),
        ),
        Listing(
            "Runs",
            {"model": "model", "benchmarks": "benchmarks", "date": "date", "tasks": "tasks", "rows": "rows"}
            | {"shortened": "prompts shortened", "judges": "judges", "path": "results"},
            _run_points,
            numbers=range(2, 6),
        ),
    ),
)
