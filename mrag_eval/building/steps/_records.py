"""Input and output of a construction step: records, and dropped items with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from mrag_eval.platform import OPTIONAL


class Record(Protocol):
    """What a step hands to the next: a dataclass, with an id that is unique in its step."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Drop:
    """The reason why an item, or part of it, was dropped. Drops are counted by ``reason``, so it has few distinct
    values.

    ``passing`` marks a temporary cause (a failed call): the item is tried again when the pipeline is run again.
    """

    reason: str
    detail: str = field(default="", metadata=OPTIONAL)
    passing: bool = field(default=False, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one item in a step: ``made`` is handed to the next step, ``drops`` are counted; both may be empty."""

    made: Sequence[Record] = ()
    drops: Sequence[Drop] = ()


def kept(*records: Record) -> Outcome:
    """Return the outcome of an item that goes on, as these records."""
    return Outcome(made=records)


def dropped(reason: str, detail: str = "", *, passing: bool = False) -> Outcome:
    """Return the outcome of an item that is dropped."""
    return Outcome(drops=(Drop(reason, detail, passing),))


# Receives the outcome of each item once, in any order and from any thread.
Settle = Callable[[str, Outcome], None]


def each(items: Sequence[R], make: Callable[[R], Outcome], settle: Settle) -> None:
    """Settle every item with ``make``; drop one that raises, with the error."""
    for item in items:
        settle(item.id, attempted(make, item))


def attempted(make: Callable[..., Outcome], *arguments: Any) -> Outcome:
    """Return ``make(*arguments)``, or a drop for an exception, since one item must not stop the others.

    Our own errors (a wrong setting, a missing file) concern every item, and are raised.
    """
    from mrag_eval.platform import MragError

    try:
        return make(*arguments)
    except (MragError, MemoryError):
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        return dropped("error", f"{type(error).__name__}: {first}"[:300])
