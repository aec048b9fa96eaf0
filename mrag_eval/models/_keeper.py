"""Writes answers to the cache as they arrive, those of a few milliseconds together."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from mrag_eval.core import Store

log = logging.getLogger(__name__)


class Keeper:
    """The cache of one batch of calls. None: no cache.

    A cache that cannot be read or written is said once and done without: it must not take a run down.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._gathered: dict[str, Any] = {}
        self._turn = asyncio.Lock()

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """What is there, in one lookup."""
        if self._store is None:
            return {}
        try:
            return self._store.get_many(keys)
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
        """Commit, with whatever arrived while the commit before was under way.

        Returns when the answer is on disk: a slot that waits for it loses, killed, only what it has in flight.
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
