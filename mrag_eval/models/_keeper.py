"""Writer of answers to the cache as they arrive, with those of a few milliseconds in one commit."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from mrag_eval.core import Store
from mrag_eval.models._reply import Reply

log = logging.getLogger(__name__)


class Keeper:
    """The cache of one batch of calls; None for no cache.

    A cache that fails to read or write is reported once and then ignored: it must not stop a run.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._gathered: dict[str, Any] = {}
        self._turn = asyncio.Lock()

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the entries that are present, in one lookup."""
        if self._store is None:
            return {}
        try:
            return self._store.get_many(keys, Reply.is_stored)
        except (sqlite3.Error, ValueError) as err:
            self._give_up("read", err)
            return {}

    def put(self, answers: Mapping[str, Any]) -> None:
        """Commit now."""
        if self._store is None:
            return
        try:
            self._store.put_many(answers)
        except sqlite3.Error as err:
            self._give_up("written", err)

    async def keep(self, key: str, value: Any) -> None:
        """Commit, with any answers that arrived during the previous commit.

        Returns when the answer is on disk, so that a killed slot loses only its call in flight.
        """
        if self._store is None:
            return
        self._gathered[key] = value
        async with self._turn:
            if key in self._gathered:
                batch, self._gathered = self._gathered, {}
                await asyncio.to_thread(self.put, batch)

    def _give_up(self, what: str, err: Exception) -> None:
        path = self._store.path if self._store is not None else ""
        self._store = None
        log.warning("the cache %s cannot be %s (%s): going on without it", path, what, err)
