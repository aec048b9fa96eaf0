"""Faults of HTTP requests, and whether another attempt can help."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

# Longest pause, in seconds, to accept from a server.
LONGEST_PAUSE = 300.0

_TRANSIENT = {408: "timeout", 409: "conflict", 425: "too_early", 429: "rate_limit"}
_PERMANENT = {401: "auth", 402: "quota", 403: "auth", 404: "not_found"}

# Reasons that concern every request alike: after a run of them the next request would fail as well.
SHARED = frozenset({"auth", "not_found", "quota", "connection", "rate_limit", "timeout", "server"})


class HttpFault(Exception):
    """One failed attempt at a request.

    Failures are counted by ``reason``. ``again`` is the number of further attempts that make sense; None leaves it to
    the caller's settings. ``pause`` is the wait that the server asks for, in seconds; ``status`` the HTTP status, if
    any.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        again: int | None = None,
        pause: float | None = None,
        status: int | None = None,
    ) -> None:
        self.reason, self.detail, self.again, self.pause, self.status = reason, detail, again, pause, status
        super().__init__(f"{reason}: {detail}")


def status_fault(status: int, body: str, headers: Mapping[str, str]) -> HttpFault:
    """Return the fault for an HTTP status other than 2xx."""
    excerpt = " ".join(body.split())[:300]
    detail = f"HTTP {status}" + (f", {excerpt}" if excerpt else "")
    if status == 429 and "insufficient_quota" in body:
        return HttpFault("quota", detail, again=0, status=status)
    reason = _TRANSIENT.get(status) or ("server" if status >= 500 else None)
    if reason is None:
        return HttpFault(_PERMANENT.get(status, "rejected"), detail, again=0, status=status)
    pause = retry_after(headers.get("Retry-After"))
    if pause is not None and pause > LONGEST_PAUSE:
        return HttpFault(reason, f"{detail} (asks to wait {pause:.0f} s)", again=0, status=status)
    return HttpFault(reason, detail, pause=pause, status=status)


def retry_after(value: str | None) -> float | None:
    """Return the seconds to wait, from the header's seconds or HTTP date; None for anything else (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    from email.utils import parsedate_to_datetime

    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
