"""What logs, messages and the screen show: no secrets, and nothing that a terminal obeys."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from mrag_eval.platform._secrets import HIDDEN, hide
from mrag_eval.platform._visible import visible, visible_line

_HEADER = re.compile(
    r"""(?ix) (\b (?: proxy-)? authorization | \b (?: x-)? api-?_?key | \b x-goog-api-key )  # the name
        (['"]? \s* [:=,] \s* ['"]?) (?: (?: bearer | basic | token) \s+ )? [^\s'",;)}\]]+ """
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)[^\s'\",;)}\]]+")
_TOKENS = re.compile(r"\b(?:sk-[\w-]{16,}|(?:hf|gsk|ghp|r8)_[A-Za-z0-9]{20,}|(?:xai|nvapi)-[\w-]{20,}|AIza[\w-]{30,})")


def redact(text: str) -> str:
    """Return ``text`` without secrets known by value, authorization headers and key-like strings."""
    text = hide(text)
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return _TOKENS.sub(HIDDEN, text)


@contextmanager
def guarded_screen() -> Iterator[None]:
    """Hide known secrets in whatever the block prints, and escape the characters that a terminal would obey.

    Texts of models, data and files reach the screen only through these two streams.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Guarded(sys.stdout, visible), _Guarded(sys.stderr, visible_line)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Guarded:
    """A text stream that hides known secrets in every write, and shows the rest as ``shown`` does."""

    def __init__(self, stream: TextIO, shown: Callable[[str], str]) -> None:
        self._stream, self._shown = stream, shown

    @property
    def rich_proxied_file(self) -> _Guarded:
        """Return the stream to which rich writes the colours that it adds."""
        return _Guarded(self._stream, str)

    def write(self, text: str) -> int:
        self._stream.write(self._shown(hide(text)))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def install_redaction() -> None:
    """Redact every log record of this process from now on, and escape its control characters, whoever prints it.

    Calling it again changes nothing.

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
    clean = (
        f"(unreadable message, logged at {record.pathname}:{record.lineno})"
        if message is None
        else visible(redact(message))
    )
    if clean != message:
        record.msg, record.args = clean, ()
    if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
        text = logging.Formatter().formatException(record.exc_info)
        clean = visible(redact(text))
        if clean != text:
            record.exc_text = clean
