"""A key-value store on disk: SQLite, JSON values, safe for several processes, private to its owner."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def content_key(*parts: Any) -> str:
    """SHA-256 over the canonical JSON of everything that can change a value."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Store:
    """``key -> JSON value`` in one file. Reads and writes are bulk; a write is committed before it returns.

    The file is created with mode 600 and in WAL mode, so that readers and one writer at a time (of any process) do not
    disturb each other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")

    def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of those keys that are present."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Any] = {}
        with self._lock:
            for start in range(0, len(wanted), 500):
                chunk = wanted[start : start + 500]
                marks = ",".join("?" * len(chunk))
                rows = self._db.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", chunk)
                found.update((key, json.loads(value)) for key, value in rows)
        return found

    def put_many(self, entries: Mapping[str, Any]) -> None:
        """Insert or replace; committed when this returns."""
        rows = [(key, json.dumps(value, ensure_ascii=False, separators=(",", ":"))) for key, value in entries.items()]
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows)
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the connection; the store must not be used afterwards."""
        self._db.close()
