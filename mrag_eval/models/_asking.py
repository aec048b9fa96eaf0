"""Concurrent calls to a panel, and a second attempt for replies that cannot be parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mrag_eval.models._model import AuxModel, OnReply
from mrag_eval.models._replies import Parser
from mrag_eval.models._reply import Reply
from mrag_eval.platform import at_once
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
    model: AuxModel,
    conversations: Sequence[Conversation],
    parse: Parsers[T],
    *,
    seat: str = "",
    on_reply: OnReply | None = None,
    final: Callable[[int, Reply], bool] = lambda position, reply: False,
    **settings: Any,
) -> list[Answered[T]]:
    """Return one parsed reply per conversation, in order.

    A reply that cannot be parsed, or was cut off at its length, is returned once to the model with the fault, unless it
    is ``final``; if the second cannot be read either, the seat abstains. Failed calls are not retried here, since the
    transport did so.
    """
    parsers = [parse] * len(conversations) if callable(parse) else list(parse)
    if len(parsers) != len(conversations):
        raise ValueError(f"{len(parsers)} parsers for {len(conversations)} conversations")
    replies = model.generate(conversations, seat=seat, on_reply=on_reply, **settings)
    answered = [_read(reply, parser) for reply, parser in zip(replies, parsers, strict=True)]
    unread = [i for i, a in enumerate(answered) if a.reason == "unreadable" and not final(i, replies[i])]
    again = [_retry_conversation(conversations[i], replies[i], answered[i].error or "") for i in unread]
    for i, reply in zip(unread, model.generate(again, seat=seat, **settings), strict=True):
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


def generate_all(
    asked: Mapping[str, tuple[AuxModel, Sequence[Conversation]]], **settings: Any
) -> dict[str, list[Reply]]:
    """Call several models (a panel) concurrently: ``{seat: (model, conversations)}`` to ``{seat: replies}``.

    Each has its own calls in flight; seats that share one model object share them, or take turns at a local one.
    """

    def call(seat: str) -> Callable[[], list[Reply]]:
        model, conversations = asked[seat]
        return lambda: model.generate(conversations, seat=seat, **settings)

    return at_once({seat: call(seat) for seat in asked})
