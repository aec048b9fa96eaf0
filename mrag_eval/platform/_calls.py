"""Calls of a function of the user's, a coroutine function or not, in the place of requests to an endpoint."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mrag_eval.platform._attempts import A, Attempts, Request
from mrag_eval.platform._event_loop import new_loop
from mrag_eval.platform._functions import said_by
from mrag_eval.platform._http_faults import BROKEN_AGAIN, HttpFault
from mrag_eval.platform._paths import staying_here

if TYPE_CHECKING:
    import asyncio


# What another call of the same code raises, too.
_OF_CODE = (TypeError, NameError, AttributeError, ImportError, KeyError, RecursionError)
# How long a loop may take to answer before it is held to be blocked, in seconds.
_PROMPT = 0.2


class _Ended(Exception):
    """What a function raised in one line, of a kind that would end a loop or a thread."""


class Calls(Attempts[Request, A]):
    """Answer requests by ``call``: a coroutine function on an event loop of its own, any other in a thread.

    ``read`` makes an answer of what it returns. Whatever it raises is a fault of its request (``raised``). The first
    request is answered before any other is made, and what the code would raise again is not tried again: an error of
    the code itself, or what the first request raised. A coroutine that blocks its loop is given up at its deadline, and
    the next gets another loop.
    """

    def __init__(self, name: str, call: Callable[[Request], Any], read: Callable[[Any], A], **limits: Any) -> None:
        super().__init__(name, **limits)
        self._call, self._read = call, read
        self._loop: asyncio.AbstractEventLoop | None = None
        self._first: asyncio.Future[None] | None = None
        self._raised_first: str | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Yield nothing, and return to this folder after the calls, any of which may change to another."""
        with staying_here():
            yield

    async def attempt(self, session: None, request: Request) -> A:
        """Return the answer to one request."""
        import asyncio

        first = self._first is None
        if self._first is None:
            self._first = asyncio.get_running_loop().create_future()
        elif not self._first.done():
            await asyncio.wait([self._first])
        try:
            value = await asyncio.wait_for(self._called(request), self.timeout)
        except (TimeoutError, asyncio.TimeoutError):
            raise HttpFault("timeout", f"no answer within {self.timeout:g} s") from None
        finally:
            if first:
                self._first.set_result(None)
        return self._read(value)

    async def _called(self, request: Request) -> Any:
        import asyncio

        try:
            value = await _in_thread(lambda: self._call(request))
            if not inspect.isawaitable(value):
                return value
            waiting = asyncio.run_coroutine_threadsafe(_awaited(value), self._own_loop())
            return await asyncio.wrap_future(waiting)
        except asyncio.CancelledError:
            raise
        except BaseException as err:  # a function of the user's may raise anything, what ends a loop included
            raise self._fault(err) from None

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of this system: a new one if there is none, or if a coroutine blocks it."""
        if self._loop is not None:
            prompt = threading.Event()
            self._loop.call_soon_threadsafe(prompt.set)
            if not prompt.wait(_PROMPT):
                self._loop = None
        if self._loop is None:
            self._loop = new_loop(f"mrag-eval-{self.name}")
        return self._loop

    def _fault(self, error: BaseException) -> HttpFault:
        said = str(error) if isinstance(error, _Ended) else said_by(error)
        again = 0 if isinstance(error, _OF_CODE) or said == self._raised_first else BROKEN_AGAIN
        if self._first is not None and not self._first.done():
            self._raised_first = said
        return HttpFault("raised", said, again=again)


async def _awaited(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except (KeyboardInterrupt, SystemExit) as err:
        # either would end the thread of the loop
        raise _Ended(said_by(err)) from None


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a thread of its own, which the end of the process does not wait for."""
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(fault: BaseException | None, value: Any) -> None:
        if not done.done():
            done.set_result(value) if fault is None else done.set_exception(fault)

    def run() -> None:
        try:
            found: tuple[BaseException | None, Any] = None, work()
        except BaseException as err:
            # a future takes no StopIteration, and an exit would end the loop of all endpoints
            outlives = isinstance(err, Exception) and not isinstance(err, StopIteration)
            found = err if outlives else _Ended(said_by(err)), None
        loop.call_soon_threadsafe(settle, *found)

    threading.Thread(target=run, daemon=True).start()
    return await done
