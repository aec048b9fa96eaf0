"""What tasks need on this machine, and what a run of them costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mrag_eval.platform import MragError

# Roles in which no model is called: a retriever of the user's, passages to embed, pairs to rerank.
RETRIEVER, EMBEDDER, PAIRS = "retriever", "embedding", "reranking"


# The topic of what a run refuses a task for as it builds it.
ROWS = "tasks"
_UNIT = {RETRIEVER: "calls", EMBEDDER: "passages", PAIRS: "pairs"}


class MissingError(MragError):
    """Something that the tasks of a run need is not on this machine."""


@dataclass(frozen=True)
class Need:
    """One thing that tasks need, or that any run may need, and whether it is there.

    ``fix`` is the command or line that provides it, which ``takes`` so much; ``instead`` is another way, if there is
    one. The tasks do not run without a ``needed`` one; any other is optional. ``comes`` marks what is fetched on first
    use. ``tasks`` are the names that it is needed for, ``megabytes`` the approximate size of what is fetched.
    """

    topic: str
    what: str
    ok: bool
    fix: str = ""
    needed: bool = False
    instead: str = ""
    comes: bool = False
    takes: str = ""
    tasks: tuple[str, ...] = ()
    megabytes: float | None = None

    @property
    def blocks(self) -> bool:
        """Return whether the tasks cannot run because of it."""
        return self.needed and not self.ok and not self.comes

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


@dataclass(frozen=True)
class Cost:
    """The calls of one model in one role, and their tokens.

    ``basis`` says what the numbers are: ``exact``, ``at most`` (between ``least`` and ``calls``), or ``pilot`` (scaled
    from rows that ran). Tokens are approximate in any case. ``money`` is None without a price. ``hours`` are the fewest
    and the most of what runs on this machine: on a GPU, and on a core.
    """

    role: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    basis: str = "exact"
    money: float | None = None
    least: int = 0
    hours: tuple[float, float] | None = None

    @property
    def of_model(self) -> bool:
        """Return whether a model is called, rather than a retriever of the user's, an embedder or a reranker here."""
        return self.role not in _UNIT

    @property
    def counted(self) -> str:
        """Return the count with its unit: ``200 to 300 calls``."""
        return f"{_range(self.least, self.calls, self.basis)} {_UNIT.get(self.role, 'calls')}"


@dataclass(frozen=True)
class Plan:
    """Everything that tasks need, and what they cost.

    ``rows`` is None if their number is unknown for some tasks, which are ``uncounted``; ``read`` says that all of them
    were counted where they lie. ``hours`` are known from a pilot alone. ``free`` are the gigabytes left on the disk of
    ``folder``, which holds the cache.
    """

    asked: tuple[str, ...]
    tasks: tuple[str, ...]
    rows: int | None
    needs: tuple[Need, ...]
    costs: tuple[Cost, ...]
    uncounted: tuple[str, ...] = ()
    hours: float | None = None
    free: float = 0.0
    folder: str = ""
    read: bool = False

    @property
    def missing(self) -> list[Need]:
        """Return what is needed and not there."""
        return [need for need in self.needs if need.blocks]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "ready": not self.missing}

    @property
    def line(self) -> str:
        """Return one line on the calls to models other than the evaluated one; empty if there are none."""
        others = [cost for cost in self.costs if cost.role not in ("evaluated", EMBEDDER, PAIRS)]
        if not others:
            return ""
        least, most = sum(cost.least for cost in others), sum(cost.calls for cost in others)
        tokens = sum(cost.tokens_in + cost.tokens_out for cost in others)
        roles = ", ".join(dict.fromkeys(f"{cost.role} {cost.model}" for cost in others))
        return f"{_range(least, most)} calls, ~{tokens:,} tokens, to {roles}"

    def check(self) -> None:
        """Raise MissingError that lists everything that is missing, each with what provides it."""
        # a task that cannot be built says so itself, next
        missing = [need for need in self.missing if need.topic != ROWS]
        if not missing:
            return
        if len(missing) == 1:
            (need,) = missing
            # the evaluated model is not a matter of the tasks
            several = len(need.tasks) != 1
            named = f"{len(need.tasks)} tasks ({_few(need.tasks, 2)})" if several else f"task {need.tasks[0]}"
            message, lines = f"{named}: {need.what}" if need.tasks else need.what, ways(need)
        else:
            message, lines = f"{len(missing)} things are missing for {_few(self.asked)}", _lines(missing)
            lines.append(f"mrag-eval plan --tasks {','.join(self.asked)}   shows optional ones too, and the costs")
        raise MissingError(message, "\n    ".join(lines))


def _range(least: int, most: int, basis: str = "") -> str:
    if basis == "pilot":
        return f"~{most:,}"
    if least == most:
        return f"{most:,}"
    return f"{least:,} to {most:,}" if least else f"at most {most:,}"


def _lines(missing: Iterable[Need]) -> list[str]:
    """Return the lines of what is missing, without the indent of a next step."""
    lines = []
    for number, need in enumerate(missing, 1):
        lines.append(f"{number}. {need.what}")
        lines += [f"   {line}" for line in ways(need)]
    return lines


def ways(need: Need) -> list[str]:
    """Return the lines that say how to provide something."""
    first = [*(need.fix.split("\n") if need.fix else []), *([f"    takes {need.takes}"] if need.takes else [])]
    other = need.instead.split("\n") if need.instead else []
    return [*first, *(f"{'or' if i == 0 else '  '}  {line}" for i, line in enumerate(other))]


def _few(names: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
