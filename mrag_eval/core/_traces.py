"""The trace of an agents' loop: how the passages of a question were found, as samples and trace files show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.platform import OPTIONAL, from_json, to_json

# The critic's criteria, in the order of their scores.
CRITERIA = ("relevance", "usefulness", "clarity_specificity", "compatibility")
# The fault of a question whether the documents are enough that was left without an answer.
_UNDECIDED = re.compile(r"sufficiency: (.+) \(insufficient\)")
_FIX = "run the task again, which writes its traces again"


@dataclass(frozen=True, slots=True)
class CriticScores:
    """The critic's scores of one document by :data:`CRITERIA`, their weighted ``total``, and its words."""

    relevance: int
    usefulness: int
    clarity_specificity: int
    compatibility: int
    total: float
    critique: str = ""

    def by_criterion(self) -> dict[str, int]:
        """Return criterion -> score."""
        return {name: getattr(self, name) for name in CRITERIA}


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """Count calls to the agents: conversations (``cached``: those answered from the cache), tokens, seconds."""

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Return tokens in and out."""
        return self.tokens_in + self.tokens_out

    def __add__(self, other: AgentUsage) -> AgentUsage:
        return AgentUsage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class TracedHit:
    """A document that a round found, with the beginning of its text, as it was at the end of the round.

    ``new``: no earlier round found it. ``unscored`` says why the critic gave no scores.
    """

    id: str
    lang: str
    title: str
    text: str
    score: float
    new: bool
    valid: bool
    critic: CriticScores | None = field(default=None, metadata=OPTIONAL)
    unscored: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class TracedRound:
    """One round: languages of the corpora, query, documents found, and how many valid ones it ``added``.

    ``enough_documents`` and its ``reason`` are None if the critic gave no decision. ``usage`` is by agent.
    """

    round: int
    languages: tuple[str, ...]
    query: str
    hits: tuple[TracedHit, ...]
    added: int
    enough_documents: bool | None = field(default=None, metadata=OPTIONAL)
    reason: str | None = field(default=None, metadata=OPTIONAL)
    faults: Mapping[str, int] = field(default_factory=dict, metadata=OPTIONAL)
    usage: Mapping[str, AgentUsage] = field(default_factory=dict)

    @property
    def undecided(self) -> str | None:
        """Return why the critic was asked and gave no decision; None if it gave one, or was not asked."""
        found = (_UNDECIDED.fullmatch(fault) for fault in self.faults)
        return next((fault[1] for fault in found if fault is not None), None)


@dataclass(frozen=True, slots=True)
class Trace:
    """The course of the loop for one question: why it ended, the ids of the documents ``shown``, every round.

    ``valid`` counts the valid documents. With ``fallback``, no document is valid, and the best scored ones are shown.
    ``agents`` names planner and critic as the results do.
    """

    stopped: str
    valid: int
    shown: tuple[str, ...]
    fallback: bool
    faults: Mapping[str, int]
    usage: AgentUsage
    rounds: tuple[TracedRound, ...]
    agents: Mapping[str, str] | None = field(default=None, metadata=OPTIONAL)

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON."""
        return dict(to_json(self))

    @classmethod
    def from_dict(cls, value: Any, where: str) -> Trace:
        """Return the trace behind :meth:`to_dict`. Raises DataError for a faulty key, naming ``where`` it is."""
        return from_json(cls, value, where, _FIX)


@dataclass(frozen=True, slots=True)
class TracedQuestion:
    """A line of a trace file: task, the harness's number of the row, question, and trace."""

    task: str
    doc_id: int | None
    id: str
    query: str
    query_lang: str
    trace: Trace
    choices: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)

    def to_dict(self) -> dict[str, Any]:
        """Return the line as JSON: one level, with the trace's keys last."""
        line = dict(to_json(self))
        trace = line.pop("trace")
        return {**line, **trace}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> TracedQuestion:
        """Return the line behind :meth:`to_dict`. Raises DataError for a faulty key, naming ``where`` it is."""
        return from_json(cls, {**value, "trace": value}, where, _FIX)
