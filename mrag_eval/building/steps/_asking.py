"""Concurrent model calls for many items, each settled as soon as its own answers arrive, and the tags in replies."""

from __future__ import annotations

import re
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


# Only the end of a longer reply is parsed, since it contains the answer.
_LONGEST = 100_000


def all_tags(text: str, tag: str) -> list[str]:
    """Return the stripped content of every ``<tag>...</tag>``, in order, without empty ones."""
    text = text[-_LONGEST:]
    pattern = re.compile(
        rf"<\s*{re.escape(tag)}\s*>((?:(?!<\s*(?:/\s*)?{re.escape(tag)}\s*>).)*)<\s*/\s*{re.escape(tag)}\s*>",
        re.IGNORECASE | re.DOTALL,
    )
    return [found for match in pattern.finditer(text) if (found := " ".join(match[1].split()))]


def tagged_pairs(text: str, first: str, second: str) -> list[tuple[str, str]]:
    """Return the contents of each ``<first>`` tag directly followed by a ``<second>`` tag, in order; skip unpaired
    tags.
    """
    text = text[-_LONGEST:]
    first, second = re.escape(first), re.escape(second)
    body = rf"((?:(?!<\s*(?:/\s*)?(?:{first}|{second})\s*>).)*)"
    pattern = re.compile(
        rf"<\s*{first}\s*>{body}<\s*/\s*{first}\s*>\s*<\s*{second}\s*>{body}<\s*/\s*{second}\s*>",
        re.IGNORECASE | re.DOTALL,
    )
    pairs = [(" ".join(match[1].split()), " ".join(match[2].split())) for match in pattern.finditer(text)]
    return [(a, b) for a, b in pairs if a and b]


def one_of_words(reply: str, tag: str, words: tuple[str, ...]) -> Parsed[str]:
    """Return the word in the last ``<tag>``, which must be one of ``words`` (case and punctuation aside)."""
    from mrag_eval.models import parse_tag

    parsed = parse_tag(reply, tag)
    if parsed.value is None:
        return Parsed(None, parsed.error)
    word = parsed.value.strip(" \t\r\n.,;:!*_`'\"").casefold()
    if word in words:
        return Parsed(word)
    return Parsed(None, f"<{tag}> holds {parsed.value!r:.60}, which is none of {', '.join(words)}")
