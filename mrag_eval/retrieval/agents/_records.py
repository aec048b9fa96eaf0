"""Records of the loop for one question: conditions, candidates, rounds, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mrag_eval.core import CRITERIA, AgentUsage, CriticScores, Failure, Hit, Trace, TracedHit, TracedRound
from mrag_eval.models import Reply
from mrag_eval.prompts import Conversation
from mrag_eval.text import estimated_tokens

Role = Literal["planner", "critic", "sufficiency"]
# The handling of a fault in a reply.
Remedy = Literal["rule", "asked again", "kept previous", "unscored", "insufficient", "ended"]
_SNIPPET = 200


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one round's retrieval: languages of the corpora, and the query."""

    languages: tuple[str, ...]
    query: str


@dataclass(frozen=True, slots=True)
class Critique:
    """The critic's verdict on one document: integers 0 to 5 in the order of :data:`CRITERIA`, and its words."""

    scores: tuple[int, int, int, int]
    text: str = ""

    def total(self, weights: Mapping[str, float]) -> float:
        """Return the weighted sum; by CORAL's weights relevance + 0.5 × (usefulness + specificity + compatibility)."""
        return sum(weights[name] * score for name, score in zip(CRITERIA, self.scores, strict=True))


@dataclass(frozen=True, slots=True)
class SufficiencyVerdict:
    """Whether the documents are enough to answer, and the reason."""

    enough: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in an agent's reply, and how it was handled."""

    role: Role
    kind: str
    remedy: Remedy

    @property
    def name(self) -> str:
        """Return the name under which faults are counted: ``planner: unknown_language (rule)``."""
        return f"{self.role}: {self.kind} ({self.remedy})"


@dataclass(eq=False)
class Candidate:
    """A retrieved document of one question.

    ``round`` is the round that found it first. ``error`` says why it has no scores.
    """

    hit: Hit
    round: int
    critique: Critique | None = None
    total: float | None = None
    valid: bool = False
    error: str | None = None

    def order(self) -> tuple[float, float, str]:
        """Return the sort key, best first: total, then retrieval score (both descending), then id."""
        return (-(self.total or 0.0), -self.hit.score, self.hit.id)

    def scored(self) -> CriticScores | None:
        """Return the critic's part for samples."""
        if self.critique is None or self.total is None:
            return None
        return CriticScores(*self.critique.scores, self.total, self.critique.text)


def usage_of(conversation: Conversation, replies: Sequence[Reply]) -> AgentUsage:
    """Return the cost of a conversation; tokens are estimated if the model reported none."""
    total = AgentUsage()
    for reply in replies:
        if reply.error is not None and not reply.attempts:
            continue
        total += AgentUsage(calls=1, seconds=reply.seconds)
        if reply.error is not None:
            continue
        read, written = reply.tokens_in, reply.tokens_out
        if read is None:
            read = sum(estimated_tokens(turn["content"]) for turn in conversation)
        if written is None:
            written = estimated_tokens(reply.text) + estimated_tokens(reply.thinking)
        total += AgentUsage(cached=int(reply.cached), tokens_in=read, tokens_out=written)
    return total


@dataclass
class Round:
    """One round of one question. ``candidates``: the documents retrieved; ``new``: ids never retrieved before.

    ``hits`` is their state at the end of the round. ``added`` counts the valid documents that the round added.
    ``decision`` is None if sufficiency was not asked for.
    """

    number: int
    conditions: Conditions
    candidates: list[Candidate] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    hits: tuple[TracedHit, ...] = ()
    added: int = 0
    decision: SufficiencyVerdict | None = None
    faults: list[Fault] = field(default_factory=list)
    usage: dict[str, AgentUsage] = field(default_factory=dict)

    def close(self) -> None:
        """Record the state of the candidates, since a later round may score one that has no scores yet."""
        self.hits = tuple(_seen(candidate, candidate.hit.id in self.new) for candidate in self.candidates)

    def traced(self) -> TracedRound:
        """Return the round for the trace."""
        return TracedRound(
            self.number,
            self.conditions.languages,
            self.conditions.query,
            self.hits,
            self.added,
            None if self.decision is None else self.decision.enough,
            None if self.decision is None else self.decision.reason,
            _counted(self.faults),
            dict(self.usage),
        )


def _seen(candidate: Candidate, new: bool) -> TracedHit:
    hit = candidate.hit
    text = hit.text if len(hit.text) <= _SNIPPET else f"{hit.text[:_SNIPPET]}…"
    scores = candidate.scored()
    return TracedHit(hit.id, hit.lang, hit.title, text, hit.score, new, candidate.valid, scores, candidate.error)


def _counted(faults: Sequence[Fault]) -> dict[str, int]:
    return dict(Counter(fault.name for fault in faults))


@dataclass(frozen=True)
class LoopResult:
    """The loop's result for one question: the documents to answer with, best first, and the rounds.

    ``valid`` are all valid documents, best first. ``fallback``: none is valid, so ``shown`` are the best scored ones.
    ``stopped``: ``sufficient``, ``max_rounds``, ``marginal``, ``budget``, or ``planner: <reason>``. ``failures`` are
    calls and searches that failed, after which neither the documents nor their choice can be trusted.
    """

    shown: tuple[Candidate, ...]
    valid: tuple[Candidate, ...]
    rounds: tuple[Round, ...]
    stopped: str
    faults: tuple[Fault, ...] = ()
    fallback: bool = False
    usage: AgentUsage = field(default_factory=AgentUsage)
    failures: tuple[Failure, ...] = ()

    def trace(self) -> Trace:
        """Return the trace of the question."""
        return Trace(
            self.stopped,
            len(self.valid),
            tuple(candidate.hit.id for candidate in self.shown),
            self.fallback,
            _counted(self.faults),
            self.usage,
            tuple(each.traced() for each in self.rounds),
        )
