"""Why a stage of a row gave no answer: failures, and outcomes that are the model's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from mrag_eval.platform import OPTIONAL

# The stages at which a model, or a service, is asked for something.
Stage = Literal[
    "answer", "system", "plan", "critique", "translation", "rerank", "search", "grounding", "judge", "label"
]
STAGES: tuple[Stage, ...] = get_args(Stage)
# What a translator is given, by the names of its counts.
TextKind = Literal["queries", "documents", "answers"]
# The steps of a row, each with those directly before it: the stages, translations by what is translated. A critic's
# choice is part of what a search finds, and what a judge reads depends on the metric. A RAG system that is asked as it
# is gives passages and answer in one.
BEFORE: Mapping[str, Sequence[str]] = {
    "system": (),
    "plan": (),
    "critique": ("plan",),
    "translation of queries": (),
    "search": ("system", "plan", "critique", "translation of queries"),
    "rerank": ("search",),
    "translation of documents": ("rerank",),
    "answer": ("translation of documents",),
    "translation of answers": ("answer",),
    "grounding": ("answer",),
    "judge": (),
    "label": ("search",),
}
# Outcomes of the evaluated model that leave no answer to read: it is wrong, and they are counted by these names.
OUTCOMES = ("refusal", "thinking cut", "empty")
# What became of a request for a reply: one came, or as much of it as the limit of tokens let through; the provider said
# that it is none to read; or none came.
REPLIED, CUT_OFF, FAILED, NOT_ASKED = "replied", "cut off", "failed", "not asked"
FATES = (REPLIED, CUT_OFF, *OUTCOMES, FAILED, NOT_ASKED)


@dataclass(frozen=True, slots=True)
class Failure:
    """A stage of one row that gave nothing to work with, through no choice of the evaluated model.

    Attributes:
        stage: where it happened.
        model: the name of the model or service that was asked.
        reason: the kind of failure, of few distinct values; failures are counted by it.
        detail: the words of the fault, without keys.
        texts: what was to be translated; None at any other stage.
    """

    stage: Stage
    model: str
    reason: str
    detail: str = field(default="", metadata=OPTIONAL)
    texts: TextKind | None = field(default=None, metadata=OPTIONAL)

    @classmethod
    def of(cls, stage: Stage, model: str, error: str, texts: TextKind | None = None) -> Failure:
        """Return the failure behind an error of the form ``reason: detail``."""
        reason, _, detail = error.partition(":")
        return cls(stage, model, reason, detail.strip(), texts)

    @property
    def step(self) -> str:
        """Return the step of :data:`BEFORE`; a translation of unknown texts may have been that of the query."""
        return f"translation of {self.texts or 'queries'}" if self.stage == "translation" else self.stage

    @property
    def why(self) -> str:
        """Return the reason for which a score is missing, with few distinct values."""
        return f"{self.step} failed ({self.reason})"


def failed_in(failures: Iterable[Failure], steps: Collection[str]) -> Failure | None:
    """Return the first of the failures at one of the steps; None without one."""
    return next((failure for failure in failures if failure.step in steps), None)


def way_to(*steps: str) -> frozenset[str]:
    """Return the steps and every step before them."""
    return frozenset(steps).union(*(way_to(*BEFORE[step]) for step in steps))


class ModelReply(str):
    """The evaluated model's reply: its text, and what the provider said of it.

    Attributes:
        failure: why there is no reply; None if there is one.
        outcome: one of :data:`OUTCOMES` if the model gave no answer to read, else None.
        cut_off: whether the provider says that it ended at its limit of tokens.
        asked: whether the model was asked at all.
        contexts: what a RAG system made the answer from, best first; None for a model.
    """

    failure: Failure | None = None
    outcome: str | None = None
    cut_off: bool = False
    asked: bool = True
    contexts: Sequence[Mapping[str, Any]] | None = None

    @property
    def fate(self) -> str:
        """Return what became of the request, one of :data:`FATES`."""
        if self.failure is not None:
            return FAILED
        return NOT_ASKED if not self.asked else self.outcome or (CUT_OFF if self.cut_off else REPLIED)

    @property
    def came(self) -> bool:
        """Return whether there is a reply, be it an empty one."""
        return self.failure is None and self.asked

    @classmethod
    def of(cls, text: str, fate: str, failure: Failure) -> ModelReply:
        """Return the reply of a :attr:`fate`; ``failure`` is why a call failed, if it did."""
        if fate == FAILED:
            return cls.failed(failure)
        if fate == NOT_ASKED:
            return cls.not_asked()
        reply = cls(text)
        reply.outcome, reply.cut_off = fate if fate in OUTCOMES else None, fate == CUT_OFF
        return reply

    @classmethod
    def not_asked(cls) -> ModelReply:
        """Return the empty reply to a request that was not sent, as its answer would not be scored."""
        reply = cls("")
        reply.asked = False
        return reply

    @classmethod
    def failed(cls, failure: Failure) -> ModelReply:
        """Return the empty reply of a call that failed."""
        reply = cls("")
        reply.failure = failure
        return reply

    def with_text(self, text: str) -> ModelReply:
        """Return the reply with another text, such as a filter makes of it."""
        reply = ModelReply(text)
        vars(reply).update(vars(self))
        return reply
