"""JSON requests to one HTTP endpoint: bounded concurrency, retries, and each response passed on as it arrives."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrag_eval.platform._address import check_address, keep_address
from mrag_eval.platform._attempts import A, Attempts, Request
from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._http_body import ENCODINGS, LONGEST_ANSWER, body_text
from mrag_eval.platform._http_faults import HttpFault, status_fault
from mrag_eval.platform._keys import keep_header, key_in
from mrag_eval.platform._secrets import keep_secret
from mrag_eval.platform._template import with_variables

if TYPE_CHECKING:
    from aiohttp import ClientSession

# What the name of a header may hold (RFC 9110, 5.6.2).
HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ENCODED = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Endpoint:
    """The target of requests, and its name in messages. ``headers`` may hold a key, which is hidden from now on.

    Variables that address and headers name (``{env:NAME}``) are read here. Raises ConfigError for an address or a
    header that no request can be made of.
    """

    name: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    verify: bool | str = True

    def __post_init__(self) -> None:
        url, headers = with_variables(self.url, self.name), with_variables(self.headers, self.name)
        if url != self.url:
            keep_secret(url, self.url)
        check_address(url, self.name)
        object.__setattr__(self, "url", url)
        object.__setattr__(self, "headers", headers)
        for name, value in headers.items():
            if HEADER.fullmatch(name) is None:
                raise ConfigError(f"{self.name}: {name!r} is no name of a header", "write letters, digits and hyphens")
            keep_header(name, value, f"{self.name}: the value of the header {name}")


def bearer(variable: str | None, owner: str) -> dict[str, str]:
    """Return the header with the key in an environment variable, or none for None; raise ConfigError if it is not
    set.
    """
    return {} if variable is None else {"Authorization": f"Bearer {key_in(variable, owner)}"}


class Transport(Attempts[Request, A]):
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
        super().__init__(
            endpoint.name,
            max_in_flight=max_in_flight,
            timeout=timeout,
            retries=retries,
            first_backoff=first_backoff,
            jitter=jitter,
        )
        self.endpoint, self._payload, self._read = endpoint, payload, read
        self.connect_timeout = connect_timeout
        self.longest = longest
        self._proxy = _proxy_for(endpoint.url)
        self._url, self._headers = _as_sent(endpoint)
        self._types_itself = "content-type" in map(str.lower, endpoint.headers)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ClientSession]:
        """Yield a session with a connection for each request in flight."""
        import aiohttp

        connector = aiohttp.TCPConnector(limit=self.max_in_flight, ssl=_ssl(self.endpoint.verify))
        limit = aiohttp.ClientTimeout(total=self.timeout, sock_connect=self.connect_timeout)
        async with aiohttp.ClientSession(
            connector=connector, timeout=limit, proxy=self._proxy, auto_decompress=False
        ) as session:
            yield session

    async def attempt(self, session: ClientSession, request: Request) -> A:
        """Return what ``read`` finds in the response to one request."""
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
