"""Parsed replies, and a second attempt where one cannot be parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mrag_eval.models._replies import Parser
from mrag_eval.models._reply import Reply
from mrag_eval.models._seat import OnReply, Seat
from mrag_eval.prompts import Conversation

T = TypeVar("T")

# One parser for all conversations, or one for each.
Parsers = Parser[T] | Sequence[Parser[T]]


@dataclass(frozen=True)
class Answered(Generic[T]):
    """Result of one conversation: ``value``, or None and the ``error`` for which the seat abstains.

    ``error`` begins with the reason: that of the failed call, or ``unreadable``. ``replies`` holds the reply, and the
    second one if the model was asked again.
    """

    value: T | None
    error: str | None
    replies: tuple[Reply, ...]

    @property
    def reason(self) -> str | None:
        """Return the reason of a failure; abstentions are counted by it."""
        return None if self.error is None else self.error.split(":", 1)[0]


def generate_parsed(
    seat: Seat,
    conversations: Sequence[Conversation],
    parse: Parsers[T],
    *,
    round: int | None = None,
    on_reply: OnReply | None = None,
    final: Callable[[int, Reply], bool] = lambda position, reply: False,
    waiting: str | None = "",
) -> list[Answered[T]]:
    """Return one parsed reply per conversation, in order.

    A reply that cannot be parsed, or was cut off at its length, is returned once to the seat with the fault, unless it
    is ``final``; if the second cannot be read either, the seat abstains. Failed calls are not retried here, since the
    transport did so.
    """
    parsers = [parse] * len(conversations) if callable(parse) else list(parse)
    if len(parsers) != len(conversations):
        raise ValueError(f"{len(parsers)} parsers for {len(conversations)} conversations")
    replies = seat.generate(conversations, round=round, on_reply=on_reply, waiting=waiting)
    answered = [_read(reply, parser) for reply, parser in zip(replies, parsers, strict=True)]
    unread = [i for i, a in enumerate(answered) if a.reason == "unreadable" and not final(i, replies[i])]
    again = [_retry_conversation(conversations[i], replies[i], answered[i].error or "") for i in unread]
    for i, reply in zip(unread, seat.generate(again, round=round, waiting=waiting), strict=True):
        second = _read(reply, parsers[i])
        answered[i] = Answered(second.value, second.error, (replies[i], reply))
    return answered


def _read(reply: Reply, parser: Parser[T]) -> Answered[T]:
    if reply.error is not None:
        return Answered(None, reply.error, (reply,))
    parsed = parser(reply.text)
    if reply.cut_off:
        # what counts is said last
        found = "" if parsed.error is None else f": {parsed.error}"
        return Answered(None, f"unreadable: it was cut off at max_tokens{found}", (reply,))
    if parsed.error is not None:
        return Answered(None, f"unreadable: {parsed.error}", (reply,))
    return Answered(parsed.value, None, (reply,))


def _retry_conversation(conversation: Conversation, reply: Reply, error: str) -> Conversation:
    wrong = error.removeprefix("unreadable: ")
    request = (
        f"Your reply could not be read: {wrong}. Give your answer again, complete, in exactly the format that was "
        "asked for, and nothing besides."
    )
    return [*conversation, {"role": "assistant", "content": reply.text}, {"role": "user", "content": request}]
