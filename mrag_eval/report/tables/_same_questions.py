"""The runs of a table on the questions that all of them ask (BordIRlines, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from mrag_eval.metrics import undefined
from mrag_eval.report.files._results import LeafResult
from mrag_eval.report.files._samples import open_samples
from mrag_eval.report.tables._layout_schema import Layout, LayoutTable
from mrag_eval.report.tables._row_runs import TaskRun, slots
from mrag_eval.report.tables._row_settings import OF_ITS_ROWS, alike, fit
from mrag_eval.scoring import RowRecord, concurrence_table

_NO_SAMPLES = "it has no samples (--log_samples), so the questions of the other runs cannot be chosen"
_NO_QUESTION = "no question has an answer in every run of this table"
# How texts on differences begin that say which rows ran.
_ROWS = (*OF_ITS_ROWS, "data.languages", "data.territories")
# Row id -> its record; None for a run without samples.
_Records = Mapping[str, RowRecord] | None


def on_same_questions(
    table: LayoutTable, layout: Layout, runs: Sequence[TaskRun], where: Mapping[int, Sequence[str]]
) -> tuple[list[TaskRun], list[str]]:
    """Return the runs, those of the table with scores over territories of the questions that all of a model's ask.

    Only runs of one condition share questions: those with the settings of their rows, and those that differ from their
    rows in the same settings, the rows that ran aside. Of the former, those over all rows decide which questions these
    are, if there are any. ``where`` is as from :func:`~mrag_eval.report.tables._row_runs.placed`. The lines say how
    many questions are left.
    """
    out, lines = list(runs), []
    together: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for i, run in enumerate(runs):
        fits = [fit(run.leaf, slot.stated) for slot in slots(table, layout) if slot.task == run.leaf.task]
        if table.id in where.get(i, ()):
            together.setdefault((run.file.model, ()), []).append(i)
        elif fits and i not in where:
            differs = {alike(text) for text in min(fits, key=len) if not text.startswith(_ROWS)}
            together.setdefault((run.file.model, tuple(sorted(differs))), []).append(i)
    for (model, otherwise), own in together.items():
        if len(own) == 1:
            continue
        records = {i: _records(runs[i]) for i in own}
        deciding = [i for i in own if table.id in where.get(i, ())] or own
        asked = [_answered(found) for i in deciding if (found := records[i]) is not None]
        kept = reduce(set.intersection, asked) if asked else set()
        for i in own:
            out[i] = replace(runs[i], leaf=_over(runs[i].leaf, records[i], kept))
        if kept:
            which = f"every run of this table with {'; '.join(otherwise)}" if otherwise else "every run of this table"
            lines.append(f"{model}: over the {len(kept):,} questions to which {which} has an answer")
    return out, lines


def _records(run: TaskRun) -> _Records:
    path = run.file.samples(run.leaf.task)
    return None if path is None else {record.row: record for record in open_samples(path).records}


def _answered(records: Mapping[str, RowRecord]) -> set[str]:
    """Return the rows of territories on which no question failed: others are in no score of the run."""
    lost = {record.unanswered.territory for record in records.values() if record.unanswered is not None}
    return {row for row, r in records.items() if r.concurrence is not None and r.concurrence.territory not in lost}


def _over(leaf: LeafResult, records: _Records, rows: set[str]) -> LeafResult:
    """Return a result with its scores over territories computed from these rows alone."""
    found = leaf.scores.concurrence
    if found is None or (records is not None and records.keys() == rows):
        return leaf
    kept = [record for row, record in (records or {}).items() if row in rows]
    table = concurrence_table(kept, leaf.config.retrieval.get("seed", 0))
    if table is None:
        reason = _NO_SAMPLES if records is None else _NO_QUESTION
        table = replace(found, intervals={name: undefined(reason, e.method) for name, e in found.intervals.items()})
    return replace(leaf, scores=replace(leaf.scores, concurrence=table))
