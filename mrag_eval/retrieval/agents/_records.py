"""Records of the loop for one question: conditions, candidates, rounds, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mrag_eval.core import Hit, estimated_tokens
from mrag_eval.models import Reply
from mrag_eval.prompts import Conversation

CRITERIA = ("relevance", "usefulness", "clarity_specificity", "compatibility")

Role = Literal["planner", "critic", "sufficiency"]
# The handling of a fault in a reply.
Remedy = Literal["rule", "asked again", "kept previous", "unscored", "insufficient", "ended"]
_SNIPPET = 200


@dataclass(frozen=True, slots=True)
class Conditions:
    """Hold the conditions of one round's retrieval: languages of the corpora, and the query."""

    languages: tuple[str, ...]
    query: str


@dataclass(frozen=True, slots=True)
class Critique:
    """Hold the critic's verdict on one document: integers 0 to 5 in the order of :data:`CRITERIA`, and its words."""

    scores: tuple[int, int, int, int]
    text: str = ""

    def total(self, weights: Mapping[str, float]) -> float:
        """Return the weighted sum; by CORAL's weights relevance + 0.5 × (usefulness + specificity + compatibility)."""
        return sum(weights[name] * score for name, score in zip(CRITERIA, self.scores, strict=True))


@dataclass(frozen=True, slots=True)
class Sufficiency:
    """Hold whether the documents are enough to answer, and the reason."""

    enough: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Hold a fault in an agent's reply, and how it was handled."""

    role: Role
    kind: str
    remedy: Remedy

    @property
    def name(self) -> str:
        """Return the name under which faults are counted: ``planner: unknown_language (rule)``."""
        return f"{self.role}: {self.kind} ({self.remedy})"


@dataclass(eq=False)
class Candidate:
    """Hold a retrieved document of one question.

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

    def scored(self) -> dict[str, Any] | None:
        """Return the critic's part for samples."""
        if self.critique is None or self.total is None:
            return None
        scores: dict[str, Any] = dict(zip(CRITERIA, self.critique.scores, strict=True))
        return scores | {"total": self.total, "critique": self.critique.text}


@dataclass
class Usage:
    """Count calls to the agents: conversations (``cached``: those answered from the cache), tokens, seconds."""

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def add(self, conversation: Conversation, replies: Sequence[Reply]) -> None:
        """Count the replies to a conversation; tokens are estimated if the model reported none."""
        for reply in replies:
            if reply.error is not None and not reply.attempts:
                continue
            self.calls += 1
            self.seconds += reply.seconds
            if reply.error is not None:
                continue
            self.cached += reply.cached
            self.tokens_in += (
                sum(estimated_tokens(turn["content"]) for turn in conversation)
                if reply.tokens_in is None
                else reply.tokens_in
            )
            self.tokens_out += (
                estimated_tokens(reply.text) + estimated_tokens(reply.thinking)
                if reply.tokens_out is None
                else reply.tokens_out
            )

    @property
    def tokens(self) -> int:
        """Return tokens in and out."""
        return self.tokens_in + self.tokens_out

    def __iadd__(self, other: Usage) -> Usage:
        self.calls += other.calls
        self.cached += other.cached
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        self.seconds += other.seconds
        return self


@dataclass
class Round:
    """Hold one round of one question. ``candidates``: the documents retrieved; ``new``: ids never retrieved before.

    ``hits`` is their state at the end of the round. ``added`` counts the valid documents that the round added.
    ``decision`` is None if sufficiency was not asked for.
    """

    number: int
    conditions: Conditions
    candidates: list[Candidate] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    hits: list[dict[str, Any]] = field(default_factory=list)
    added: int = 0
    decision: Sufficiency | None = None
    faults: list[Fault] = field(default_factory=list)
    usage: dict[Role, Usage] = field(default_factory=dict)

    def close(self) -> None:
        """Record the state of the candidates, since a later round may score one that has no scores yet."""
        self.hits = [_seen(candidate, candidate.hit.id in self.new) for candidate in self.candidates]

    def as_dict(self) -> dict[str, Any]:
        """Return the round for traces: texts cut to their beginning, empty fields left out."""
        out: dict[str, Any] = {
            "round": self.number,
            "languages": list(self.conditions.languages),
            "query": self.conditions.query,
            "hits": self.hits,
            "added": self.added,
        }
        if self.decision is not None:
            out |= {"enough_documents": self.decision.enough, "reason": self.decision.reason}
        if self.faults:
            out["faults"] = dict(Counter(fault.name for fault in self.faults))
        out["usage"] = {role: asdict(usage) for role, usage in self.usage.items()}
        return out


def _seen(candidate: Candidate, new: bool) -> dict[str, Any]:
    hit = candidate.hit
    text = hit.text if len(hit.text) <= _SNIPPET else f"{hit.text[:_SNIPPET]}…"
    out: dict[str, Any] = {"id": hit.id, "lang": hit.lang, "title": hit.title, "text": text, "score": hit.score}
    out |= {"new": new, "valid": candidate.valid}
    scored = candidate.scored()
    if scored is not None:
        out["critic"] = scored
    if candidate.error is not None:
        out["unscored"] = candidate.error
    return out


@dataclass(frozen=True)
class Outcome:
    """Hold the loop's result for one question: the documents to answer with, best first, and the rounds.

    ``valid`` are all valid documents, best first. ``fallback``: none is valid, so ``shown`` are the best scored ones.
    ``stopped``: ``sufficient``, ``max_rounds``, ``marginal``, ``budget``, or ``planner: <reason>``.
    """

    shown: tuple[Candidate, ...]
    valid: tuple[Candidate, ...]
    rounds: tuple[Round, ...]
    stopped: str
    faults: tuple[Fault, ...] = ()
    fallback: bool = False
    usage: Usage = field(default_factory=Usage)

    def as_dict(self) -> dict[str, Any]:
        """Return the trace of the question."""
        return {
            "stopped": self.stopped,
            "valid": len(self.valid),
            "shown": [candidate.hit.id for candidate in self.shown],
            "fallback": self.fallback,
            "faults": dict(Counter(fault.name for fault in self.faults)),
            "usage": asdict(self.usage),
            "rounds": [each.as_dict() for each in self.rounds],
        }
