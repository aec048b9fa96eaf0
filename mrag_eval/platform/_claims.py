"""Claims: keys that one process at a time works on."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

from mrag_eval.platform._locking import try_lock

_TURN = threading.Lock()


class _File:
    """A file of claims in this process: its descriptor, None without one, and the places that this process holds.

    It is never closed: closing one descriptor of a file ends all claims of the process.
    """

    def __init__(self, path: Path) -> None:
        self.held: set[int] = set()
        try:
            self.descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            self.descriptor = None


_OPEN: dict[tuple[int, Path], _File] = {}


class Claims:
    """Claims on keys among all processes, and their threads, that name the same file, which stays empty.

    A claim is the kernel's lock on one byte. Nothing is written, and it ends with its process, however that ends.
    Where a file system has no locks, only the threads of one process exclude each other.
    """

    def __init__(self, path: Path) -> None:
        place = (os.getpid(), path)
        with _TURN:
            if place not in _OPEN:
                _OPEN[place] = _File(path)
            self._file = _OPEN[place]

    def take(self, key: str) -> bool:
        """Claim a key (hexadecimal digits); return False if it is claimed already."""
        place = _place(key)
        with _TURN:
            if place in self._file.held:
                return False
            if self._file.descriptor is not None and try_lock(self._file.descriptor, place) is False:
                return False
            self._file.held.add(place)
            return True

    def release(self, key: str) -> None:
        """Give up a claim of this process."""
        place = _place(key)
        with _TURN:
            self._file.held.discard(place)
            if self._file.descriptor is not None:
                with suppress(OSError):
                    fcntl.lockf(self._file.descriptor, fcntl.LOCK_UN, 1, place)


def _place(key: str) -> int:
    return int(key[:15], 16)
