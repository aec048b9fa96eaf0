"""Requests of any kind: bounded concurrency, retries with growing pauses, and each answer passed on as it arrives."""

from __future__ import annotations

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mrag_eval.platform._event_loop import running_on_loop
from mrag_eval.platform._http_faults import SHARED, HttpFault
from mrag_eval.platform._redaction import redact

if TYPE_CHECKING:
    from asyncio import Semaphore

log = logging.getLogger(__name__)

# After this many failures in a row for a reason that all requests share, with no earlier success, no more are sent.
_FIRST_FAILURES = 5
_LONGEST_BACKOFF = 30.0

A = TypeVar("A")
Request = TypeVar("Request")


@dataclass(frozen=True)
class Response(Generic[A]):
    """The outcome of one request: its ``answer``, or the ``error`` (``"reason: detail"``, without keys).

    ``status`` is that of the last refusal. ``attempts`` counts the requests sent, ``seconds`` their total time.
    """

    answer: A | None
    error: str | None = None
    status: int | None = None
    attempts: int = 0
    seconds: float = 0.0


# Receives a request's position and its response; the next request of that slot is sent when it returns.
Accept = Callable[[int, Response[A]], Awaitable[None]]
# Called before each request: returns None, or an error to record instead of sending.
Refuse = Callable[[], str | None]


class Attempts(ABC, Generic[Request, A]):
    """Answer requests, ``max_in_flight`` at a time, those of all batches together.

    An attempt that raises HttpFault is followed by up to ``retries`` more, if they may help; any other error ends the
    batch. The first pause between two is at most ``first_backoff`` seconds, and the bound doubles every time. Without
    ``jitter`` pauses have their full length. ``timeout`` is what an attempt may take, in seconds.
    """

    def __init__(
        self,
        name: str,
        *,
        max_in_flight: int,
        timeout: float,
        retries: int,
        first_backoff: float = 0.5,
        jitter: bool = True,
    ) -> None:
        self.name = name
        self.max_in_flight = max_in_flight
        self.timeout = timeout
        self.retries = retries
        self.first_backoff = first_backoff
        self.jitter = jitter
        self._random = random.Random()
        self._answered_once = False
        self._failing: list[str] = []
        self._resume_at = 0.0
        self._batches = 0
        self._slots: Semaphore

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[Any]:
        """Return what all attempts of a batch have in common, open while it is sent."""

    @abstractmethod
    async def attempt(self, session: Any, request: Request) -> A:
        """Return the answer to a request; raise HttpFault if there is none."""

    def arriving(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response[A]]]:
        """Send all requests; yield the position and the response of each as it arrives.

        No more are sent when the caller stops or is interrupted.
        """
        arrived: SimpleQueue[tuple[int, Response[A]] | None] = SimpleQueue()

        async def accept(position: int, response: Response[A]) -> None:
            arrived.put((position, response))

        with running_on_loop(self.send(requests, len(requests), accept)) as running:
            running.add_done_callback(lambda _: arrived.put(None))
            while (response := arrived.get()) is not None:
                yield response
            running.result()

    async def send(
        self, requests: Iterable[Request], most: int, accept: Accept[A], refuse: Refuse = lambda: None
    ) -> None:
        """Send every request that ``refuse`` allows, and pass each response, good or failed, to ``accept``.

        There are ``most`` requests at most. One is taken from the iterable when there is a free slot for it. Of batches
        that are sent at the same time, the first has all slots until its last requests leave some free.
        """
        import asyncio

        if not self._batches:
            self._failing, self._slots = [], asyncio.Semaphore(self.max_in_flight)
        slots, waiting = self._slots, iter(enumerate(requests))

        async def work() -> None:
            async with slots:
                for position, request in waiting:
                    refusal = self._stopped() or refuse()
                    answer = await self._request(session, request) if refusal is None else Response[A](None, refusal)
                    await accept(position, answer)

        async with self.opened() as session:
            workers: list[asyncio.Task[None]] = []
            self._batches += 1
            try:
                for _ in range(min(self.max_in_flight, most)):
                    workers.append(asyncio.create_task(work()))
                    # each request is on its way before the next is prepared: started together, all would wait for all
                    await asyncio.sleep(0)
                await asyncio.gather(*workers)
            finally:
                self._batches -= 1
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    def _stopped(self) -> str | None:
        limit = max(_FIRST_FAILURES, self.max_in_flight) if self._answered_once else _FIRST_FAILURES
        if len(self._failing) < limit:
            return None
        return (
            f"stopped: not sent, the {len(self._failing)} calls before it all failed, the last with {self._failing[-1]}"
        )

    async def _request(self, session: Any, request: Request) -> Response[A]:
        """Try one request until it is answered or another attempt makes no sense."""
        start = monotonic()
        attempt = 0
        while True:
            attempt += 1
            await self._pause_asked_for()
            try:
                answer = await self.attempt(session, request)
            except HttpFault as fault:
                allowed = self.retries if fault.again is None else min(fault.again, self.retries)
                if attempt <= allowed:
                    await self._back_off(fault, attempt)
                    continue
                error = redact(str(fault))
                if fault.reason in SHARED:
                    self._failing.append(error)
                log.debug("%s: request failed after %d attempts: %s", self.name, attempt, error)
                return Response(None, error, fault.status, attempt, monotonic() - start)
            self._answered_once = True
            self._failing.clear()
            return Response(answer, attempts=attempt, seconds=monotonic() - start)

    async def _back_off(self, fault: HttpFault, attempt: int) -> None:
        """Wait as long as the server asks, for all slots; else for a random part of a pause that doubles each time."""
        if fault.pause is None:
            bound = min(_LONGEST_BACKOFF, self.first_backoff * 2 ** (attempt - 1))
            await sleep(self._spread(0.5 * bound, bound))
            return
        self._resume_at = max(self._resume_at, monotonic() + fault.pause)
        # slots that waited together must not resume together
        await sleep(fault.pause + self._spread(min(1.0, self.first_backoff), 0.0))

    def _spread(self, low: float, full: float) -> float:
        return self._random.uniform(low, full) if self.jitter else full

    async def _pause_asked_for(self) -> None:
        wait = self._resume_at - monotonic()
        if wait > 0:
            await sleep(wait)


async def sleep(seconds: float) -> None:
    """Wait without blocking the other requests."""
    import asyncio

    await asyncio.sleep(seconds)
