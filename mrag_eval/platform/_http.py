"""JSON requests to one HTTP endpoint: bounded concurrency, retries, and each response passed on as it arrives."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mrag_eval.platform._address import check_address, keep_address
from mrag_eval.platform._event_loop import running_on_loop
from mrag_eval.platform._http_body import ENCODINGS, LONGEST_ANSWER, body_text
from mrag_eval.platform._http_faults import SHARED, HttpFault, status_fault
from mrag_eval.platform._keys import keep_header, key_in
from mrag_eval.platform._redaction import redact

if TYPE_CHECKING:
    from asyncio import Semaphore

    from aiohttp import ClientSession

log = logging.getLogger(__name__)

# After this many failures in a row for a reason that all requests share, with no earlier success, no more are sent.
_FIRST_FAILURES = 5
_LONGEST_BACKOFF = 30.0
_ENCODED = json.JSONEncoder(ensure_ascii=False).encode

A = TypeVar("A")
Request = TypeVar("Request")


@dataclass(frozen=True)
class Endpoint:
    """The target of requests, and its name in messages. ``headers`` may hold a key, which is hidden from now on.

    Raises ConfigError for an address or a header that no request can be made of.
    """

    name: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    verify: bool | str = True

    def __post_init__(self) -> None:
        check_address(self.url, self.name)
        for name, value in self.headers.items():
            keep_header(name, value, f"{self.name}: the value of the header {name}")


def bearer(variable: str | None, owner: str) -> dict[str, str]:
    """Return the header with the key in an environment variable, or none for None; raise ConfigError if it is not
    set.
    """
    return {} if variable is None else {"Authorization": f"Bearer {key_in(variable, owner)}"}


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


class Transport(Generic[Request, A]):
    """Send requests to one endpoint, ``max_in_flight`` at a time, those of all batches together.

    ``payload`` makes the JSON body of a request, as a value or as the bytes to send. ``read`` gets the request and the
    body of its response, and raises HttpFault if another attempt may help; any other error ends the batch.

    An attempt ends after ``timeout`` seconds, or after ``connect_timeout`` without a connection; up to ``retries`` more
    follow. The first pause between two is at most ``first_backoff`` seconds, and the bound doubles every time. Without
    ``jitter`` pauses have their full length. An answer of more than ``longest`` bytes, decompressed, is a failure.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        payload: Callable[[Request], dict[str, Any] | bytes],
        read: Callable[[Request, str], A],
        *,
        max_in_flight: int,
        timeout: float,
        retries: int,
        first_backoff: float = 0.5,
        jitter: bool = True,
        connect_timeout: float | None = None,
        longest: int = LONGEST_ANSWER,
    ) -> None:
        self.endpoint, self._payload, self._read = endpoint, payload, read
        self.max_in_flight = max_in_flight
        self.timeout = timeout
        self.retries = retries
        self.first_backoff = first_backoff
        self.jitter = jitter
        self.connect_timeout = connect_timeout
        self.longest = longest
        self._random = random.Random()
        self._answered_once = False
        self._failing: list[str] = []
        self._resume_at = 0.0
        self._batches = 0
        self._slots: Semaphore
        self._proxy = _proxy_for(endpoint.url)
        self._url, self._headers = _as_sent(endpoint)
        self._types_itself = "content-type" in map(str.lower, endpoint.headers)

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

        import aiohttp

        if not self._batches:
            self._failing, self._slots = [], asyncio.Semaphore(self.max_in_flight)
        slots, waiting = self._slots, iter(enumerate(requests))

        async def work() -> None:
            async with slots:
                for position, request in waiting:
                    refusal = self._stopped() or refuse()
                    answer = await self._request(session, request) if refusal is None else Response[A](None, refusal)
                    await accept(position, answer)

        connector = aiohttp.TCPConnector(limit=self.max_in_flight, ssl=_ssl(self.endpoint.verify))
        limit = aiohttp.ClientTimeout(total=self.timeout, sock_connect=self.connect_timeout)
        async with aiohttp.ClientSession(
            connector=connector, timeout=limit, proxy=self._proxy, auto_decompress=False
        ) as session:
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

    async def _request(self, session: ClientSession, request: Request) -> Response[A]:
        """Try one request until it is answered or another attempt makes no sense."""
        start = monotonic()
        attempt = 0
        while True:
            attempt += 1
            await self._pause_asked_for()
            try:
                answer = await self._attempt(session, request)
            except HttpFault as fault:
                allowed = self.retries if fault.again is None else min(fault.again, self.retries)
                if attempt <= allowed:
                    await self._back_off(fault, attempt)
                    continue
                error = redact(str(fault))
                if fault.reason in SHARED:
                    self._failing.append(error)
                log.debug("%s: request failed after %d attempts: %s", self.endpoint.name, attempt, error)
                return Response(None, error, fault.status, attempt, monotonic() - start)
            self._answered_once = True
            self._failing.clear()
            return Response(answer, attempts=attempt, seconds=monotonic() - start)

    async def _attempt(self, session: ClientSession, request: Request) -> A:
        import asyncio

        import aiohttp

        try:
            # serialised here, since aiohttp's errors and debug lines would contain the whole body otherwise
            given = self._payload(request)
            body = given if isinstance(given, bytes) else _ENCODED(given).encode("utf-8", "replace")
        except Exception as err:
            detail = f"no request can be made of it ({type(err).__name__}: {err})"
            raise HttpFault("rejected", detail, again=0) from None
        own = {} if self._types_itself else {"Content-Type": "application/json"}
        headers = {**self._headers, **own, "Accept-Encoding": ENCODINGS}
        try:
            async with session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer:
                text = await body_text(answer, self.longest)
                if not 200 <= answer.status < 300:
                    raise status_fault(answer.status, text, answer.headers)
        except (TimeoutError, asyncio.TimeoutError):
            raise HttpFault("timeout", f"no answer within {self.timeout:g} s") from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as err:
            raise HttpFault("rejected", f"not an address: {err}", again=0) from None
        except aiohttp.ClientConnectorCertificateError as err:
            raise HttpFault("connection", f"certificate refused: {err.certificate_error}", again=0) from None
        except (aiohttp.ClientError, OSError) as err:
            # not repr(err): for some classes it includes the request's headers
            raise HttpFault("connection", f"{type(err).__name__}: {err}") from None
        return self._read(request, text)

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


def _proxy_for(url: str) -> str | None:
    """Return the environment's proxy, looked up once: aiohttp would look it up for every request, at half of its
    cost.
    """
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None else keep_address(proxy)


def _as_sent(endpoint: Endpoint) -> tuple[str, dict[str, str]]:
    """Return address and headers as requests carry them: a user in the address takes the place of a key, as in curl."""
    from base64 import b64encode
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(endpoint.url)
    if parts.username is None:
        return endpoint.url, dict(endpoint.headers)
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    kept = {name: value for name, value in endpoint.headers.items() if name.lower() != "authorization"}
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return bare, {**kept, "Authorization": f"Basic {b64encode(pair).decode()}"}


def _ssl(verify: bool | str) -> Any:
    if isinstance(verify, bool):
        return verify
    import ssl

    return ssl.create_default_context(cafile=verify)
