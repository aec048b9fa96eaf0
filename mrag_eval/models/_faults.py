"""What can go wrong with a call, and whether trying again can help."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# A server that asks for a longer pause than this is not waited for.
LONGEST_PAUSE = 300.0

_TRANSIENT = {408: "timeout", 409: "conflict", 425: "too_early", 429: "rate_limit"}
_PERMANENT = {401: "auth", 402: "quota", 403: "auth", 404: "not_found"}

# Reasons that concern every call alike: a run of them means that the next call will fare no better.
SHARED = frozenset({"auth", "not_found", "quota", "connection", "rate_limit", "timeout", "server"})


class Fault(Exception):
    """One failed attempt.

    ``reason`` is the kind by which failures are counted. ``again`` says how often trying again makes sense: None as
    often as the model's settings allow, else at most so often. ``pause`` is what the server asks to wait, in seconds.
    """

    def __init__(self, reason: str, detail: str, *, again: int | None = None, pause: float | None = None) -> None:
        self.reason, self.detail, self.again, self.pause = reason, detail, again, pause
        super().__init__(f"{reason}: {detail}")


def status_fault(status: int, body: str, headers: Mapping[str, str]) -> Fault:
    """The fault behind an HTTP status other than 2xx."""
    excerpt = " ".join(body.split())[:300]
    detail = f"HTTP {status}" + (f", {excerpt}" if excerpt else "")
    if status == 429 and "insufficient_quota" in body:
        return Fault("quota", detail, again=0)
    reason = _TRANSIENT.get(status) or ("server" if status >= 500 else None)
    if reason is None:
        return Fault(_PERMANENT.get(status, "rejected"), detail, again=0)
    pause = retry_after(headers.get("Retry-After"))
    if pause is not None and pause > LONGEST_PAUSE:
        return Fault(reason, f"{detail} (asks to wait {pause:.0f} s)", again=0)
    return Fault(reason, detail, pause=pause)


def retry_after(value: str | None) -> float | None:
    """Seconds to wait, from the header's seconds or its HTTP date; None where it says neither (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
