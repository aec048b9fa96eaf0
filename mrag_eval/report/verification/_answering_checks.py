"""What came of the requests to the evaluated model, against the run's arguments and against its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.core import CUT_OFF
from mrag_eval.models import ANSWERED_BY_US, LOCAL_TRANSPORT, UNKNOWN_MODEL, Ledger, Reply
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._findings import Remark, value_text

# Keys of the outcome that are empty unless the requests were sent by this package.
_OF_OUR_TRANSPORT = ("answered_by", "finish_reasons", "outcomes")
# Keys of the outcome that are a task's own; the others are the run's.
_OF_A_TASK = ("not_judged", "seats")


@dataclass
class ReplyCounts:
    """Count what the rows of a run's tasks say of the evaluated model's replies.

    Attributes:
        requests: requests for a reply or a likelihood.
        sent: those that no failure before them made needless.
        outcomes: rows by outcome; of those, ``said`` counts the ones that the provider named.
        cut_off: rows whose reply the provider cut at its limit.
        failures: rows by the reason why the call failed.
        by_likelihood: whether some rows have a request for each option.
        whole: whether the rows of all tasks are counted, each by one rank.
    """

    requests: int = 0
    sent: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    cut_off: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    by_likelihood: bool = False
    whole: bool = True

    def add(self, samples: Samples) -> None:
        """Count the rows of a task."""
        self.whole = self.whole and sum(record.prompts is not None for record in samples.records) == 1
        for record, number in zip(samples.records, samples.requests, strict=True):
            failed = [one.reason for one in record.failures if one.step in ("answer", "system")]
            self.requests += number
            self.sent += number if failed or not record.failures else 0
            self.by_likelihood = self.by_likelihood or number > 1
            self.failures.update(failed[:1])
            self.cut_off += record.fate == CUT_OFF
            if record.outcome is not None:
                self.outcomes[record.outcome] += 1
                self.said[record.outcome] += record.outcome == record.fate


def answering_follows(file: ResultFile, asked: ReplyCounts) -> Iterator[Remark]:
    """Compare what came of the requests by every task with the arguments of the model, and with all rows of the run."""
    leaves = [leaf for leaf in file.leaves.values() if not leaf.measurement.unknown]
    for leaf in leaves:
        if "ledger" not in leaf.config.outcome:
            yield Remark(leaf.task, "fault", "outcome is missing: what came of the requests to the model")
        elif _of_the_run(leaf) != _of_the_run(leaves[0]):
            yield Remark(leaf.task, "fault", "outcome is not that of the other tasks of the run")
        yield from _against_arguments(leaf)
    if leaves and leaves[0].config.outcome:
        first = leaves[0]
        yield from (Remark(first.task, "fault", text) for text in _against_rows(file, first, asked))


def _of_the_run(leaf: LeafResult) -> dict[str, Any]:
    found = {key: value for key, value in leaf.config.outcome.items() if key not in _OF_A_TASK}
    return {**found, "transport": leaf.config.transport}


def _against_arguments(leaf: LeafResult) -> Iterator[Remark]:
    subject, outcome = leaf.measurement.subject, leaf.config.outcome
    args, metadata = subject.get("model_args") or {}, leaf.config.block("metadata")
    compared: dict[str, tuple[Any, Any]] = {
        f"metadata.{key}": (str(metadata[key]), args[key]) for key in args if key in metadata
    }
    if outcome and leaf.config.transport != ANSWERED_BY_US:
        unnamed = {UNKNOWN_MODEL} == {*(outcome.get("answered_by") or ())}
        keys = [key for key in _OF_OUR_TRANSPORT if not (unnamed and key == "answered_by")]
        compared |= {f"outcome.{key}": (outcome.get(key) or None, None) for key in keys}
        compared["outcome.ledger"] = outcome.get("ledger"), Ledger().as_dict()
        if leaf.config.transport != LOCAL_TRANSPORT:
            compared["subject.transport"] = leaf.config.transport, f"not ours ({subject.get('model')})"
    for key, (one, other) in compared.items():
        if one != other:
            text = f"{key} is {value_text(one)}, {value_text(other)} by the rest of the results"
            yield Remark(leaf.task, "fault", text)


def _counts(found: Any) -> Mapping[str, int]:
    """Return counts by name; whatever is none counts nothing."""
    items = found.items() if isinstance(found, Mapping) else ()
    return {name: count for name, count in items if isinstance(count, int)}


def _against_rows(file: ResultFile, leaf: LeafResult, asked: ReplyCounts) -> Iterator[str]:
    """Compare counts of a model that was asked over our transport with the rows, where one rank counted all of them."""
    if leaf.config.transport != ANSWERED_BY_US or not asked.whole:
        return
    block = leaf.config.outcome
    ledger, outcomes = block.get("ledger") or {}, _counts(block.get("outcomes"))
    for name in sorted({*outcomes, *asked.said}):
        least, most, found = asked.said[name], asked.outcomes[name], outcomes.get(name, 0)
        # those that a reply shows, too, the provider may not have counted
        if not least <= found <= most:
            span = str(most) if least == most else f"{least} to {most}"
            yield f"outcome.outcomes.{name} is {found}, {span} by the rows"
    ends = _counts(block.get("finish_reasons"))
    cut, most = sum(n for end, n in ends.items() if Reply("", end).cut_off), asked.cut_off + asked.said.total()
    # a reply without an answer may have reached its limit, too
    if not asked.cut_off <= cut <= most:
        yield f"outcome.finish_reasons has {cut} replies that were cut off, {asked.cut_off} by the rows"
    failed = _counts(ledger.get("failures"))
    for reason in sorted({*failed, *asked.failures}):
        found, rows = failed.get(reason, 0), asked.failures[reason]
        # equal prompts may be sent once, and a row with a request for each option names one failure
        if (rows and not found) or (found > rows and not asked.by_likelihood):
            yield f"outcome.ledger.failures.{reason} is {found}, {rows} by the rows"
    sent = ledger.get("calls", 0) + ledger.get("cached", 0)
    if sent > asked.requests or (asked.sent and not sent and not file.run.get("use_cache")):
        yield f"outcome.ledger counts {sent} calls for {asked.requests} requests of the rows"
    for key, counts in (("answered_by", _counts(block.get("answered_by"))), ("finish_reasons", ends)):
        counted = sum(counts.values())
        if counted > asked.requests:
            yield f"outcome.{key} counts {counted} replies to {asked.requests} requests of the rows"
