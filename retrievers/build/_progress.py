"""Progress of a build, its rate and the time left: a bar on a terminal, else log lines."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

# A child of the harness's logger, so that the harness shows these lines like its own.
log = logging.getLogger(f"lm_eval.{__name__}")

T = TypeVar("T")

# seconds between two log lines
EVERY = 30.0


class Progress:
    """The progress of one build, counted in passages.

    Args:
        name: the index's name.
        total: expected number of passages, if known.
        share: the share of the source read for the passages taken (:meth:`taking`), if the total is unknown.
        shown: False shows neither bar nor log lines.
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
        terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._on_terminal = shown and terminal
        self._logged = shown and not terminal
        self.done = self._taken = self._first = 0
        self._started = self._said = clock()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def start(self, done: int) -> None:
        """Start counting after the ``done`` passages of an earlier attempt."""
        self.done = self._first = done
        self._started = self._said = self._clock()
        if self._on_terminal:
            from tqdm import tqdm

            self._bar = tqdm(total=self._total, initial=done, unit=" passages", desc=self._name)
        if done and self._logged:
            log.info("%s: continues after %s passages", self._name, f"{done:,}")

    def add(self, count: int) -> None:
        """Count ``count`` more finished passages."""
        self.done += count
        if self._bar is not None:
            self._bar.total = self.expected()
            self._bar.update(count)
        elif self._logged and self._clock() - self._said >= EVERY:
            self._said = self._clock()
            log.info("%s: %s", self._name, self.line())

    def phase(self, what: str) -> None:
        """Show that the build does something else now, such as writing."""
        if self._bar is not None:
            self._bar.total = self.done
            self._bar.set_description(f"{self._name}: {what}")
        elif self._logged:
            log.info("%s: %s, %s", self._name, self.line(), what)

    def line(self) -> str:
        """Return passages done, passages per second and the time left."""
        elapsed = self._clock() - self._started
        rate = (self.done - self._first) / elapsed if elapsed > 0 else 0.0
        parts = [f"{self.done:,} passages", f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second"]
        left = self.seconds_left()
        parts.append("time left unknown" if left is None else f"about {spoken(left)} left")
        return ", ".join(parts)

    def taking(self, passages: Iterable[T]) -> Iterator[T]:
        """Yield ``passages`` and count them as taken; they may be finished much later."""
        for passage in passages:
            self._taken += 1
            yield passage

    def expected(self) -> int | None:
        """Return the expected number of passages, or None if neither it nor the size of the source is known."""
        if self._total is not None:
            return self._total
        share = self._share()
        return max(self.done, round(self._taken / share)) if share else None

    def seconds_left(self) -> float | None:
        """Return the time left at the rate so far, or None if the number of passages is unknown."""
        expected, made = self.expected(), self.done - self._first
        if expected is None or not made:
            return None
        return max(0.0, (self._clock() - self._started) / made * (expected - self.done))


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
