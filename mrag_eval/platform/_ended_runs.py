"""Cached replies that only a repetition of their run may use: once a run has ended well, the next asks anew.

The name and the address of a model say nothing of its weights, so a new checkpoint behind them must not be given the
replies of the one before it.
"""

from __future__ import annotations

import atexit
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from mrag_eval.platform._errors import MragError
from mrag_eval.platform._store import shared_store

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_ENDED: dict[Path, set[str]] = {}
_REPEATED: ContextVar[bool] = ContextVar("whether a longer run follows", default=False)


def run_ended(cache: Path, keys: Iterable[str]) -> None:
    """Note that the run of these entries has ended well: they are removed once its results are written."""
    if _REPEATED.get():
        return
    _remove_at_exit()
    _ENDED.setdefault(cache, set()).update(keys)


def keep_for_repetition() -> None:
    """Keep the entries after all, as the results are not written."""
    _ENDED.clear()


@contextmanager
def repeated_later() -> Iterator[None]:
    """Keep the entries of the runs within the block for a longer run of the same rows."""
    token = _REPEATED.set(True)
    try:
        yield
    finally:
        _REPEATED.reset(token)


def remove_ended() -> None:
    """Remove the entries of runs that have ended. At its exit, a process does so by itself."""
    while _ENDED:
        cache, keys = _ENDED.popitem()
        try:
            shared_store(cache).remove(keys)
        except (MragError, OSError, sqlite3.Error) as error:
            log.warning("the cache %s: replies of an ended run are not removed (%s)", cache, error)


@lru_cache(maxsize=1)
def _remove_at_exit() -> None:
    # what is registered last is called first: before the stores are closed, and before a command that failed ends
    atexit.register(remove_ended)
