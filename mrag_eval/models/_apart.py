"""Work that must not mind what runs in the caller's thread, such as an event loop of a notebook or an agent."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

_STARTING = threading.Lock()


def run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the process's own loop; an interrupt of the caller cancels it.

    One loop serves all models: the loops of several would take the interpreter from each other in turns of
    milliseconds, which a panel with many short calls feels.
    """
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
    """A loop in a thread; a forked process has not that thread, and gets its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="mrag-eval-lm", daemon=True).start()
    return loop


def run_in_thread(work: Callable[[], T]) -> T:
    """Run a function in a fresh thread, to its end."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as err:
            done.set_exception(err)

    threading.Thread(target=run, name="mrag-eval-local-model", daemon=True).start()
    return done.result()
