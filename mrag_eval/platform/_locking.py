"""Locks between processes: the kernel ends them with their process, however that ends.

Implemented here because filelock leaves its file in the folder of a user's indexes.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from mrag_eval.platform._errors import CorpusError
from mrag_eval.platform._waits import Wait

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Seconds between two looks at another process's lock, and until the wait for it is logged.
_PAUSE, _SILENT = 0.1, 2.0


def try_lock(file: int, place: int | None = None) -> bool | None:
    """Lock an open file, or the byte at ``place`` of it, without waiting.

    Returns:
        True if the lock is held now, False if another process holds it, None where the file system has no locks
        (``ENOLCK``, usual for network drives of clusters).
    """
    try:
        if place is None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):  # POSIX allows either
        return False
    except OSError:
        return None
    return True


def has_locks(folder: Path) -> bool:
    """Return whether the file system of a folder has locks; raise OSError if no file can be made there."""
    # in a file of its own: closing one would end this process's other locks on it
    with tempfile.TemporaryFile(dir=folder) as file:
        return try_lock(file.fileno()) is not None


@contextmanager
def build_lock(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of ``path``: one builder at a time.

    With ``wait`` the call blocks until the other builder is done, and logs whom it waits for; else it raises
    CorpusError. It also raises CorpusError for a folder that cannot be created or written to. On a file system without
    locks only the processes of this machine exclude each other.
    """
    with Wait(f"waiting for another process to finish {path.name}", shown=wait):
        file, lock = _locked(path, wait)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(file)


def _locked(path: Path, wait: bool) -> tuple[int, Path]:
    """Return the open file that is locked for ``path``, and where it is."""
    lock, local = path.parent / f".{path.name}.lock", False
    asked, told = time.monotonic(), False
    while True:
        file = _opened(lock, path)
        held = try_lock(file)
        if held is None and not local:
            os.close(file)
            lock.unlink(missing_ok=True)
            key = hashlib.sha256(os.fsencode(lock.resolve())).hexdigest()
            lock, local = Path(tempfile.gettempdir()) / f"mrag-eval-{os.getuid()}-{key[:24]}.lock", True
            _warn(path.parent)
            continue
        # the holder may have removed the file meanwhile: then the lock is on a file that nobody else will see
        if held is not False and _is_at(file, lock):
            with suppress(OSError):  # a full disk
                os.ftruncate(file, 0)
                os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
            return file, lock
        holder = os.pread(file, 200, 0).decode("utf-8", "replace") or "another process"
        os.close(file)
        if held is False and not wait:
            raise CorpusError(
                f"another process is building {path}", f"wait for {holder} to end, or build under another path"
            )
        if not told and time.monotonic() - asked > _SILENT:
            told = True
            log.warning("waiting for %s, which builds %s (if it is stopped: kill -CONT lets it go on)", holder, path)
        time.sleep(_PAUSE if held is False else 0)


@cache
def _warn(folder: Path) -> None:
    log.warning("%s: no locks on this file system: write there from one machine at a time", folder)


def _opened(lock: Path, path: Path) -> int:
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise CorpusError(
            f"cannot build an index at {path}: {error.strerror or error} ({lock.parent})",
            "choose a folder that can be written to; for cached indexes: export MRAG_CACHE=FOLDER",
        ) from None


def _is_at(file: int, lock: Path) -> bool:
    try:
        return lock.stat().st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False
