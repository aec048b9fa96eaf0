"""What happened at a stage of a row other than an answer: failures, and outcomes that are the model's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from mrag_eval.core._json_records import OPTIONAL

# The stages at which a model, or a service, is asked for something.
Stage = Literal["answer", "plan", "critique", "translation", "rerank", "search", "judge", "label"]
STAGES: tuple[Stage, ...] = get_args(Stage)
# Outcomes of the evaluated model that leave no answer to read: it is wrong, and they are counted by these names.
OUTCOMES = ("refusal", "thinking cut", "empty")


@dataclass(frozen=True, slots=True)
class Failure:
    """A stage of one row that gave nothing to work with, through no choice of the evaluated model.

    Attributes:
        stage: where it happened.
        model: the name of the model or service that was asked.
        reason: the kind of failure, of few distinct values; failures are counted by it.
        detail: the words of the fault, without keys.
    """

    stage: Stage
    model: str
    reason: str
    detail: str = field(default="", metadata=OPTIONAL)

    @classmethod
    def of(cls, stage: Stage, model: str, error: str) -> Failure:
        """Return the failure behind an error of the form ``reason: detail``."""
        reason, _, detail = error.partition(": ")
        return cls(stage, model, reason, detail)

    @property
    def why(self) -> str:
        """Return the reason for which a score is missing, with few distinct values."""
        return f"{self.stage} failed ({self.reason})"


class ModelReply(str):
    """The evaluated model's reply: its text, and what the provider said of it.

    Attributes:
        failure: why there is no reply; None if there is one.
        outcome: one of :data:`OUTCOMES` if the model gave no answer to read, else None.
        finish_reason: the provider's word for the end of the reply, None if it gave none.
        answered_by: the model that the reply names, None if it names none.
    """

    failure: Failure | None = None
    outcome: str | None = None
    finish_reason: str | None = None
    answered_by: str | None = None

    @classmethod
    def failed(cls, failure: Failure) -> ModelReply:
        """Return the empty reply of a call that failed."""
        reply = cls("")
        reply.failure = failure
        return reply
