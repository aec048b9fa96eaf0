"""Scores of a run: those of the samples, of the results, and of the harness and its groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mrag_eval.config import dotted
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.verification._findings import MOST_NAMED, Finding, alike, value_text
from mrag_eval.scoring import RowRecord, TaskScores, summarize


def recomputed_scores(leaf: LeafResult, records: Sequence[RowRecord]) -> tuple[int, list[Finding]]:
    """Return how many numbers were computed again, and those that differ; :func:`means` names scores over all rows."""
    again = summarize(records, leaf.config.retrieval.get("seed", 0), leaf.config.evaluated)
    before, after = _numbers(leaf.scores), _numbers(again)
    names = dict.fromkeys([*before, *after])
    named = {f"metrics.{metric}.value" for metric in leaf.scores.metrics}
    other = [name for name in names if name not in named and not alike(before.get(name), after.get(name))]
    shown = [
        f"{name} {value_text(before.get(name))}, {value_text(after.get(name))} by the samples"
        for name in other[:MOST_NAMED]
    ]
    if len(other) > MOST_NAMED:
        shown.append(f"{len(other) - MOST_NAMED} more numbers of its scores")
    return len(names), [Finding(leaf.task, "fault", text) for text in shown]


def means(file: ResultFile, leaf: LeafResult, samples: ScoredSamples) -> Iterator[Finding]:
    """Compare both records of a metric, ours and the harness's, with the mean of its rows or territories."""
    reported = file.reported(leaf.task)
    counted = [*(row.values for row in samples.rows.values()), *samples.territories.values()]
    of_territories = {name for values in samples.territories.values() for name in values}
    for name, score in leaf.metrics.items():
        if name not in leaf.scores.metrics and name not in of_territories:
            continue
        values = [found[name] for found in counted if name in found]
        whole = values and name not in samples.halved
        mean = sum(values) / len(values) if whole else None
        by_harness = next((value for key, value in reported.items() if key.partition(",")[0] == name), mean)
        for where, value in (("scores", score.value), ("harness's results", by_harness)):
            if not alike(value, mean):
                text = f"{name} is {value_text(value)} in the {where}, {value_text(mean)} by the samples"
                yield Finding(leaf.task, "fault", text)


def group_means(file: ResultFile) -> Iterator[Finding]:
    """Compare a group's averages with those of its members: one of the two means that the harness knows."""
    for group, members in file.groups.items():
        for key, value in file.reported(group).items():
            name, _, filtered = key.partition(",")
            inner = [(file.reported(member), _size(file, member)) for member in members]
            parts = [(found[key], n) for found, n in inner if isinstance(found.get(key), int | float)]
            if name.endswith("_stderr") or not filtered or not isinstance(value, int | float) or not parts:
                continue
            plain = sum(part for part, _ in parts) / len(parts)
            total = sum(n for _, n in parts)
            weighted = sum(part * n for part, n in parts) / total if total else plain
            if not (alike(value, plain) or alike(value, weighted)):
                own = f"{value_text(plain)} or weighted by rows {value_text(weighted)}"
                yield Finding(group, "fault", f"{name} is {value_text(value)}, {own} by its tasks")


def _size(file: ResultFile, name: str) -> int:
    counts = file.content.get("n-samples") or {}
    return sum((counts.get(task) or {}).get("effective") or 0 for task in file.tasks_of(name) or [name])


def _numbers(scores: TaskScores) -> dict[str, Any]:
    """Return every value of the scores under its dotted path."""
    return {key: value for key, value in dotted(scores.to_dict()).items() if not isinstance(value, list)}
