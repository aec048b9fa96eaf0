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
class Ledger:
    """Counts of one model.

    ``calls`` counts conversations sent, ``cached`` those answered from the cache, ``retries`` further attempts at a
    call, ``failures`` conversations without an answer by reason. Tokens are those reported by the model; ``seconds`` is
    the waiting time.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, reply: Reply) -> None:
        """Count one reply, without its time: the batch counts that, since calls overlap."""
        if reply.cached:
            self.cached += 1
        elif reply.attempts:
            self.calls += 1
            self.retries += reply.attempts - 1
            self.tokens_in += reply.tokens_in or 0
            self.tokens_out += reply.tokens_out or 0
        if reply.reason is not None:
            self.failures[reply.reason] = self.failures.get(reply.reason, 0) + 1

    def __add__(self, other: Ledger) -> Ledger:
        counts = {name: count + getattr(other, name) for name, count in vars(self).items() if name != "failures"}
        failures = Counter(self.failures) + Counter(other.failures)
        return Ledger(**counts, failures=dict(sorted(failures.items())))

    @classmethod
    def of(cls, replies: Iterable[Reply], seconds: float) -> Ledger:
        """Return the counts of ``replies``, which took ``seconds`` together."""
        ledger = cls(seconds=seconds)
        for reply in replies:
            ledger.add(reply)
        return ledger

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form for results files."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Ledger:
        """Return the ledger that :meth:`as_dict` was called on."""
        return cls(**{**value, "failures": dict(value.get("failures", {}))})

    def line(self) -> str:
        """Return one line: ``897 calls, 0 from cache, 4 retries, 12,345 tokens in, 678 out · 3 unanswered (3
        timeout)``.
        """
        retries = number_of(self.retries, "retry", "retries")
        text = f"{number_of(self.calls, 'call')}, {self.cached:,} from cache, {retries}"
        if self.tokens_in or self.tokens_out:
            text += f", {self.tokens_in:,} tokens in, {self.tokens_out:,} out"
        if self.failures:
            kinds = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.failures.items()))
            text += f" · {sum(self.failures.values()):,} unanswered ({kinds})"
        return text


def total(ledgers: Iterable[Ledger]) -> Ledger:
    """Return the sum, over models or over ranks."""
    return sum(ledgers, Ledger())


def totals(shares: Sequence[Mapping[str, Ledger]]) -> dict[str, Ledger]:
    """Return the sum of each model's ledgers, over the ranks of a run."""
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
