"""Concurrent model calls for many items; every item is settled as soon as its own answers arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mrag_eval.building.steps._records import Drop, Outcome, R, Settle, attempted
from mrag_eval.models import Answered, AuxModel, Parsed, Parser, Reply, asked_args, generate_parsed
from mrag_eval.prompts import Conversation

T = TypeVar("T")

# Number of items whose conversations are in memory at a time; the slots run empty once between two batches.
_AT_A_TIME = 4096
# Separates a fault's kind, which drops are counted by, from its description, which the model is shown.
_JOINT = " — "


@dataclass(frozen=True)
class Ask(Generic[T]):
    """One question to a model, and the parser of its reply."""

    conversation: Conversation
    read: Parser[T]


def fault(kind: str, what: str) -> Parsed[Any]:
    """Return a reply that breaks a rule: the model is shown ``what`` once, and then the item is dropped as ``kind``."""
    return Parsed(None, f"{kind}{_JOINT}{what}")


def ask_items(
    model: AuxModel,
    items: Sequence[R],
    asks: Callable[[R], Sequence[Ask[T]]],
    make: Callable[[R, list[T]], Outcome],
    settle: Settle,
    *,
    seat: str,
) -> None:
    """Ask as :func:`ask_each` does, about items that need all of their answers: one that lacks an answer is dropped."""

    def whole(item: R, answers: list[Answered[T]]) -> Outcome:
        lost = failure(answers)
        found = [answer.value for answer in answers if answer.value is not None]
        return Outcome(drops=(lost,)) if lost is not None else make(item, found)

    ask_each(model, items, asks, whole, settle, seat=seat)


def ask_each(
    model: AuxModel,
    items: Sequence[R],
    asks: Callable[[R], Sequence[Ask[T]]],
    make: Callable[[R, list[Answered[T]]], Outcome],
    settle: Settle,
    *,
    seat: str,
) -> None:
    """Ask a model the questions ``asks(item)`` of all items concurrently, and settle each item by ``make``.

    ``make`` receives the answers of one item in the order of its questions, as soon as all have arrived; it must be
    quick and call no model. If it or ``asks`` raises, the item is dropped with the error. A reply that cannot be
    parsed, or breaks a rule, is returned to the model once with the fault.
    """
    for start in range(0, len(items), _AT_A_TIME):
        _ask_batch(model, items[start : start + _AT_A_TIME], asks, make, settle, seat)


def _ask_batch(
    model: AuxModel,
    items: Sequence[R],
    asks: Callable[[R], Sequence[Ask[T]]],
    make: Callable[[R, list[Answered[T]]], Outcome],
    settle: Settle,
    seat: str,
) -> None:
    waiting: list[tuple[int, int]] = []
    conversations: list[Conversation] = []
    parsers: list[Parser[T]] = []
    answers: list[list[Answered[T] | None]] = []
    for number, item in enumerate(items):
        asked: list[Ask[T]] = []
        outcome = attempted(lambda item=item, asked=asked: _filled(asked, asks(item)))
        answers.append([None] * len(asked))
        if outcome.drops or not asked:
            settle(item.id, outcome if outcome.drops else attempted(make, item, []))
            continue
        for place, ask in enumerate(asked):
            waiting.append((number, place))
            conversations.append(ask.conversation)
            parsers.append(ask.read)

    def take(position: int, answer: Answered[T]) -> None:
        number, place = waiting[position]
        if answers[number][place] is not None:
            return
        answers[number][place] = answer
        found = [given for given in answers[number] if given is not None]
        if len(found) == len(answers[number]):
            settle(items[number].id, attempted(make, items[number], found))

    def early(position: int, reply: Reply) -> None:
        if reply.error is None:
            parsed = parsers[position](reply.text)
            if parsed.error is None:
                take(position, Answered(parsed.value, None, (reply,)))

    answered = generate_parsed(model.seat(seat), conversations, parsers, on_reply=early)
    for position, answer in enumerate(answered):
        take(position, answer)


def _filled(asked: list[Ask[T]], found: Sequence[Ask[T]]) -> Outcome:
    asked.extend(found)
    return Outcome()


def failure(answers: Sequence[Answered[Any]]) -> Drop | None:
    """Return the drop for the first missing answer; None if all are present.

    A failed call may succeed next time; a reply that could not be parsed, or broke a rule twice, will not.
    """
    for answer in answers:
        if answer.error is not None:
            if answer.reason != "unreadable":
                return Drop(f"call failed: {answer.reason}", answer.error, passing=True)
            kind, joint, what = answer.error.removeprefix("unreadable: ").partition(_JOINT)
            return Drop(kind, what) if joint else Drop("unreadable reply", kind)
    return None


def model_identity(model: AuxModel) -> dict[str, Any]:
    """Return everything that affects a model's answers, for a step's settings."""
    return model.seat().identity


def shown_model(model: AuxModel) -> dict[str, Any]:
    """Return a model's description for a datasheet."""
    return {"name": model.name, "model": model.spec.model, "model_args": asked_args(model.spec)}
