"""Claims: keys that one process at a time works on."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

_OPENING = threading.Lock()
# Never closed: closing one descriptor of a file ends all claims of this process.
_OPEN: dict[tuple[int, Path], int | None] = {}


class Claims:
    """Claims on keys among all processes that name the same file, which stays empty.

    A claim is the kernel's lock on one byte. Nothing is written, and it ends with its process, however that ends.
    Threads of one process do not exclude each other. Where a file system has no locks, every claim succeeds.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = _opened(path)

    def take(self, key: str) -> bool:
        """Claim a key (hexadecimal digits); return False if another process has it."""
        if self._descriptor is None:
            return True
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def release(self, key: str) -> None:
        """Give up the claim on a key, if there is one."""
        if self._descriptor is not None:
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _place(key))
            except OSError:
                return


def _place(key: str) -> int:
    return int(key[:15], 16)


def _opened(path: Path) -> int | None:
    with _OPENING:
        place = (os.getpid(), path)
        if place not in _OPEN:
            try:
                _OPEN[place] = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError:
                _OPEN[place] = None
        return _OPEN[place]
