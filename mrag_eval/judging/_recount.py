"""Verdicts of a finished run, counted again from its recorded votes; no judge is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from mrag_eval.config import Judge
from mrag_eval.core import Failure, Judgement, Labels, LabelSource, Passage, Scored, Vote
from mrag_eval.judging._answers import LanguageCheck, case_of
from mrag_eval.judging._claims import recounted
from mrag_eval.judging._panel import counted
from mrag_eval.judging._relevance import NO_TRANSLATION, Labeller, by_ngrams, by_page, counted_labels, own_answers
from mrag_eval.models import Answered
from mrag_eval.scoring import LabelRecord


@dataclass(frozen=True)
class Votes:
    """What the judges said of one row.

    Attributes:
        answer: votes on the answer, by seat; None if no panel judged it.
        passages: votes on the passages shown; None if no panel judged them.
        labels: the labels of the ranking; None without any.
        shown: the number of passages shown.
        failures: the failures that are recorded for the row.
    """

    answer: Mapping[str, Vote] | None = None
    passages: Mapping[str, Vote] | None = None
    labels: LabelRecord | None = None
    shown: int = 0
    failures: Sequence[Failure] = ()


@dataclass(frozen=True)
class Recount:
    """Count votes by the rules of a block; ``texts`` are the passages of the rankings, as far as they are known."""

    block: Judge
    check: LanguageCheck | None = None
    texts: Mapping[str, Passage] = field(default_factory=dict, repr=False)

    def of(self, rows: Sequence[Scored], votes: Sequence[Votes]) -> list[Scored]:
        """Return the rows with their language check, and the judgements and labels that the votes make."""
        checked = rows if self.check is None else self.check.of(rows)
        return [self._counted(row, said) for row, said in zip(checked, votes, strict=True)]

    def _counted(self, row: Scored, said: Votes) -> Scored:
        judgement = None if said.answer is None else self._answer(row, said.answer)
        sufficiency = None if said.passages is None else self._passages(said)
        labels = None if said.labels is None else self._labels(row, said.labels)
        failures = [*row.failures]
        for found in (judgement, sufficiency):
            failures += () if found is None else found.failures
        failures += [] if labels is None else _failures(labels, said.failures)
        row = replace(row, judgement=judgement, sufficiency=sufficiency, labels=labels, failures=tuple(failures))
        if row.grounding is None:
            return row
        return replace(row, grounding=recounted(row.grounding, self.block.tie, row.passages))

    def repeats(self, row: Scored, labels: LabelRecord) -> bool:
        """Return whether the labels of a ranking follow from what is known here."""
        if labels.by in ("judge", "page"):
            return True
        return labels.by == "proxy" and all(place.id in self.texts for place in row.ranking)

    def _answer(self, row: Scored, votes: Mapping[str, Vote]) -> Judgement:
        case = case_of(row, self.block.scale)
        return case if isinstance(case, Judgement) else counted(votes, self.block.tie, self.block.scale)

    def _passages(self, said: Votes) -> Judgement:
        return counted(said.passages or {}, self.block.tie) if said.shown else Judgement(False, "empty")

    def _labels(self, row: Scored, record: LabelRecord) -> Labels:
        ids = tuple(place.id for place in row.ranking)
        if not self.repeats(row, record):
            numbers = record.relevant or ()
            found = frozenset(ids[n - 1] for n in numbers if 0 < n <= len(ids))
            by = cast(LabelSource, record.by)
            return Labels(by, ids[: record.judged], found, record.fault, record.votes)
        if record.by == "page":
            return by_page(row)
        if record.by == "proxy":
            return by_ngrams(row, self.texts, Labeller("proxy", self.block), own_answers(row))
        if not record.votes:
            return Labels("judge", ids, fault=record.fault)
        votes = {
            seat: Answered[list[int]](None, said, ()) if isinstance(said, str) else Answered(list(said), None, ())
            for seat, said in record.votes.items()
        }
        return counted_labels(ids, votes, tie=False if self.block.tie == "incorrect" else None)


def _failures(labels: Labels, recorded: Sequence[Failure]) -> list[Failure]:
    """Return the failures that left a ranking without labels; the name of a translator is in the recorded ones."""
    if labels.by == "judge" and labels.fault is not None:
        return [Failure.of("label", seat, said) for seat, said in labels.votes.items() if isinstance(said, str)]
    return [failure for failure in recorded if failure.reason == labels.fault == NO_TRANSLATION]
