"""Code run outside the caller's thread, where a notebook or an agent may already run an event loop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_STARTING = threading.Lock()


def run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the process's one event loop; an interrupt of the caller cancels it.

    One loop serves all endpoints: several would compete for the interpreter every few milliseconds, which slows a panel
    with many short calls.
    """
    import asyncio

    with _STARTING:
        loop = _loop(os.getpid())
    running = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return running.result()
    except BaseException:
        running.cancel()
        raise


@lru_cache(maxsize=1)
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return an event loop in a new thread. A forked process lacks that thread and gets another loop."""
    import asyncio

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="mrag-eval-http", daemon=True).start()
    return loop


def run_in_thread(work: Callable[[], T]) -> T:
    """Run a function to its end in a new thread."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as err:
            done.set_exception(err)

    threading.Thread(target=run, name="mrag-eval-local-model", daemon=True).start()
    return done.result()
