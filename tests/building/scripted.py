"""A scripted in-process model that reports every answer as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mrag_eval.config import Generation, ModelSpec
from mrag_eval.models import AuxModel, Reply, Seat
from mrag_eval.prompts import Conversation

# Maps the last message of a conversation to a reply, or to the error of a failed call.
Script = Callable[[str], "str | Reply"]


class ScriptedModel(AuxModel):
    """A stand-in for an AuxModel; ``asked`` collects the last message of every conversation.

    With ``whole``, the script receives the conversation instead of its last message.
    """

    def __init__(self, script: Callable[[Any], str | Reply], name: str = "scripted", *, whole: bool = False) -> None:
        super().__init__(ModelSpec(model="dummy", model_args={"model": name}), name=name)
        self.script, self._whole = script, whole
        self.asked: list[str] = []

    def check(self) -> None:
        pass

    def answer(
        self,
        seat: Seat,
        conversations: Sequence[Conversation],
        decoding: Generation,
        purpose: str,
        on_reply: Any,
        waiting: str | None,
    ) -> list[Reply]:
        replies = []
        for position, conversation in enumerate(conversations):
            self.asked.append(conversation[-1]["content"])
            answer = self.script(conversation if self._whole else conversation[-1]["content"])
            reply = answer if isinstance(answer, Reply) else Reply(answer, tokens_in=10, tokens_out=5)
            self.ledger.add(reply)
            self.came_back.add(reply)
            replies.append(reply)
            if on_reply is not None:
                on_reply(position, reply)
        return replies


def failed(reason: str = "timeout") -> Reply:
    return Reply("", error=f"{reason}: nothing came")
