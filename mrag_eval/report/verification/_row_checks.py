"""Rows of a run: which of the benchmark's they are, and their records by their own replies, rankings and votes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mrag_eval.config import SUPPORT
from mrag_eval.core import Failure
from mrag_eval.judging import Rubric, relevance_rubric, sufficiency_rubric, support_rubric, verdict_rubric, votes_again
from mrag_eval.platform import ConfigError, number_of, to_json
from mrag_eval.prompts import builtin_names
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._findings import Differing, Kind, Remark
from mrag_eval.report.verification._rebuilt import OF_A_RANK, Rebuilt, rebuilt, votes_of
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import Missing, RowRecord

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


def votes_read(here: TaskHere, found: Rebuilt, differing: Differing) -> tuple[int, int]:
    """Read votes again from the judges' replies, which those that were cast have; return how many, of how many."""
    samples = found.samples
    of = [enumerate(one.record.grounding.claims if one.record.grounding is not None else ()) for one in samples]
    claims = [to_json({f"{n}.votes.{seat}": v for n, one in every for seat, v in one.votes.items()}) for every in of]
    kept = [(sample.votes, to_json(sample.record.sufficiency_votes or {})) for sample in samples]
    recorded = [(*both, own) for both, own in zip(kept, claims, strict=True)]
    size = sum(len(votes) for every in recorded for votes in every)
    answers, passages = map(votes_of, samples), (sample.record.sufficiency_votes or {} for sample in samples)
    again = votes_again(here.judge, here.leaf.seats, found.rows, [*answers], [*passages]) if size else None
    if again is None or here.hashed or any(judge_texts(here)):
        return 0, size
    compared = 0
    for sample, every, *found_again in zip(samples, recorded, *again, strict=True):
        for key, own, read in zip(("votes", "sufficiency_votes", "grounding.claims"), every, found_again, strict=True):
            compared += len(read)
            cast = [seat for seat, vote in own.items() if vote.get("verdict") is not None and not vote.get("reply")]
            wanted = {**{seat: {**own[seat], "reply": "a text"} for seat in cast}, **to_json(read)}
            differing.compare(sample.record.row, {seat: own[seat] for seat in wanted}, wanted, key)
    return compared, size


def judge_texts(here: TaskHere) -> Iterator[Remark]:
    """Compare the recorded hashes of judges' prompts with those here: a fault for built-in ones, else open."""
    leaf, block = here.leaf, here.judge
    claims, support = block.claims_prompt or "", leaf.measurement.instrument.get(SUPPORT) or {}
    named: dict[str, tuple[str, Callable[[], Rubric[Any]]]] = {
        "judge": (block.prompt, lambda: verdict_rubric(block.prompt, block.reply, block.scale)),
        "sufficiency": (block.sufficiency.prompt, lambda: sufficiency_rubric(block.sufficiency.prompt)),
        "relevance": (block.relevance.prompt, lambda: relevance_rubric(block.relevance.prompt)),
        "claims": (claims, lambda: support_rubric(claims)),
    }
    of_claims = {"claims": support["prompt"]} if claims and "prompt" in support else {}
    for key, recorded in {**leaf.config.block("texts"), **of_claims}.items():
        if key not in named:
            continue
        name, rubric = named[key]
        try:
            same = rubric().template.sha256 == recorded
        except ConfigError:
            same = False
        if not same:
            kind: Kind = "fault" if name in builtin_names("judge") else "open"
            yield Remark(leaf.task, kind, f"the judge's prompt '{name}' has another text here than the run recorded")


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


@dataclass(frozen=True)
class MadeAgain:
    """What came of making the rows of a task again: where they ``differ``, and votes, some of which were ``compared``.

    ``missing`` are metrics not computed here. ``labels_repeated``: whether all labels follow from what is known here.
    """

    differ: list[Remark]
    votes: list[Remark]
    compared: int
    cast: int
    missing: Mapping[str, Missing]
    labels_repeated: bool


def made_again(here: TaskHere, samples: Samples, *, by_document: bool = False) -> MadeAgain:
    """Make the rows of a task again, some at a time, and compare them with the recorded ones.

    Without the benchmark's rows it is not known whether relevant ids are those of documents alone: then the reading
    counts with which fewer records differ.
    """
    votes, told = Differing(here.leaf.task, len(samples), "by its reply"), []

    def pairs() -> Iterator[tuple[Sample, RowRecord]]:
        for part in rebuilt(here, samples, by_document=by_document):
            told.append((*votes_read(here, part, votes), part.missing, part.labels_repeated))
            yield from zip(part.samples, part.records, strict=True)

    differ = [*_differences(here, len(samples), pairs())]
    compared, cast, missing, repeated = zip(*told, strict=True)
    found = MadeAgain(differ, [*votes.findings()], sum(compared), sum(cast), missing[0], all(repeated))
    if here.rows is not None or by_document or not differ:
        return found
    return min((found, made_again(here, samples, by_document=True)), key=lambda one: len(one.differ))


def row_values(here: TaskHere, found: MadeAgain) -> Iterator[Remark]:
    """Yield where the record of a row differs from that made again from its reply, ranking and votes."""
    if here.form is None:
        why = "their texts are hashed" if here.hashed else f"no prompt template '{here.leaf.config.prompt}' here"
        yield Remark(here.leaf.task, "open", f"replies were not read again: {why}")
    yield from found.differ
    for why in dict.fromkeys(missing.why for missing in found.missing.values()):
        names = sorted(name for name, missing in found.missing.items() if missing.why == why)
        yield Remark(here.leaf.task, "open", f"{', '.join(names)}: not computed again, as {why}")


def _differences(here: TaskHere, rows: int, pairs: Iterable[tuple[Sample, RowRecord]]) -> Iterator[Remark]:
    task = here.leaf.task
    gathered: dict[str, Differing] = {}

    def of(by: str) -> Differing:
        return gathered.setdefault(by, Differing(task, rows, by))

    against_votes = []
    for sample, record in pairs:
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
