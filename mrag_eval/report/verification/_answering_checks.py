"""The record of how the evaluated model was asked, against the run's arguments and against what came of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mrag_eval.models import ANSWERED_BY_US, LOCAL_TRANSPORT, UNKNOWN_MODEL, Ledger
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.verification._findings import Finding, value_text
from mrag_eval.report.verification._setting_checks import other_versions

# Keys of the block that are empty unless the requests were sent by this package.
_OF_OUR_TRANSPORT = ("host", "answered_by", "finish_reasons", "outcomes")


@dataclass
class ReplyCounts:
    """Count what the rows of a run's tasks say of the evaluated model's replies.

    Attributes:
        requests: requests for a reply or a likelihood.
        sent: those that no failure before them made needless.
        outcomes: rows by outcome; of those, ``said`` counts the ones that the provider named.
        failures: rows by the reason why the call failed.
        by_likelihood: whether some rows have a request for each option.
        whole: whether the rows of all tasks are counted, each by one rank.
    """

    requests: int = 0
    sent: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    by_likelihood: bool = False
    whole: bool = True

    def add(self, samples: Sequence[Sample]) -> None:
        """Count the rows of a task."""
        self.whole = self.whole and sum(sample.record.prompts is not None for sample in samples) == 1
        for sample in samples:
            record, number = sample.record, len(sample.line.get("arguments") or ())
            failed = [one.reason for one in record.failures if one.step in ("answer", "system")]
            self.requests += number
            self.sent += number if failed or not record.failures else 0
            self.by_likelihood = self.by_likelihood or number > 1
            self.failures.update(failed[:1])
            if record.outcome is not None:
                self.outcomes[record.outcome] += 1
                self.said[record.outcome] += record.outcome == record.fate


def answering_follows(file: ResultFile, asked: ReplyCounts) -> Iterator[Finding]:
    """Compare the block ``answering`` of every task with the record beside it, and with all rows of the run."""
    blocks = {task: leaf.config.block("answering") for task, leaf in file.leaves.items()}
    first = next((block for block in blocks.values() if block), {})
    for task, leaf in file.leaves.items():
        if leaf.measurement is None or leaf.measurement.unknown:
            continue
        if not blocks[task]:
            older = other_versions(leaf) and "transport" not in leaf.measurement.subject
            text = "answering is missing: how the model was asked, and what came of it"
            yield Finding(task, "note" if older else "fault", text)
            continue
        if blocks[task] != first:
            yield Finding(task, "fault", "answering is not that of the other tasks of the run")
        yield from _against_record(file, leaf, blocks[task])
    if first:
        named = next(task for task, block in blocks.items() if block)
        yield from (Finding(named, "fault", text) for text in _against_rows(file, first, asked))


def _against_record(file: ResultFile, leaf: LeafResult, block: Mapping[str, Any]) -> Iterator[Finding]:
    assert leaf.measurement is not None
    subject, args = leaf.measurement.subject, leaf.measurement.subject.get("model_args") or {}
    metadata = leaf.config.block("metadata")
    template = file.content.get("chat_template")
    compared: dict[str, tuple[Any, Any]] = {
        "measurement.subject.transport": (subject.get("transport"), block.get("transport")),
        "measurement.subject.answered_by": (subject.get("answered_by"), sorted(block.get("answered_by") or ())),
        **{f"metadata.{key}": (str(metadata[key]), args[key]) for key in args if key in metadata},
    }
    if "config_source" in metadata:
        source = str(Path(str(metadata["config_source"])).absolute())
        compared["provenance.file"] = leaf.config.provenance.get("file"), source
    if "chat_template" in file.content:
        made = sha256(str(template).encode()).hexdigest() if template else None
        compared["measurement.subject.chat_template_sha256"] = subject.get("chat_template_sha256"), made
        compared["measurement.subject.chat_template_applied"] = (
            subject.get("chat_template_applied"),
            template is not None,
        )
    if block.get("transport") == ANSWERED_BY_US:
        compared |= _of_our_transport(block, args)
    else:
        unnamed = {UNKNOWN_MODEL} == {*(block.get("answered_by") or ())}
        keys = [key for key in _OF_OUR_TRANSPORT if not (unnamed and key == "answered_by")]
        empty = {key: block.get(key) or None for key in keys}
        compared |= {f"answering.{key}": (value, None) for key, value in empty.items()}
        compared["answering.ledger"] = block.get("ledger"), Ledger().as_dict()
        if block.get("transport") != LOCAL_TRANSPORT:
            compared["answering.transport"] = block.get("transport"), f"not ours ({block.get('model')})"
    for key, (one, other) in compared.items():
        if one != other:
            text = f"{key} is {value_text(one)}, {value_text(other)} by the rest of the results"
            yield Finding(leaf.task, "fault", text)


def _of_our_transport(block: Mapping[str, Any], args: Mapping[str, str]) -> dict[str, tuple[Any, Any]]:
    """Return model and host of the block beside those of the model's arguments, where these name them."""
    model, address = args.get("model") or args.get("pretrained"), args.get("base_url")
    host = urlsplit(address or "").netloc.rpartition("@")[2]
    return {
        **({"answering.model": (block.get("model"), model)} if model else {}),
        **({"answering.host": (block.get("host"), host)} if host else {}),
    }


def _counts(found: Any) -> Mapping[str, int]:
    """Return counts by name; whatever is none counts nothing."""
    items = found.items() if isinstance(found, Mapping) else ()
    return {name: count for name, count in items if isinstance(count, int)}


def _against_rows(file: ResultFile, block: Mapping[str, Any], asked: ReplyCounts) -> Iterator[str]:
    """Compare counts of a model that was asked over our transport with the rows, where one rank counted all of them."""
    if block.get("transport") != ANSWERED_BY_US or not asked.whole:
        return
    ledger, outcomes = block.get("ledger") or {}, _counts(block.get("outcomes"))
    for name in sorted({*outcomes, *asked.said}):
        least, most, found = asked.said[name], asked.outcomes[name], outcomes.get(name, 0)
        # those that a reply shows, too, the provider may not have counted
        if not least <= found <= most:
            span = str(most) if least == most else f"{least} to {most}"
            yield f"answering.outcomes.{name} is {found}, {span} by the rows"
    failed = _counts(ledger.get("failures"))
    for reason in sorted({*failed, *asked.failures}):
        found, rows = failed.get(reason, 0), asked.failures[reason]
        # equal prompts may be sent once, and a row with a request for each option names one failure
        if (rows and not found) or (found > rows and not asked.by_likelihood):
            yield f"answering.ledger.failures.{reason} is {found}, {rows} by the rows"
    sent = ledger.get("calls", 0) + ledger.get("cached", 0)
    if sent > asked.requests or (asked.sent and not sent and not file.run.get("use_cache")):
        yield f"answering.ledger counts {sent} calls for {asked.requests} requests of the rows"
    for key in ("answered_by", "finish_reasons"):
        counted = sum(_counts(block.get(key)).values())
        if counted > asked.requests:
            yield f"answering.{key} counts {counted} replies to {asked.requests} requests of the rows"
