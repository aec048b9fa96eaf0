"""Code run outside the caller's thread, where a notebook or an agent may already run an event loop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_STARTING = threading.Lock()
# The attribute ``group`` is that of the threads of one :func:`at_once`.
_THREAD = threading.local()


def run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the process's one event loop; an interrupt of the caller cancels it.

    One loop serves all endpoints: several would compete for the interpreter every few milliseconds, which slows a panel
    with many short calls.
    """
    with running_on_loop(work) as running:
        return running.result()


@contextmanager
def running_on_loop(work: Coroutine[Any, Any, T]) -> Iterator[Future[T]]:
    """Start a coroutine on the process's one event loop; cancel it if it still runs after the block."""
    import asyncio

    with _STARTING:
        loop = _loop(os.getpid())
    group: _Group | None = getattr(_THREAD, "group", None)
    running = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        if group is not None:
            group.add(running)
        yield running
    finally:
        running.cancel()


class _Group:
    """The coroutines that the threads of one :func:`at_once` wait for."""

    def __init__(self) -> None:
        self._running: set[Future[Any]] = set()
        self._turn = threading.Lock()
        self._cancelled = False

    def add(self, running: Future[Any]) -> None:
        with self._turn:
            self._running.add(running)
            cancelled = self._cancelled
        running.add_done_callback(self._running.discard)
        if cancelled:
            running.cancel()

    def cancel(self) -> None:
        with self._turn:
            self._cancelled = True
            left = list(self._running)
        for running in left:
            running.cancel()


def at_once(work: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Run the callables in separate threads; return the results under their names, in the given order.

    An interrupt of the caller is raised at once: coroutines that the callables wait for are cancelled, and those that
    they start later as well.
    """
    group = _Group()

    def grouped(call: Callable[[], T]) -> Callable[[], T]:
        def run() -> T:
            _THREAD.group = group
            return call()

        return run

    try:
        running = {name: _in_thread(grouped(call), f"mrag-eval-{name}") for name, call in work.items()}
        wait(running.values())
    except BaseException:
        group.cancel()
        raise
    return {name: future.result() for name, future in running.items()}


@lru_cache(maxsize=1)
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return an event loop in a new thread. A forked process lacks that thread and gets another loop."""
    return new_loop("mrag-eval-http")


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in a new thread."""
    import asyncio

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
    return loop


def run_in_thread(work: Callable[[], T]) -> T:
    """Run a function to its end in a new thread."""
    return _in_thread(work, "mrag-eval-local-model").result()


def _in_thread(work: Callable[[], T], name: str) -> Future[T]:
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as err:
            done.set_exception(err)

    # a daemon: the end of the process does not wait for it
    threading.Thread(target=run, name=name, daemon=True).start()
    return done
