"""Rows of a run: which of the benchmark's they are, and their records by their own replies, rankings and votes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

from mrag_eval.core import Failure
from mrag_eval.platform import number_of, to_json
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.verification._findings import Differing, Remark
from mrag_eval.report.verification._rebuilt import OF_A_RANK, Rebuilt, rebuilt
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import RowRecord

_KEYS = {"schema_version", *(part.name for part in fields(RowRecord))}
# What decides a field of a record; the reply decides the others.
_BY = {
    "judge": "by its votes",
    "sufficiency": "by its votes",
    "sufficiency_votes": "by its votes",
    "relevance": "by its votes",
    "retrieved": "by its ranking",
    "kept": "by its ranking",
    "languages": "by its ranking",
    "rerank": "by its ranking",
    "loop": "by its trace",
    "row": "by its question",
    "cell": "by its question",
    "group": "by its question",
    "question": "by its question",
    "gold_positions": "by its passages",
    "controls": "by its references",
}


def row_counts(file: ResultFile, here: TaskHere, records: Sequence[RowRecord]) -> Iterator[Remark]:
    """Compare the rows in the samples with those of the results, of the harness, and of the benchmark."""
    leaf = here.leaf
    ids = Counter(record.row for record in records)
    twice = [row for row, n in ids.items() if n > 1]
    if twice:
        yield Remark(leaf.task, "fault", f"{number_of(len(twice), 'repeated row')}, '{twice[0]}' first")
    if leaf.scores.rows != len(ids):
        yield Remark(leaf.task, "fault", f"{leaf.scores.rows} rows in the results, {len(ids)} in the samples")
    size = (file.content.get("n-samples") or {}).get(leaf.task) or {}
    effective, original = size.get("effective"), size.get("original")
    if effective != len(ids):
        yield Remark(leaf.task, "fault", f"{effective} rows by the harness, {len(ids)} in the samples")
    asked = _asked(file, leaf, original)
    if here.rows is not None and here.rows.repeated is not None:
        yield from _against_benchmark(file, here, ids, original)
    elif asked is not None and len(ids) < asked:
        yield Remark(leaf.task, "fault", f"{asked - len(ids)} of {asked} rows are missing")
    if isinstance(original, int) and len(ids) < original:
        limit = file.run.get("limit")
        why = f"--limit {limit:g}" if limit is not None else "--samples" if leaf.config.samples else "rows are missing"
        yield Remark(leaf.task, "deviation", f"{len(ids)} of {original} rows ({why})", "rows")


def _asked(file: ResultFile, leaf: LeafResult, total: object) -> int | None:
    """Return how many of ``total`` rows the recorded flags ask for."""
    if not isinstance(total, int):
        return None
    if leaf.config.samples:
        return len(leaf.config.samples)
    limit = file.run.get("limit")
    if not isinstance(limit, int | float):
        return total
    return min(total, math.ceil(total * limit) if limit < 1 else int(limit))


def _against_benchmark(file: ResultFile, here: TaskHere, ids: Counter[str], original: object) -> Iterator[Remark]:
    assert here.rows is not None
    leaf, order = here.leaf, list(here.rows.order)
    foreign = [row for row in ids if row not in here.rows.order]
    if foreign:
        text = f"{number_of(len(foreign), 'row')} that the benchmark does not have, '{foreign[0]}' first"
        yield Remark(leaf.task, "fault", text)
    if original != len(order):
        yield Remark(leaf.task, "fault", f"{original} rows of the task in the results, {len(order)} in its data")
    samples = leaf.config.samples
    known = all(isinstance(number, int) and 0 <= number < len(order) for number in samples)
    asked = [order[number] for number in samples if known] or order[: _asked(file, leaf, len(order))]
    missing = [row for row in asked if row not in ids]
    if missing:
        text = f"{len(missing)} of {len(asked)} rows are missing, '{missing[0]}' first"
        yield Remark(leaf.task, "fault", text)
    wanted = {*asked}
    unasked = [row for row in ids if row not in wanted and row in here.rows.order]
    if unasked:
        yield Remark(leaf.task, "fault", f"{number_of(len(unasked), 'row')} not asked for, '{unasked[0]}' first")


def made_again(here: TaskHere, samples: Sequence[Sample]) -> Rebuilt:
    """Return the rows of a task made again.

    Without the benchmark's rows it is not known whether relevant ids are those of documents alone: then the reading
    counts with which fewer records differ.
    """
    found = rebuilt(here, samples)
    if here.rows is not None or found.records == [sample.record for sample in samples]:
        return found
    other = rebuilt(here, samples, by_document=True)
    return min((found, other), key=lambda one: len(list(_differences(here, samples, one.records))))


def row_values(here: TaskHere, samples: Sequence[Sample], found: Rebuilt) -> Iterator[Remark]:
    """Compare the record of every row with that made again from its reply, ranking and votes."""
    if here.form is None:
        why = "their texts are hashed" if here.hashed else f"no prompt template '{here.leaf.config.prompt}' here"
        yield Remark(here.leaf.task, "open", f"replies were not read again: {why}")
    yield from _differences(here, samples, found.records)
    for why in dict.fromkeys(missing.why for missing in found.missing.values()):
        names = sorted(name for name, missing in found.missing.items() if missing.why == why)
        yield Remark(here.leaf.task, "open", f"{', '.join(names)}: not computed again, as {why}")


def _differences(here: TaskHere, samples: Sequence[Sample], again: Sequence[RowRecord]) -> Iterator[Remark]:
    task, rows = here.leaf.task, len(samples)
    gathered: dict[str, Differing] = {}

    def of(by: str) -> Differing:
        return gathered.setdefault(by, Differing(task, rows, by))

    against_votes = []
    for sample, record in zip(samples, again, strict=True):
        before = sample.record
        foreign = sample.line["rows"].keys() - _KEYS
        for key in sorted(foreign):
            of("by its row").add(before.row, f"rows.{key}", sample.line["rows"][key], None)
        if before == record:
            continue
        for part in fields(RowRecord):
            name = part.name
            one, other = getattr(before, name), getattr(record, name)
            if name in (*OF_A_RANK, "values", "unscored") or one == other:
                continue
            if name == "judge" and one is not None and other is not None and one.verdict != other.verdict:
                against_votes.append(before.row)
            by = _BY.get(name, "by its reply")
            if name == "grounding":
                # what a classifier says of claims is taken as recorded
                claims = () if before.grounding is None else before.grounding.claims
                by = "by its votes and passages" if any(claim.votes for claim in claims) else "by its passages"
            if name == "failures" and _without_votes(before) == _without_votes(record):
                by = "by its votes"
            of(by).compare(before.row, to_json(one), to_json(other), name)
        for name in {**before.values, **before.unscored, **record.values, **record.unscored}:
            voted = here.leaf.scores.deciding(name)
            by = "by its votes" if voted else "by its ranking" if "@" in name else "by its reply"
            of(by).compare(before.row, _of_row(before, name), _of_row(record, name), name)
    if against_votes:
        text = f"{number_of(len(against_votes), 'verdict')} against the votes, first on '{against_votes[0]}'"
        yield Remark(task, "fault", text)
    for differing in gathered.values():
        yield from differing.findings()


def _without_votes(record: RowRecord) -> list[Failure]:
    """Return the failures of a row that do not follow from votes."""
    return [one for one in record.failures if one.stage not in ("judge", "grounding", "label")]


def _of_row(record: RowRecord, name: str) -> float | str | None:
    return record.values.get(name, record.unscored.get(name))
