"""What a construction step takes and gives: records, and items that come to nothing, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A JSON object with a text under ``id``, unique in its step.
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Drop:
    """Why an item, or part of it, goes no further. ``reason``: in few different words, by which drops are counted.

    ``passing``: the cause may be gone next time (a call that failed), so the item is tried again when the pipeline is
    run again.
    """

    reason: str
    detail: str = ""
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step made of one item: ``made`` goes on to the next step, ``drops`` are counted; both may be empty."""

    made: Sequence[Record] = ()
    drops: Sequence[Drop] = ()


def kept(*records: Record) -> Outcome:
    """The outcome of an item that goes on, as these records."""
    return Outcome(made=records)


def dropped(reason: str, detail: str = "", *, passing: bool = False) -> Outcome:
    """The outcome of an item that goes no further."""
    return Outcome(drops=(Drop(reason, detail, passing),))


# Told what became of an item, once each, in any order and from any thread.
Settle = Callable[[str, Outcome], None]


def each(items: Sequence[Record], make: Callable[[Record], Outcome], settle: Settle) -> None:
    """Settle every item by a function of its own; one that raises is dropped with the error."""
    for item in items:
        settle(str(item["id"]), attempted(make, item))


def attempted(make: Callable[..., Outcome], *arguments: Any) -> Outcome:
    """``make(*arguments)``; an exception becomes a drop, since one item must not take the others down.

    Errors of ours (a wrong setting, a missing file) concern every item, and pass.
    """
    from mrag_eval.core import MragError

    try:
        return make(*arguments)
    except (MragError, MemoryError):
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        return dropped("error", f"{type(error).__name__}: {first}"[:300])
