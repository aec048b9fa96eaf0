"""Seats: a model in a role, with everything that decides its replies. Only a seat can be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mrag_eval.config import Generation
from mrag_eval.models._reply import Reply
from mrag_eval.prompts import Conversation

if TYPE_CHECKING:
    from mrag_eval.models._model import AuxModel

# Receives every answer as it arrives: position in the batch, answer.
OnReply = Callable[[int, Reply], None]


@dataclass
class CameBack:
    """What came back from a seat, sent now or kept from an earlier run, and not taken yet: outcome, never identity.

    Attributes:
        answered_by: the models that responses named, with the number of replies.
        ends: the provider's words for the end of replies, with the number of replies.
        tokens_in: tokens of prompts, as far as reported.
        tokens_out: tokens of replies, as far as reported.
    """

    answered_by: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, reply: Reply) -> None:
        """Count one reply."""
        self.answered_by.update(filter(None, [reply.answered_by]))
        self.ends.update(filter(None, [reply.finish_reason]))
        self.tokens_in += reply.tokens_in or 0
        self.tokens_out += reply.tokens_out or 0

    def take(self) -> dict[str, Any]:
        """Return the counts in their JSON form for results files, and count anew."""
        found = {**vars(self), "answered_by": dict(self.answered_by), "ends": dict(self.ends)}
        vars(self).update(vars(CameBack()))
        return found


@dataclass(frozen=True, eq=False)
class Seat:
    """A model in a role, resolved before anything is asked; made by :meth:`mrag_eval.models.AuxModel.seat`.

    Attributes:
        role: what it is asked as. Equal prompts of two roles are sent separately.
        model: the model that replies.
        decoding: the settings of each request.
        prompts: the SHA-256 of each template that it is asked with, by name.
        rounds: whether it is asked in rounds.
        came_back: counts of what came back.
        sent: the same of what was sent for, without what was kept.
    """

    role: str
    model: AuxModel
    decoding: Generation
    prompts: Mapping[str, str] = field(default_factory=dict)
    rounds: bool = False
    came_back: CameBack = field(default_factory=CameBack)
    sent: CameBack = field(default_factory=CameBack)

    def take(self, *, sent: bool = False) -> dict[str, Any]:
        """Return what came back since this was asked last, or of that only what was ``sent`` for; count anew."""
        whole, alone = self.came_back.take(), self.sent.take()
        return alone if sent else whole

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.model.name

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return the record of the seat: everything that decides its replies, the same on any machine.

        ``generation`` holds the settings under the names that the requests have for them.
        """
        found = self.model.identity(self.decoding)
        return {**found, "prompts": dict(self.prompts)} if self.prompts else found

    def generate(
        self,
        conversations: Sequence[Conversation],
        *,
        round: int | None = None,
        on_reply: OnReply | None = None,
        waiting: str | None = "",
    ) -> list[Reply]:
        """Return one reply per conversation, in order. Failures are replies with an ``error``; they do not raise.

        May be called from anywhere, even inside a running event loop.

        Args:
            conversations: messages ``{"role", "content"}`` each; equal ones are sent once.
            round: of a seat that is asked in ``rounds``, the number of this one, from 1. Each has a seed of its own, if
                the seat has a seed, and its replies are kept apart.
            on_reply: called with ``(position, reply)`` as answers arrive, in any order, from the sending thread; it
                must be quick and call no model.
            waiting: the name of the wait for the answers, by default the model and the role; None shows nothing.

        Raises TypeError for a round of a seat that has none, and the reverse.
        """
        if (round is not None) is not self.rounds:
            raise TypeError(f"{self.role or self.name}: round={round}, and rounds={self.rounds}")
        decoding, purpose = self.decoding, self.role
        if round is not None:
            purpose = f"{self.role} {round}"
            if decoding.seed is not None:
                decoding = decoding.model_copy(update={"seed": decoding.seed + round - 1})
        return self.model.answer(self, conversations, decoding, purpose, on_reply, waiting)
