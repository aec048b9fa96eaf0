"""What a classifier finds of an answer beside the passages shown: its claims, each with a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mrag_eval.platform import OPTIONAL

# What the passages say of a claim.
ClaimVerdict = Literal["supported", "contradicted", "not_found"]


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open span of an answer, in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Claim(Span):
    """A sentence of an answer beside the passages shown.

    Attributes:
        verdict: what the passages say of it.
        support: the classifier's probability of its support, in 0..1.
        passage: the place in the prompt, from 1, of the passage that decided it; None if none did.
        id: that passage's id.
        lang: that passage's language.
        unsupported: the parts of it that nothing supports, by their place in the answer.
    """

    verdict: ClaimVerdict
    support: float
    passage: int | None = field(default=None, metadata=OPTIONAL)
    id: str = field(default="", metadata=OPTIONAL)
    lang: str = field(default="", metadata=OPTIONAL)
    unsupported: tuple[Span, ...] = field(default=(), metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Grounding:
    """The claims of an answer, and its language: that of the question, unless it is detected in another."""

    lang: str
    claims: tuple[Claim, ...]

    @property
    def supported(self) -> float | None:
        """Return the share of claims that are supported; None without a claim."""
        return sum(claim.verdict == "supported" for claim in self.claims) / len(self.claims) if self.claims else None
