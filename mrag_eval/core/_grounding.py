"""Claims of an answer, and what a classifier or a panel says of each beside the passages shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from mrag_eval.core._failures import Failure
from mrag_eval.core._judgements import Judgement, Vote
from mrag_eval.core._verdicts import VerdictScale
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
