"""Writer of answers to the cache as they arrive."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mrag_eval.models._reply import Reply
from mrag_eval.platform import MragError, Store

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_FAULTS = (sqlite3.Error, MragError, OSError)
_REPORTED: set[tuple[Path, str]] = set()


class Keeper:
    """The cache of one batch of calls; None for no cache. An entry that is not ``valid`` is none.

    A cache that fails to read or write is ignored for the batch, and reported once: it must not stop a run.
    """

    def __init__(self, store: Store | None, valid: Callable[[Any], bool] = Reply.is_stored) -> None:
        self._store, self._valid = store, valid
        self._gathered: dict[str, Any] = {}
        self._next: asyncio.Task[None] | None = None  # commits what is gathered
        self._turn = asyncio.Lock()

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the entries that are present, in one lookup."""
        if self._store is None:
            return {}
        try:
            return self._store.get_many(keys, self._valid)
        except (*_FAULTS, ValueError) as err:
            self._give_up("read", err)
            return {}

    def put(self, answers: Mapping[str, Any]) -> None:
        """Commit now."""
        if self._store is None:
            return
        try:
            self._store.put_many(answers)
        except _FAULTS as err:
            self._give_up("written", err)

    async def keep(self, key: str, value: Any) -> None:
        """Commit, and return when the answer is on disk, so that a killed slot loses only its call in flight.

        While another process writes, answers are gathered and committed together. A slot that is cancelled does not
        take the commit with it.
        """
        if self._store is None:
            return
        # a commit takes some 40 microseconds; slots that wait for a common one send their next calls together, and
        # all of those are late
        if self._next is None and self._put_at_once({key: value}):
            return
        self._gathered[key] = value
        if self._next is None:
            self._next = asyncio.create_task(self._commit())
        await asyncio.shield(self._next)

    async def _commit(self) -> None:
        async with self._turn:
            batch, self._gathered, self._next = self._gathered, {}, None
            # a thread would have to wait for this one to be idle, and the answers for the thread
            if not self._put_at_once(batch):
                await asyncio.to_thread(self.put, batch)

    def _put_at_once(self, answers: Mapping[str, Any]) -> bool:
        try:
            return self._store is None or self._store.put_many(answers, wait=False)
        except _FAULTS:
            return False

    def _give_up(self, what: str, err: Exception) -> None:
        if self._store is None:
            return
        path, self._store = self._store.path, None
        if (path, what) in _REPORTED:
            return
        _REPORTED.add((path, what))
        said = err.message if isinstance(err, MragError) else f"the cache {path} cannot be {what} ({err})"
        room = "; free some space, since calls that are not in the cache are paid for again" if "full" in said else ""
        log.warning("%s: going on without it%s", said, room)
