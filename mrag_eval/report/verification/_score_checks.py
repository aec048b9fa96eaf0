"""Scores of a run: those of the samples, and those of the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mrag_eval.config import dotted
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.verification._findings import MOST_NAMED, Remark, same, value_text
from mrag_eval.scoring import RowRecord, TaskScores, summarize


def recomputed_scores(
    file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]
) -> tuple[TaskScores, int, list[Remark]]:
    """Return the scores again, how many numbers they hold, and those that differ.

    :func:`means` names scores over all rows.
    """
    again = summarize(records, leaf.config.retrieval.get("seed", 0), leaf.config.evaluated)
    found, made = file.content["configs"][leaf.task]["scores"], again.to_dict()
    # in most files all are equal, to the last digit
    after = dotted(made)
    before = after if found == made else dotted(found)
    names = dict.fromkeys([*before, *after])
    named = {f"metrics.{metric}.value" for metric in leaf.scores.metrics}
    other = [
        name
        for name in names
        if before is not after and name not in named and not same(before.get(name), after.get(name))
    ]
    shown = [
        f"{name} {value_text(before.get(name))}, {value_text(after.get(name))} by the samples"
        for name in other[:MOST_NAMED]
    ]
    if len(other) > MOST_NAMED:
        shown.append(f"{len(other) - MOST_NAMED} more numbers of its scores")
    return again, len(names), [Remark(leaf.task, "fault", text) for text in shown]


def means(file: ResultFile, leaf: LeafResult, samples: ScoredSamples) -> Iterator[Remark]:
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
            if not same(value, mean):
                text = f"{name} is {value_text(value)} in the {where}, {value_text(mean)} by the samples"
                yield Remark(leaf.task, "fault", text)
