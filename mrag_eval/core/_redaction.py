"""Redaction of API keys in logs and messages."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from typing import Any

HIDDEN = "(hidden)"

_NAMED = re.compile(r"(?i)_?(key|token|secret|password)$")
# A shorter key could be an ordinary word, and hiding it everywhere would garble the logs.
_SHORTEST = 8
_HEADER = re.compile(
    r"""(?ix) (\b (?: proxy-)? authorization | \b (?: x-)? api-?_?key | \b x-goog-api-key )  # the name
        (['"]? \s* [:=,] \s* ['"]?) (?: (?: bearer | basic | token) \s+ )? [^\s'",;)}\]]+ """
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)[^\s'\",;)}\]]+")
_TOKENS = re.compile(r"\b(?:sk-[\w-]{16,}|(?:hf|gsk|ghp|r8)_[A-Za-z0-9]{20,}|(?:xai|nvapi)-[\w-]{20,}|AIza[\w-]{30,})")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` without ``secrets``, authorization headers, key-like strings and the environment's keys."""
    for value in (*secrets, *_environment_secrets()):
        text = text.replace(value, HIDDEN)
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return _TOKENS.sub(HIDDEN, text)


def _environment_secrets() -> list[str]:
    values = {v for k, v in os.environ.items() if _NAMED.search(k) and len(v) >= _SHORTEST}
    return sorted(values, key=len, reverse=True)


def install_redaction() -> None:
    """Redact every log record of this process from now on; calling it again changes nothing.

    The harness logs the headers of a failed request, key included, and asyncio logs them once more with the exception
    of a task that nobody awaited. A filter on one logger would miss the second, and records that reach a handler from a
    child logger; so records are redacted when they are created.
    """
    make = logging.getLogRecordFactory()
    if getattr(make, "redacts", False):
        return

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = make(*args, **kwargs)
        _redact_record(made)
        return made

    record.redacts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record)


def _redact_record(record: logging.LogRecord) -> None:
    try:
        message: str | None = record.getMessage()
    except Exception:  # a malformed log call, for which logging would print every argument
        message = None
    clean = f"(unreadable message, logged at {record.pathname}:{record.lineno})" if message is None else redact(message)
    if clean != message:
        record.msg, record.args = clean, ()
    if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
        text = logging.Formatter().formatException(record.exc_info)
        clean = redact(text)
        if clean != text:
            record.exc_text = clean
