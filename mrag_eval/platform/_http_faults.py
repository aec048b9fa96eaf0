"""Faults of HTTP requests, and whether another attempt can help."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from mrag_eval.platform._errors import DataError
from mrag_eval.platform._json_text import JsonFault, check_keys, json_value

# Longest pause, in seconds, to accept from a server.
LONGEST_PAUSE = 300.0

_TRANSIENT = {408: "timeout", 409: "conflict", 425: "too_early", 429: "rate_limit"}
_PERMANENT = {401: "auth", 402: "quota", 403: "auth", 404: "not_found"}
# The statuses behind the codes and types of providers' errors; any other error of a provider is its server's.
_CODES = {
    "authentication_error": 401, "invalid_api_key": 401, "permission_error": 403, "insufficient_quota": 402,
    "billing_error": 402, "not_found_error": 404, "model_not_found": 404, "rate_limit_error": 429,
    "rate_limit_exceeded": 429, "invalid_request_error": 400, "context_length_exceeded": 400, "timeout_error": 408,
}  # fmt: skip
# How providers name their content filter: codes, and the words of those that have no code for it.
_FILTER_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "data_inspection_failed",
     "datainspectionfailed", "moderation_blocked", "sensitive"}
)  # fmt: skip
_FILTER_WORDS = ("content management policy", "content filtering policy", "content exists risk")

# Where an error has its words, and where an answer has what was asked for, in the formats of providers.
_TELLING = ("message", "msg", "detail", "errors")
_ANSWERS = ("choices", "content", "data", "results", "embeddings", "text", "generated_text", "meta_info")
# What else is read of such an answer.
_BESIDE = ("error", "object", "usage", "model", "stop_reason")
# A model sometimes gives a broken body to a request that succeeds on the second attempt.
BROKEN_AGAIN = 2

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
    place = headers.get("Location") if 300 <= status < 400 else None
    # not followed, since the key would be sent there
    moved = "" if place is None else f", the address redirects to {urlsplit(place)._replace(query='').geturl()}"
    detail = f"HTTP {status}{moved}" + (f", {excerpt}" if excerpt else "")
    if 400 <= status < 500 and _is_filtered(_parsed(body)):
        return HttpFault("content_filter", detail, again=0, status=status)
    if status == 429 and "insufficient_quota" in body:
        return HttpFault("quota", detail, again=0, status=status)
    reason = _TRANSIENT.get(status) or ("server" if status >= 500 else None)
    if reason is None:
        return HttpFault(_PERMANENT.get(status, "rejected"), detail, again=0, status=status)
    pause = retry_after(headers.get("Retry-After"))
    if pause is not None and pause > LONGEST_PAUSE:
        return HttpFault(reason, f"{detail} (asks to wait {pause:.0f} s)", again=0, status=status)
    return HttpFault(reason, detail, pause=pause, status=status)


def json_answer(body: str, read: Iterable[str] = ()) -> Any:
    """Return the JSON value of a response with status 200, of which ``read`` are the keys that are read.

    By default those in which providers answer. Raises HttpFault for anything but JSON, for a key that is read and comes
    twice with different values, and for an error that the body holds instead of an answer.
    """
    answer = json_body(body)
    for one in answer if isinstance(answer, list) else [answer]:
        known = {*_ANSWERS, *_BESIDE} if isinstance(one, dict) and one.keys() & {*_ANSWERS} else one
        try:
            check_keys(one, (*read, *_BESIDE) if read else known, "the answer")
        except DataError as fault:
            raise HttpFault("malformed", fault.message, again=BROKEN_AGAIN) from None
    refuse_error(answer)
    return answer


def json_body(body: str) -> Any:
    """Return the JSON value of a response, an error as well; raise HttpFault for anything but JSON."""
    try:
        return json_value(body.removeprefix("\ufeff"), lax="numbers", told=True)
    except JsonFault:
        raise HttpFault("malformed", f"the answer is not JSON: {body[:80]!r}", again=BROKEN_AGAIN) from None


def refuse_error(answer: Any, *, read: bool = False) -> None:
    """Raise HttpFault for an answer that says it is an error.

    Words such as ``message`` say so only of one in which nothing else is known; ``read`` tells that more was.
    """
    if not isinstance(answer, Mapping):
        return
    if answer.get("error") or answer.get("object") == "error":
        raise error_fault(answer.get("error") or answer)
    told = any(answer.get(name) and not isinstance(answer[name], Mapping) for name in _TELLING)
    if told and not read and not any(name in answer for name in _ANSWERS):
        raise error_fault(answer)


def error_fault(error: Any) -> HttpFault:
    """Return the fault for an error that a body holds, sent with status 200 or beside a choice."""
    fields = list(_fields(error))
    message = next((text for name, text in fields if name in _TELLING), "") or str(error)
    detail = f"the answer is an error: {' '.join(message.split())[:300]}"
    if _is_filtered(error):
        return HttpFault("content_filter", detail, again=0)
    codes = [text.lower() for name, text in fields if name in ("code", "type", "status")]
    known = (int(code) if code.isdecimal() and len(code) == 3 else _CODES.get(code) for code in codes)
    status = next((code for code in known if code), 0)
    reason = _TRANSIENT.get(status) or _PERMANENT.get(status) or ("rejected" if 400 <= status < 500 else "server")
    return HttpFault(reason, detail, again=None if status in _TRANSIENT or reason == "server" else 0)


def _is_filtered(error: Any) -> bool:
    """Return whether an error says that a provider refused the text by its own rules, whatever the model."""
    return any(
        value.lower() in _FILTER_CODES if name != "message" else any(words in value.lower() for words in _FILTER_WORDS)
        for name, value in _fields(error)
    ) or "flagged_input" in dict(_fields(error))


def _fields(error: Any, depth: int = 4) -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers of an error with their names, those of the errors within it as well."""
    if isinstance(error, str):
        yield "message", error
    elif isinstance(error, Mapping) and depth:
        for name, value in error.items():
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Mapping):
                    yield from _fields(inner, depth - 1)
            if isinstance(value, Mapping | list):
                continue
            if isinstance(value, str | int):
                yield name, str(value)


def _parsed(body: str) -> Any:
    try:
        return json_value(body, lax="numbers")
    except JsonFault:
        return None


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
