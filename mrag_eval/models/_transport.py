"""Sends many requests to one API model: so many at a time, with retries, each answer handed on as it arrives."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mrag_eval.config import Generation
from mrag_eval.core import missing_extra
from mrag_eval.models._faults import SHARED, Fault, status_fault
from mrag_eval.models._redaction import redact
from mrag_eval.models._reply import Reply
from mrag_eval.prompts import Conversation

if TYPE_CHECKING:
    from aiohttp import ClientSession

log = logging.getLogger(__name__)

# So many calls failing for a reason that all share, before any succeeded, and the rest is not sent.
_FIRST_FAILURES = 5
_LONGEST_BACKOFF = 30.0


@dataclass(frozen=True)
class Call:
    """One conversation to send; ``key`` is its place in the cache."""

    key: str
    conversation: Conversation
    settings: Generation


class Service(Protocol):
    """What the transport needs to know of an endpoint; ``read`` raises a Fault for a body that is no answer."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def verify(self) -> bool | str: ...

    def payload(self, conversation: Conversation, settings: Generation) -> dict[str, Any]: ...

    def read(self, body: str) -> dict[str, Any]: ...


# Takes the answer to a call (into the ledger and the cache); the next call of that slot is sent when it is done.
Accept = Callable[[Call, Reply], Awaitable[None]]


class Transport:
    """Requests to one endpoint. ``first_backoff`` seconds bound the first pause before a retry, doubled every time."""

    def __init__(
        self, endpoint: Service, *, max_in_flight: int, timeout: float, retries: int, first_backoff: float = 0.5
    ) -> None:
        self.endpoint = endpoint
        self.max_in_flight = max_in_flight
        self.timeout = timeout
        self.retries = retries
        self.first_backoff = first_backoff
        self._jitter = random.Random()
        self._answered_once = False
        self._failing: list[str] = []
        self._resume_at = 0.0
        self._proxy = _proxy_for(endpoint.url)

    async def send(self, calls: Sequence[Call], accept: Accept, allowed: Callable[[], str | None]) -> None:
        """Send every call and hand each answer, good or failed, to ``accept``.

        ``allowed`` is asked before each call: None, or the error that the call gets instead of being sent.
        """
        try:
            import aiohttp
        except ModuleNotFoundError:
            raise missing_extra("api", "aiohttp") from None
        self._failing = []
        waiting = iter(calls)
        connector = aiohttp.TCPConnector(limit=self.max_in_flight, ssl=_ssl(self.endpoint.verify))
        limit = aiohttp.ClientTimeout(total=self.timeout)
        async with aiohttp.ClientSession(connector=connector, timeout=limit, proxy=self._proxy) as session:
            count = min(self.max_in_flight, len(calls))
            slots = [asyncio.create_task(self._work(session, waiting, accept, allowed)) for _ in range(count)]
            try:
                await asyncio.gather(*slots)
            finally:
                for slot in slots:
                    slot.cancel()
                await asyncio.gather(*slots, return_exceptions=True)

    async def _work(
        self, session: ClientSession, waiting: Iterator[Call], accept: Accept, allowed: Callable[[], str | None]
    ) -> None:
        for call in waiting:
            refusal = self._stopped() or allowed()
            if refusal is not None:
                await accept(call, Reply("", attempts=0, error=refusal))
                continue
            await accept(call, await self._call(session, call))

    def _stopped(self) -> str | None:
        limit = max(_FIRST_FAILURES, self.max_in_flight) if self._answered_once else _FIRST_FAILURES
        if len(self._failing) < limit:
            return None
        return (
            f"stopped: not sent, the {len(self._failing)} calls before it all failed, the last with {self._failing[-1]}"
        )

    async def _call(self, session: ClientSession, call: Call) -> Reply:
        """One conversation, tried until it is answered or trying again makes no sense."""
        start = time.perf_counter()
        attempt = 0
        while True:
            attempt += 1
            await self._pause_asked_for()
            try:
                answer = await self._attempt(session, call)
            except Fault as fault:
                allowed = self.retries if fault.again is None else min(fault.again, self.retries)
                if attempt <= allowed:
                    await self._back_off(fault, attempt)
                    continue
                error = redact(str(fault))
                if fault.reason in SHARED:
                    self._failing.append(error)
                log.debug("%s: call failed after %d attempts: %s", self.endpoint.name, attempt, error)
                return Reply("", attempts=attempt, seconds=time.perf_counter() - start, error=error)
            self._answered_once = True
            self._failing.clear()
            return Reply(**answer, attempts=attempt, seconds=time.perf_counter() - start)

    async def _attempt(self, session: ClientSession, call: Call) -> dict[str, Any]:
        import aiohttp

        try:
            # serialised here, since aiohttp's errors and debug lines would name the whole body otherwise
            body = json.dumps(self.endpoint.payload(call.conversation, call.settings), ensure_ascii=False)
        except Exception as err:
            raise Fault("rejected", f"no request can be made of it ({type(err).__name__}: {err})", again=0) from None
        headers = {**self.endpoint.headers, "Content-Type": "application/json"}
        try:
            async with session.post(
                self.endpoint.url, data=body.encode("utf-8", "replace"), headers=headers, allow_redirects=False
            ) as answer:
                text = (await answer.read()).decode("utf-8", "replace")
                if not 200 <= answer.status < 300:
                    raise status_fault(answer.status, text, answer.headers)
        except (TimeoutError, asyncio.TimeoutError):
            raise Fault("timeout", f"no answer within {self.timeout:g} s") from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as err:
            raise Fault("rejected", f"not an address: {err}", again=0) from None
        except aiohttp.ClientConnectorCertificateError as err:
            raise Fault("connection", f"certificate refused: {err.certificate_error}", again=0) from None
        except (aiohttp.ClientError, OSError) as err:
            # not repr(err): that of some classes holds the request's headers
            raise Fault("connection", f"{type(err).__name__}: {err}") from None
        return self.endpoint.read(text)

    async def _back_off(self, fault: Fault, attempt: int) -> None:
        """Wait: what the server asks for, all slots with it; else a random part of a pause that doubles each time."""
        bound = min(_LONGEST_BACKOFF, self.first_backoff * 2 ** (attempt - 1))
        spread = self._jitter.uniform(0.5, 1.0) * bound
        if fault.pause is None:
            await asyncio.sleep(spread)
            return
        now = asyncio.get_running_loop().time()
        self._resume_at = max(self._resume_at, now + fault.pause)
        # those held up together must not come back together
        await asyncio.sleep(fault.pause + self._jitter.uniform(0.0, min(1.0, self.first_backoff)))

    async def _pause_asked_for(self) -> None:
        wait = self._resume_at - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)


def _proxy_for(url: str) -> str | None:
    """The environment's proxy, looked up once: aiohttp does it for every request, at half of a request's cost."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


def _ssl(verify: bool | str) -> Any:
    if isinstance(verify, bool):
        return verify
    import ssl

    return ssl.create_default_context(cafile=verify)
