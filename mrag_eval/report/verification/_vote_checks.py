"""Votes of judges against the replies that this machine has kept of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.judging import Rubric, kept_votes, relevance_rubric, sufficiency_rubric, verdict_rubric
from mrag_eval.platform import ConfigError, to_json
from mrag_eval.prompts import builtin_names
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.verification._differing import Differing
from mrag_eval.report.verification._findings import Finding, Kind
from mrag_eval.report.verification._rebuilt import Rebuilt
from mrag_eval.report.verification._task_here import TaskHere


@dataclass(frozen=True)
class VotesRead:
    """The votes that differ from the kept replies, and how many of all were compared."""

    findings: tuple[Finding, ...] = ()
    compared: int = 0
    cast: int = 0


def votes_read(here: TaskHere, samples: Sequence[Sample], found: Rebuilt) -> VotesRead:
    """Read the votes again from the judges' replies in the cache, as far as they are there."""
    said = [(sample.votes, sample.record.sufficiency_votes or {}) for sample in samples]
    cast = sum(len(votes) for both in said for votes in both)
    if not cast:
        return VotesRead()
    kept = kept_votes(here.judge, here.leaf.seats, found.rows)
    if kept is None:
        return VotesRead(cast=cast)
    differing = Differing(here.leaf.task, len(samples), "by its kept reply")
    compared = 0
    for sample, (answers, passages), *again in zip(samples, said, *kept, strict=True):
        for key, votes, read in (("votes", answers, again[0]), ("sufficiency_votes", to_json(passages), again[1])):
            compared += sum(seat in votes for seat in read)
            known = {seat: to_json(vote) for seat, vote in read.items() if seat in votes}
            differing.compare(sample.record.row, {seat: votes[seat] for seat in known}, known, key)
    return VotesRead(tuple(differing.findings()), compared, cast)


def judge_texts(here: TaskHere) -> Iterator[Finding]:
    """Compare the recorded hashes of judges' prompts with those here: a fault for built-in ones, else a note."""
    leaf, block = here.leaf, here.judge
    named: dict[str, tuple[str, Callable[[], Rubric[Any]]]] = {
        "judge": (block.prompt, lambda: verdict_rubric(block.prompt, block.reply, block.scale)),
        "sufficiency": (block.sufficiency.prompt, lambda: sufficiency_rubric(block.sufficiency.prompt)),
        "relevance": (block.relevance.prompt, lambda: relevance_rubric(block.relevance.prompt)),
    }
    for key, recorded in (leaf.config.block("texts")).items():
        if key not in named:
            continue
        name, rubric = named[key]
        try:
            same = rubric().template.sha256 == recorded
        except ConfigError:
            same = False
        if not same:
            kind: Kind = "fault" if name in builtin_names("judge") else "note"
            yield Finding(leaf.task, kind, f"the judge's prompt '{name}' has another text here than the run recorded")
