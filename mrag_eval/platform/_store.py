"""Key-value store on disk: SQLite, JSON values, safe for several processes, private to its owner."""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.platform._errors import ConfigError
from mrag_eval.platform._json_text import JsonFault, json_value
from mrag_eval.platform._locking import has_locks

# A child of the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


def content_key(*parts: Any) -> str:
    """Return the SHA-256 over the canonical JSON of everything that can change a value."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# Milliseconds for which a statement waits for another process.
_PATIENCE = 60_000
_ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _connected(path: Path, durable: bool) -> sqlite3.Connection:
    """Open the file, waiting for other processes that open or close it at this moment.

    SQLite itself does not wait where two connections change to WAL mode at once: one of them is told "locked".
    """
    end = time.monotonic() + _PATIENCE / 1000
    while True:
        try:
            return _connected_at_once(path, durable)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _connected_at_once(path: Path, durable: bool) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_PATIENCE / 1000, check_same_thread=False, isolation_level=None)
    try:
        # before any change, as the file may belong to another program
        if [column[1] for column in db.execute("PRAGMA table_info(entries)")] not in ([], ["key", "value"]):
            raise sqlite3.DatabaseError("it holds other tables")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        db.execute("CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db


def _not_writable(path: Path, error: OSError | sqlite3.Error) -> ConfigError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ConfigError(
        f"the cache {path} cannot be used ({reason})",
        "name a folder of a local disk that can be written to: export MRAG_CACHE=FOLDER",
    )


class Store:
    """Store of ``key -> JSON value`` in one file. Reads and writes are bulk; a write is committed before it returns.

    The file is created with mode 600 and in WAL mode, so that readers and one writer at a time (of any process) do not
    disturb each other. A file that is damaged or has other content is moved aside with a warning, and the store
    restarts empty. If ``durable``, a write also outlives a power failure, for about 4 ms each. Raises
    ConfigError if the folder cannot be written to.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path, self._durable = path, durable
        self._lock = threading.Lock()
        self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600, exist_ok=True)
            self._inode = self.path.stat().st_ino
            if not has_locks(self.path.parent):  # SQLite would wait for a minute, and say that it is locked
                raise OSError(errno.ENOLCK, "its file system has no locks")
            return _connected(self.path, self._durable)
        except (OSError, sqlite3.OperationalError) as error:  # read-only, full, locked: the content may be valid
            raise _not_writable(self.path, error) from None
        except sqlite3.DatabaseError as error:
            self._move_aside(error)
            return self._opened()

    def _move_aside(self, error: sqlite3.DatabaseError) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        try:
            if self.path.stat().st_ino != self._inode:  # another process was faster and has created a new file
                return
            self.path.rename(aside)
            # SQLite would replay the old file's write-ahead log into the new one
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        except FileNotFoundError:
            return
        except OSError as fault:
            raise _not_writable(self.path, fault) from None
        log.warning("%s is damaged (%s): moved to %s, continuing with an empty cache", self.path, error, aside.name)

    def _restart_empty(self, error: sqlite3.DatabaseError) -> None:
        """Continue with an empty file if the old one is damaged; raise any other error."""
        if isinstance(error, sqlite3.OperationalError):
            raise _not_writable(self.path, error) from None
        if type(error) is not sqlite3.DatabaseError:  # a closed connection, for example: the file is valid
            raise error
        self._db.close()
        self._move_aside(error)
        self._db = self._opened()

    def get_many(self, keys: Iterable[str], valid: Callable[[Any], bool] = lambda _: True) -> dict[str, Any]:
        """Return the values of the keys that are present.

        An entry that is not JSON, or that ``valid`` refuses, is left out with a warning, as if it were absent; the
        value that the caller then finds replaces it.
        """
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Any] = {}
        damaged = 0
        with self._lock:
            for start in range(0, len(wanted), 500):
                chunk = wanted[start : start + 500]
                marks = ",".join("?" * len(chunk))
                try:
                    rows = self._db.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", chunk).fetchall()
                except sqlite3.DatabaseError as error:
                    self._restart_empty(error)
                    break
                for key, text in rows:
                    try:
                        value = json_value(text, lax="all")
                    except (JsonFault, TypeError, AttributeError):
                        continue
                    if valid(value):
                        found[key] = value
                damaged += len(rows) - sum(key in found for key, _ in rows)
        if damaged:
            log.warning("%s: damaged entries left out: %d; they are found again and replaced", self.path, damaged)
        return found

    def put_many(self, entries: Mapping[str, Any], *, wait: bool = True) -> bool:
        """Insert or replace entries; committed on return.

        Without ``wait``, return False if that cannot be done at once, as another thread or process is writing.
        """
        rows = [(key, _ENCODED(value)) for key, value in entries.items()]
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            return self._put(rows) if wait else self._put_at_once(rows)
        finally:
            self._lock.release()

    def _put(self, rows: list[tuple[str, str]]) -> bool:
        try:
            self._write(rows)
        except sqlite3.DatabaseError as error:
            self._restart_empty(error)
            self._write(rows)
        return True

    def _put_at_once(self, rows: list[tuple[str, str]]) -> bool:
        try:
            self._db.execute("PRAGMA busy_timeout=0")
            try:
                self._write(rows)
            finally:
                self._db.execute(f"PRAGMA busy_timeout={_PATIENCE}")
        except sqlite3.DatabaseError:
            return False
        return True

    def _write(self, rows: list[tuple[str, str]]) -> None:
        self._run("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows)

    def _run(self, statement: str, rows: Sequence[tuple[str, ...]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except BaseException:
            # an open transaction would keep every other process from writing
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def remove(self, keys: Iterable[str]) -> None:
        """Remove entries; committed on return."""
        with self._lock:
            self._run("DELETE FROM entries WHERE key = ?", [(key,) for key in keys])

    def close(self) -> None:
        """Close the connection after any write in progress; the store must not be used afterwards."""
        with self._lock:
            self._db.close()


_OPENING = threading.Lock()
# A forked process must neither use nor close a connection that its parent opened.
_OPEN: dict[tuple[int, Path], Store] = {}


def shared_store(path: Path) -> Store:
    """Return this process's one store at ``path``, closed at exit: several would wait for each other at every write.

    It holds answers that were paid for, so it is durable.
    """
    with _OPENING:
        place = (os.getpid(), path)
        if place not in _OPEN:
            _OPEN[place] = Store(path, durable=True)
        return _OPEN[place]


def close_stores() -> None:
    """Close the stores that this process shares; the next use opens them again."""
    with _OPENING:
        for place in [place for place in _OPEN if place[0] == os.getpid()]:
            _OPEN.pop(place).close()


atexit.register(close_stores)
