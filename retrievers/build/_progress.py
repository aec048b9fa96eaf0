"""Progress of a build, its rate and the time left: a line on a terminal, else log lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TypeVar

from mrag_eval.platform import Wait, waits_are_shown

# A child of the harness's logger, so that the harness shows these lines like its own.
log = logging.getLogger(f"lm_eval.{__name__}")

T = TypeVar("T")

# seconds between two log lines
EVERY = 30.0


class Progress:
    """The progress of one build, counted in passages.

    Args:
        name: what is built, such as ``index wiki``.
        total: expected number of passages, if known.
        share: the share of the source read for the passages taken (:meth:`taking`), if the total is unknown.
        shown: False shows neither a line nor log lines.
        clock: returns seconds.
    """

    def __init__(
        self,
        name: str,
        total: int | None = None,
        share: Callable[[], float | None] = lambda: None,
        *,
        shown: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._total, self._share, self._clock = name, total, share, clock
        self._logged = shown and not waits_are_shown()
        self._wait = Wait(name, total, "passages", shown=shown, clock=clock)
        self._taken = 0
        self._said = clock()

    def __enter__(self) -> Progress:
        self._wait.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait.__exit__(kind, error, trace)

    @property
    def done(self) -> int:
        """Return the number of finished passages."""
        return self._wait.done

    def start(self, done: int) -> None:
        """Start counting after the ``done`` passages of an earlier attempt."""
        self._wait.restart(done)
        self._said = self._clock()
        if done and self._logged:
            log.info("%s: continues after %s passages", self._name, f"{done:,}")

    def add(self, count: int) -> None:
        """Count ``count`` more finished passages."""
        self._wait.add(count)
        self._wait.total = self.expected()
        if self._logged and self._clock() - self._said >= EVERY:
            self._said = self._clock()
            log.info("%s: %s", self._name, self.line())

    def phase(self, what: str) -> None:
        """Show that the build does something else now, such as writing."""
        self._wait.name, self._wait.total = f"{self._name}: {what}", None
        if self._logged:
            log.info("%s: %s, %s", self._name, self.line(finished=True), what)

    def line(self, *, finished: bool = False) -> str:
        """Return passages done, passages per second and, unless it is ``finished``, the time left."""
        rate = self._wait.rate() or 0.0
        parts = [f"{self.done:,} passages", f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second"]
        if not finished:
            left = self.seconds_left()
            parts.append("time left unknown" if left is None else f"about {spoken(left)} left")
        return ", ".join(parts)

    def taking(self, passages: Iterable[T]) -> Iterator[T]:
        """Yield ``passages`` and count them as taken; they may be finished much later."""
        for passage in passages:
            self.take(1)
            yield passage

    def take(self, count: int) -> None:
        """Count ``count`` passages as taken."""
        self._taken += count

    def expected(self) -> int | None:
        """Return the expected number of passages, or None if neither it nor the size of the source is known."""
        if self._total is not None:
            return self._total
        share = self._share()
        return max(self.done, round(self._taken / share)) if share else None

    def seconds_left(self) -> float | None:
        """Return the time left at the rate so far, or None if the number of passages is unknown."""
        self._wait.total = self.expected()
        return self._wait.seconds_left()


def spoken(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
