"""Counts of a model's calls and their cost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mrag_eval.config import ModelBudget
from mrag_eval.models._reply import Call, Reply
from mrag_eval.platform import number_of
from mrag_eval.text import estimated_tokens

if TYPE_CHECKING:
    from mrag_eval.models._reply import Reply


@dataclass
class CallCounts:
    """Counts of the calls to one model; its seats count what came back, tokens among it.

    ``calls`` counts conversations sent, ``cached`` those answered from the cache, ``retries`` further attempts at a
    call, ``failures`` conversations without an answer by reason; ``seconds`` is the waiting time.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, reply: Reply) -> None:
        """Count one reply, without its time: the batch counts that, since calls overlap."""
        if reply.cached:
            self.cached += 1
        elif reply.attempts:
            self.calls += 1
            self.retries += reply.attempts - 1
        if reply.reason is not None:
            self.failures[reply.reason] = self.failures.get(reply.reason, 0) + 1

    def __add__(self, other: CallCounts) -> CallCounts:
        counts = {name: count + getattr(other, name) for name, count in vars(self).items() if name != "failures"}
        failures = Counter(self.failures) + Counter(other.failures)
        return CallCounts(**counts, failures=dict(sorted(failures.items())))

    @classmethod
    def of(cls, replies: Iterable[Reply], seconds: float) -> CallCounts:
        """Return the counts of ``replies``, which took ``seconds`` together."""
        found = cls(seconds=seconds)
        for reply in replies:
            found.add(reply)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form for results files."""
        return asdict(self)

    def line(self) -> str:
        """Return one line: ``897 calls, 0 from cache, 4 retries · 3 unanswered (3 timeout)``."""
        retries = number_of(self.retries, "retry", "retries")
        text = f"{number_of(self.calls, 'call')}, {self.cached:,} from cache, {retries}"
        if self.failures:
            kinds = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.failures.items()))
            text += f" · {sum(self.failures.values()):,} unanswered ({kinds})"
        return text


@dataclass
class Ledger(CallCounts):
    """Counts of a model whose replies no seat counts for the results: its calls, and the tokens that it reported."""

    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, reply: Reply) -> None:
        super().add(reply)
        if reply.attempts and not reply.cached:
            self.tokens_in += reply.tokens_in or 0
            self.tokens_out += reply.tokens_out or 0


def total(ledgers: Iterable[CallCounts]) -> CallCounts:
    """Return the sum, over models or over ranks."""
    return sum(ledgers, CallCounts())


def totals(shares: Sequence[Mapping[str, CallCounts]]) -> dict[str, CallCounts]:
    """Return the sum of each model's calls, over the ranks of a run."""
    names = dict.fromkeys(name for share in shares for name in share)
    return {name: total(share[name] for share in shares if name in share) for name in names}


def summed(shares: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what came back from seats, added up over ranks, processes, or parts of a task.

    Seats from which nothing came back are left out.
    """
    found: dict[str, Any] = {}
    for share in filter(None, shares):
        found = _added(found, share, dict.fromkeys([*found, *share]))
    return {seat: counts for seat, counts in found.items() if any(counts.values())}


def came_back_line(seats: Mapping[str, Any]) -> str:
    """Return what came back from seats in one line: ``j1 (m-2026): 9 stop, 1,234 tokens in, 56 out · j2: 9 stop``."""

    def told(seat: str, found: Mapping[str, Any]) -> str:
        ends = [f"{n:,} {end}" for end, n in (found.get("ends") or {}).items()]
        read, written = found.get("tokens_in") or 0, found.get("tokens_out") or 0
        tokens = [f"{read:,} tokens in", f"{written:,} out"] if read or written else []
        by = ", ".join(found.get("answered_by") or ())
        return f"{seat} ({by}): {', '.join([*ends, *tokens])}" if by else f"{seat}: {', '.join([*ends, *tokens])}"

    return " · ".join(told(*one) for one in seats.items())


def total_counts(shares: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the sum of ``Translator.as_dict`` over the ranks of a run; None if there was no translator.

    A text that two ranks translated counts twice.
    """
    found: dict[str, Any] | None = None
    for share in shares:
        own = {key: share[key] for key in ("translator", "counts", "cost") if key in share}
        found = own if found is None else {**found, **_added(found, own, ("counts", "cost"))}
    return found


def _added(a: Mapping[str, Any], b: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key in keys:
        left, right = a.get(key), b.get(key)
        if isinstance(left, Mapping) or isinstance(right, Mapping):
            left, right = left or {}, right or {}
            out[key] = _added(left, right, [*left, *(k for k in right if k not in left)])
        elif left is not None or right is not None:
            out[key] = (left or 0) + (right or 0)
    return out


class Spending:
    """Count calls and tokens against one budget, from any thread."""

    def __init__(self, budget: ModelBudget) -> None:
        self._budget = budget
        self._counting = threading.Lock()
        self._calls = 0
        self._tokens = 0

    def refuse(self) -> str | None:
        """Count one call and return None; if a limit is reached, return the error to record instead of the call."""
        most_calls, most_tokens = self._budget.max_calls, self._budget.max_tokens
        with self._counting:
            if most_calls is not None and self._calls >= most_calls:
                return f"budget: not sent, max_calls {most_calls:,} is reached"
            if most_tokens is not None and self._tokens >= most_tokens:
                return f"budget: not sent, max_tokens {most_tokens:,} is reached ({self._tokens:,} spent)"
            self._calls += 1
            return None

    def add(self, call: Call, reply: Reply) -> None:
        """Count the tokens of an answered call, estimated if the model reports none."""
        if reply.error is not None:
            return
        tokens_in, tokens_out = reply.tokens_in, reply.tokens_out
        if tokens_in is None:
            tokens_in = sum(estimated_tokens(message["content"]) for message in call.conversation)
        if tokens_out is None:
            tokens_out = estimated_tokens(reply.text) + estimated_tokens(reply.thinking)
        with self._counting:
            self._tokens += tokens_in + tokens_out
