"""Calls of a function of the user's, a coroutine function or not, in the place of requests to an endpoint."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mrag_eval.platform._attempts import A, Attempts, Request
from mrag_eval.platform._functions import said_by
from mrag_eval.platform._http_faults import BROKEN_AGAIN, HttpFault


class Calls(Attempts[Request, A]):
    """Answer requests by ``call``: a coroutine function on the process's event loop, any other in a thread.

    ``read`` makes an answer of what it returns. Whatever it raises is a fault of its request (``raised``).
    """

    def __init__(self, name: str, call: Callable[[Request], Any], read: Callable[[Any], A], **limits: Any) -> None:
        super().__init__(name, **limits)
        self._call, self._read = call, read

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Yield nothing: calls have nothing in common."""
        yield

    async def attempt(self, session: None, request: Request) -> A:
        """Return the answer to one request."""
        import asyncio

        try:
            return self._read(await asyncio.wait_for(self._called(request), self.timeout))
        except (TimeoutError, asyncio.TimeoutError):
            raise HttpFault("timeout", f"no answer within {self.timeout:g} s") from None

    async def _called(self, request: Request) -> Any:
        value = await _in_thread(lambda: self._call(request))
        try:
            return await value if inspect.isawaitable(value) else value
        except (Exception, SystemExit) as err:
            raise _raised(err) from None


def _raised(error: BaseException) -> HttpFault:
    """Return the fault of a request for what a function raised, some of which would end the loop of all endpoints."""
    return HttpFault("raised", said_by(error), again=BROKEN_AGAIN)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a thread of its own, which the end of the process does not wait for."""
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(fault: HttpFault | None, value: Any) -> None:
        if not done.done():
            done.set_result(value) if fault is None else done.set_exception(fault)

    def run() -> None:
        try:
            found: tuple[HttpFault | None, Any] = None, work()
        except BaseException as err:
            found = _raised(err), None
        loop.call_soon_threadsafe(settle, *found)

    threading.Thread(target=run, daemon=True).start()
    return await done
