"""One scored row of a run, with its texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mrag_eval.core import FATES, Failure, Hit, ModelReply, RagDoc, Retrieved, Trace, Vote
from mrag_eval.platform import DataError, to_json
from mrag_eval.scoring import Given, RowRecord


@dataclass(frozen=True)
class Sample:
    """One line of a sample file: the row's record, the harness's line with question and reply, and where it is."""

    record: RowRecord
    line: Mapping[str, Any] = field(repr=False)
    where: str = "a sample"

    @property
    def _doc(self) -> Mapping[str, Any]:
        return self.line.get("doc") or {}

    @cached_property
    def doc(self) -> RagDoc:
        """Return the question; if the sample has none, only its id and language."""
        known = {"id": self.record.row, "query": "", "query_lang": self.record.query_lang}
        return RagDoc.from_dict({**known, **self._doc})

    @cached_property
    def passages(self) -> tuple[Hit, ...]:
        """Return the passages in the prompt."""
        return tuple(Hit.from_dict(passage) for passage in self._doc.get("passages") or ())

    @cached_property
    def trace(self) -> Trace | None:
        """Return the trace of the agents' loop; None without one."""
        found = self._doc.get("trace")
        return Trace.from_dict(found, f"trace of row '{self.record.row}'") if found else None

    @property
    def reply(self) -> str:
        """Return the model's reply, after the task's filter; empty if it was not kept."""
        value: Any = self.line.get("filtered_resps")
        while isinstance(value, list) and value:
            value = value[0]
        return value if isinstance(value, str) else ""

    def given(self, doc: RagDoc, retrieved: Retrieved) -> Given:
        """Return what the run read: its reply with its fate, or the likelihoods of its options.

        Raises DataError for a sample that does not tell the reply's fate.
        """
        record, fate = self.record, self.record.fate
        if fate not in FATES:
            known = "is missing" if fate is None else f"is {fate!r}, not one of {', '.join(FATES)}"
            raise DataError(f"{self.where}: 'rows.fate' {known}", "run or score again with this version of mrag-eval")
        failure = next((one for one in record.failures if one.step in ("answer", "system")), Failure("answer", "", ""))
        text = self.reply
        values: tuple[float, ...] = ()
        if doc.choices and record.answer is not None and record.answer.loglikelihoods:
            # the harness writes numbers and truth values as text
            text, values = "", tuple(map(_number, self.line.get("filtered_resps") or ()))[: len(doc.choices)]
        reply = ModelReply.of(text, fate, failure)
        return Given(doc, retrieved, reply, record.offered, values, record.answer_to(self.reply))

    @property
    def replies(self) -> list[str]:
        """Return every reply, after the task's filter."""
        return list(_texts(self.line.get("filtered_resps")))

    @property
    def answer(self) -> str:
        """Return the answer read off the reply."""
        return self.record.answer_to(self.reply).text

    @property
    def prompt(self) -> str | None:
        """Return the prompt as it was sent; None if the harness did not keep it."""
        value: Any = self.line.get("arguments")
        for key in ("gen_args_0", "arg_0"):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    @property
    def votes(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the judges' votes in full, by seat."""
        return self.line.get("votes") or {}

    @property
    def source_language(self) -> str:
        """Return the language of the question's culture if its row names one, else that of the question."""
        return self.doc.culture_lang or self.record.query_lang

    def rescored(
        self, record: RowRecord, stale: Collection[str], values: Mapping[str, float], votes: Mapping[str, Vote] | None
    ) -> Sample:
        """Return the sample with a new record, and the harness's own columns of metrics to match it.

        ``stale`` names the columns that ``values`` replace; ``votes`` None keeps the column of votes.
        """
        line = {key: value for key, value in self.line.items() if key not in stale}
        kept = [name for name in line.get("metrics", ()) if name not in stale]
        if votes is not None:
            line["votes"] = to_json(votes)
            kept = [*(name for name in kept if name != "votes"), "votes"]
        return Sample(record, line | {"rows": record.to_dict(), **values, "metrics": [*kept, *values]}, self.where)

    def with_labels(self, labels: Mapping[str, Mapping[str, str]]) -> Sample:
        """Return the sample with the labels of its passages (passage id -> labels), replacing any earlier ones."""
        passages = []
        for passage in self._doc.get("passages") or ():
            kept = {key: value for key, value in passage.items() if key != "labels"}
            found = labels.get(str(passage["id"]))
            passages.append(kept if found is None else kept | {"labels": dict(found)})
        return Sample(self.record, {**self.line, "doc": {**self._doc, "passages": passages}}, self.where)


def _number(reply: Any) -> float:
    try:
        return float(reply[0])
    except (TypeError, ValueError, IndexError):
        return float("nan")


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [] if value is None else [str(value)]
