"""Question, answer and passages of a row, as a run's samples or a baseline with answers hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.config import SHOWN
from mrag_eval.core import Hit, is_relevant, plain_name
from mrag_eval.platform import hidden
from mrag_eval.report.files._sample import Sample
from mrag_eval.scoring import RowRecord

# Texts of passages are cut: the reader needs to recognise the passage.
_PASSAGE_CHARS = 700


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage of a prompt; a baseline keeps its id and whether it is ``relevant``, but no title and no text."""

    id: str
    relevant: bool = False
    lang: str = ""
    title: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class RowTexts:
    """What a run keeps of one row besides its scores.

    Attributes:
        question: the question, empty in a baseline; ``references`` its right answers.
        answer: the answer read off the reply.
        outcome: how the model gave no answer to read, None if it gave one.
        passages: the passages of the prompt, in order.
        shown: whether one of them is relevant, None if it is not known.
        votes: seat of a panel -> its verdict (a grade as text), or why it abstained.
    """

    question: str
    references: tuple[str, ...]
    answer: str
    outcome: str | None
    passages: tuple[ShownPassage, ...]
    shown: bool | None
    votes: Mapping[str, bool | str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, sample: Sample) -> RowTexts:
        """Return the texts of a sample."""
        record, doc = sample.record, sample.doc
        hits = sample.passages
        passages = tuple(
            ShownPassage(
                hit.id,
                bool(hit.is_gold) or is_relevant(hit, doc),
                hit.lang,
                hit.title[:_PASSAGE_CHARS],
                hit.text[:_PASSAGE_CHARS] + ("…" if len(hit.text) > _PASSAGE_CHARS else ""),
            )
            for hit in hits
        )
        shown = _shown(record, hits)
        return cls(doc.query, tuple(doc.answers), sample.answer, record.outcome, passages, shown, _votes(sample))

    def kept(self, row: str) -> list[Any]:
        """Return what a baseline with answers keeps, as one line: neither the question nor texts of passages."""
        passages = [[passage.id, int(passage.relevant)] for passage in self.passages]
        line: list[Any] = hidden([row, self.answer, self.outcome, self.shown, passages, dict(self.votes)])
        return line

    @classmethod
    def from_kept(cls, line: Sequence[Any]) -> tuple[str, RowTexts]:
        """Return row id and texts of the line that :meth:`kept` returned. Raises ValueError for another value."""
        row, answer, outcome, shown, passages, votes = line
        if not (isinstance(answer, str) and isinstance(votes, dict) and shown in (None, True, False)):
            raise ValueError(f"answer of row {row!r}")
        found = tuple(ShownPassage(str(id), bool(relevant)) for id, relevant in passages)
        given = {str(seat): v if isinstance(v, bool) or v is None else str(v) for seat, v in votes.items()}
        return str(row), cls("", (), answer, None if outcome is None else str(outcome), found, shown, given)


def _shown(record: RowRecord, hits: Sequence[Hit]) -> bool | None:
    """Return whether a relevant passage is in the prompt; None if it is not known."""
    for name, value in record.values.items():
        if plain_name(name) == SHOWN:
            return value == 1.0
    if any(plain_name(name) == SHOWN for name in record.unscored):
        return None
    if record.kept is not None:
        return bool(record.kept)
    marked = [hit.is_gold for hit in hits if hit.is_gold is not None]
    return any(marked) if marked else None


def _votes(sample: Sample) -> dict[str, bool | str | None]:
    judged = sample.record.judge
    if judged is not None and judged.votes:
        return {seat: _said(judged.vote(seat), judged.why_not(seat)) for seat in judged.votes}
    votes = {seat: vote if isinstance(vote, Mapping) else {} for seat, vote in sample.votes.items()}
    return {str(seat): _said(vote.get("verdict"), vote.get("error") or "no verdict") for seat, vote in votes.items()}


def _said(verdict: Any, otherwise: Any) -> bool | str | None:
    """Return yes or no as it is, a grade or a label as text, and without a verdict its reason."""
    if isinstance(verdict, bool) or (verdict is None and otherwise is None):
        return verdict
    return str(otherwise if verdict is None else verdict)
