"""Errors that a user can act on: one line that names the fault and its place, then the next step."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from mrag_eval.platform._secrets import hide
from mrag_eval.platform._visible import visible


class MragError(Exception):
    """Base of every error this package raises on purpose.

    Args:
        message: the fault and its place (file, key, row), in one line.
        next_step: the command or setting that fixes it; printed indented below the message.

    Secrets that are known by value are hidden in both, and control characters, as a file's name may have, are escaped.
    So are line ends in the message.
    """

    # of the command that raises it
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, next_step: str | None = None) -> None:
        self.message = visible(hide(message)).replace("\n", "\\u000a")
        self.next_step = None if next_step is None else visible(hide(next_step))
        super().__init__(self.message if next_step is None else f"{self.message}\n    {self.next_step}")

    def _render_traceback_(self) -> list[str]:
        # a notebook shows these lines in place of the calls that led here
        return [f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[type[MragError], tuple[str, str | None]]:
        # errors are pickled between worker processes, which by default loses the next step
        return type(self), (self.message, self.next_step)


class ConfigError(MragError):
    """A configuration block, command-line override or config file is wrong."""


class DataError(MragError):
    """A benchmark file or row is missing, malformed or lacks a field that the mode needs."""


class CorpusError(MragError):
    """A corpus or an index is missing, damaged or does not fit the request."""


class MetricError(MragError, ValueError):
    """Input that a metric cannot score (mismatched lengths, unknown languages, ...)."""


class UnwrittenError(MragError):
    """Results are not where they should be; the run that made them is over."""

    exit_code = 1


class MissingExtraError(MragError, ImportError):
    """An optional dependency is not installed."""


def missing_extra(extra: str, package: str) -> MissingExtraError:
    """Return the error for a missing optional dependency, which names the package and its extra."""
    return MissingExtraError(
        f"'{package}' is not installed, it comes with the extra '{extra}'",
        f'pip install "mrag-eval[{extra}]"',
    )


def fault_in(error: Exception) -> str:
    """Return what is wrong with a record from elsewhere, by the error that reading it raised."""
    if isinstance(error, KeyError):
        return f"no key {error.args[0]!r:.80}"
    if isinstance(error, TypeError | AttributeError):
        return "a key or a value that it does not have"
    said = error.message if isinstance(error, MragError) else error.strerror if isinstance(error, OSError) else error
    return f"{said!s:.200}"


def close_match(wrong: str, allowed: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``"; did you mean 'x'?"`` for a close match, an empty text if there is none.

    A name that begins with the whole word is closer than one that looks like it.
    """
    names = sorted(allowed)
    longer = [name for name in names if len(wrong) > 3 and re.match(rf"{re.escape(wrong)}[-_.]", name, re.IGNORECASE)]
    typed = difflib.get_close_matches(wrong, names, n=1, cutoff=0.85)
    close = typed or longer or difflib.get_close_matches(wrong, names, n=1, cutoff=cutoff)
    return f"; did you mean '{close[0]}'?" if close else ""


def no_file(path: Path) -> str:
    """Return what is wrong with a path that is no regular file: a pipe, a folder, or nothing, with the closest name."""
    if path.is_dir():
        return "a folder, not a file"
    return "a pipe or a device, not a file" if path.exists() else f"no such file{beside(path)}"


def beside(path: Path) -> str:
    """Return ``"; did you mean 'x'?"`` for the file of a folder whose name is closest to that of a missing one."""
    try:
        names = [name.name for name in path.parent.iterdir()] if not path.exists() else []
    except OSError:
        return ""
    return close_match(path.name, names, 0.7)


def did_you_mean(wrong: str, allowed: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for a close match, else the list of allowed values."""
    names = sorted(allowed)
    return close_match(wrong, names) or f"; allowed: {', '.join(names)}"


def one_of(key: str, value: str | None, allowed: Iterable[str]) -> None:
    """Raise ConfigError for a value, other than None, that is not among ``allowed``."""
    names = tuple(allowed)
    if value is not None and value not in names:
        raise ConfigError(f"{key}: '{value}' is not one of its values", f"one of {', '.join(names)}")


@contextmanager
def suggesting(next_step: str) -> Iterator[None]:
    """Add a next step to an error that leaves the block without one.

    For readers of files: the reader knows the fault of a line, and its caller knows the remedy for the file.
    """
    try:
        yield
    except MragError as err:
        if err.next_step is not None:
            raise
        raise type(err)(err.message, next_step) from None


@contextmanager
def naming(task: str) -> Iterator[None]:
    """Prefix the message of an error that leaves the block with the task's name."""
    try:
        yield
    except MragError as err:
        if err.message.startswith("task "):
            raise
        raise type(err)(f"task {task}: {err.message}", err.next_step) from None
