"""Asking a model about many items at once; every item is settled as soon as its own answers are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mrag_eval.building.steps._records import Drop, Outcome, Record, Settle, attempted
from mrag_eval.models import Answered, AuxModel, Parsed, Parser, Reply, asked_args, generate_parsed, identity
from mrag_eval.prompts import Conversation

T = TypeVar("T")

# Items whose conversations are in memory at a time; between two such batches the slots run empty once.
_AT_A_TIME = 4096
# Between a fault's kind, by which drops are counted, and what is wrong in words, which the model is told.
_JOINT = " — "


@dataclass(frozen=True)
class Ask(Generic[T]):
    """One question to a model, and the reader of its reply."""

    conversation: Conversation
    read: Parser[T]


def fault(kind: str, what: str) -> Parsed[Any]:
    """A reply that breaks a rule: the model is told ``what`` once, and the item is dropped as ``kind`` after that."""
    return Parsed(None, f"{kind}{_JOINT}{what}")


def ask_items(
    model: AuxModel,
    items: Sequence[Record],
    asks: Callable[[Record], Sequence[Ask[T]]],
    make: Callable[[Record, list[Answered[T]]], Outcome],
    settle: Settle,
    *,
    seat: str,
    **settings: Any,
) -> None:
    """Put the questions ``asks(item)`` of all items to a model at once, and settle each item by ``make``.

    ``make`` gets the answers of one item in the order of its questions, as soon as they are all there; it must be
    quick and ask no model. Where it, or ``asks``, raises, the item is dropped with the error. A reply that cannot be
    read, or breaks a rule, goes back once with what is wrong.
    """
    for start in range(0, len(items), _AT_A_TIME):
        _ask_batch(model, items[start : start + _AT_A_TIME], asks, make, settle, seat, settings)


def _ask_batch(
    model: AuxModel,
    items: Sequence[Record],
    asks: Callable[[Record], Sequence[Ask[T]]],
    make: Callable[[Record, list[Answered[T]]], Outcome],
    settle: Settle,
    seat: str,
    settings: Mapping[str, Any],
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
            settle(str(item["id"]), outcome if outcome.drops else attempted(make, item, []))
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
            settle(str(items[number]["id"]), attempted(make, items[number], found))

    def early(position: int, reply: Reply) -> None:
        if reply.error is None:
            parsed = parsers[position](reply.text)
            if parsed.error is None:
                take(position, Answered(parsed.value, None, (reply,)))

    answered = generate_parsed(model, conversations, parsers, seat=seat, on_reply=early, **settings)
    for position, answer in enumerate(answered):
        take(position, answer)


def _filled(asked: list[Ask[T]], found: Sequence[Ask[T]]) -> Outcome:
    asked.extend(found)
    return Outcome()


def failure(answers: Sequence[Answered[Any]]) -> Drop | None:
    """The drop for the first answer that is missing; None where all are there.

    A call that failed may go well next time; a reply that could not be read, or broke a rule twice, will not.
    """
    for answer in answers:
        if answer.error is not None:
            if answer.reason != "unreadable":
                return Drop(f"call failed: {answer.reason}", answer.error, passing=True)
            kind, joint, what = answer.error.removeprefix("unreadable: ").partition(_JOINT)
            return Drop(kind, what) if joint else Drop("unreadable reply", kind)
    return None


def model_identity(model: AuxModel) -> dict[str, Any]:
    """What decides a model's answers, for a step's settings."""
    return {**identity(model.spec), "generation": model.spec.generation.model_dump(mode="json")}


def shown_model(model: AuxModel) -> dict[str, Any]:
    """A model as a datasheet names it."""
    return {"name": model.name, "model": model.spec.model, "model_args": asked_args(model.spec)}
