"""Judgements of a row by a panel, and of each claim of its answer by a panel or a classifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from mrag_eval.core._failures import Failure
from mrag_eval.core._verdicts import YES_NO, Outcome, VerdictScale, VerdictValue
from mrag_eval.platform import OPTIONAL

# What the passages say of a claim.
ClaimVerdict = Literal["supported", "contradicted", "not_found"]
# The same as the scale of a panel.
SUPPORT = VerdictScale("labels", get_args(ClaimVerdict))


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open span of an answer, in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Claim(Span):
    """A sentence of an answer beside the passages shown.

    Attributes:
        verdict: what the passages say of it; None if a panel did not decide.
        support: the classifier's probability of its support, or the share of votes for it, in 0..1.
        passage: the place in the prompt, from 1, of the passage that decided it; None if none did.
        id: that passage's id.
        lang: that passage's language.
        unsupported: the parts of it that nothing supports, by their place in the answer.
        votes: those of a panel, by seat.
    """

    verdict: ClaimVerdict | None
    support: float
    passage: int | None = field(default=None, metadata=OPTIONAL)
    id: str = field(default="", metadata=OPTIONAL)
    lang: str = field(default="", metadata=OPTIONAL)
    unsupported: tuple[Span, ...] = field(default=(), metadata=OPTIONAL)
    votes: Mapping[str, Vote] = field(default_factory=dict, metadata=OPTIONAL)

    @property
    def supported(self) -> bool | None:
        """Return whether the passages support it; None if a panel did not decide."""
        return None if self.verdict is None else self.verdict == "supported"

    @property
    def judgement(self) -> Judgement:
        """Return the panel's judgement of the claim."""
        _, outcome = SUPPORT.vote([vote.verdict for vote in self.votes.values()])
        return Judgement(self.verdict, outcome, self.votes, SUPPORT)


@dataclass(frozen=True, slots=True)
class Grounding:
    """The claims of an answer, and its language: that of the question, unless it is detected in another."""

    lang: str
    claims: tuple[Claim, ...]

    @property
    def supported(self) -> float | None:
        """Return the share of claims that are supported; None without a claim, or if one of them is undecided."""
        if not self.claims or self.undecided:
            return None
        return sum(claim.supported is True for claim in self.claims) / len(self.claims)

    @property
    def undecided(self) -> tuple[Judgement, ...]:
        """Return the judgements that gave their claims no verdict."""
        return tuple(claim.judgement for claim in self.claims if claim.supported is None)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return the failed votes that left a claim without a verdict, each once."""
        failed = (failure for judgement in self.undecided for failure in judgement.failures)
        return tuple(dict.fromkeys(replace(failure, stage="grounding") for failure in failed))


def why_undecided(missing: int, size: int) -> str:
    """Return why a vote decided nothing, from the number of seats without a verdict."""
    if not missing:
        return "unjudged (tie)"
    return f"no majority: {missing} of {size} {'judge' if size == 1 else 'judges'} gave no verdict"


@dataclass(frozen=True, slots=True)
class Vote:
    """One seat's vote on one row, or on a claim of its answer. ``verdict`` is None for an abstention; ``error``
    (``"reason: detail"``) is its cause. ``passage`` is the place of the passage that decides a claim, from 1.
    ``reply`` is what the seat replied last, from which the vote can be read again; None if nothing came.
    """

    verdict: VerdictValue | None
    justification: str = ""
    error: str | None = None
    passage: int | None = field(default=None, metadata=OPTIONAL)
    reply: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def reason(self) -> str | None:
        """Return the reason of an abstention; abstentions are counted by it."""
        return None if self.error is None else self.error.split(":", 1)[0]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The panel's judgement of one row on a ``scale``; ``verdict`` is None if the row is not judged."""

    verdict: VerdictValue | None
    outcome: Outcome
    votes: Mapping[str, Vote] = field(default_factory=dict)
    scale: VerdictScale = YES_NO

    @property
    def value(self) -> float | None:
        """Return the verdict between 0 and 1; None without one, and for a label."""
        return None if self.verdict is None else self.scale.value(self.verdict)

    @property
    def why_unjudged(self) -> str:
        """Return the reason for a missing verdict, with few distinct values, so that rows can be counted by it."""
        return why_undecided(sum(vote.verdict is None for vote in self.votes.values()), len(self.votes))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return the failed votes that left the row without a verdict; none if the others decided."""
        failed = {seat: vote.error for seat, vote in self.votes.items() if vote.error is not None}
        if self.outcome != "unjudged":
            return ()
        return tuple(Failure.of("judge", seat, error) for seat, error in failed.items())

    @property
    def disagreement(self) -> float | None:
        """Return the share of the cast votes that went against the most frequent one; None without a vote."""
        cast = Counter(vote.verdict for vote in self.votes.values() if vote.verdict is not None)
        return (cast.total() - max(cast.values())) / cast.total() if cast else None
