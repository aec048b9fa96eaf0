"""Build locks: one builder at a time for each path.

Implemented here because filelock leaves its file in the folder of a user's indexes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mrag_eval.core._errors import CorpusError
from mrag_eval.core._waits import Wait


@contextmanager
def build_lock(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of ``path``; the kernel releases it when the process ends, however it ends.

    With ``wait`` the call blocks until the other builder is done, else it raises CorpusError. It also raises
    CorpusError for a folder that cannot be created or written to.
    """
    lock = path.parent / f".{path.name}.lock"
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CorpusError(
                f"cannot build an index at {path}: {error.strerror or error} ({path.parent})",
                "choose a folder that can be written to; for cached indexes: export MRAG_CACHE=FOLDER",
            ) from None
        try:
            with Wait(f"waiting for another process to finish {path.name}", shown=wait):
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise CorpusError(
                f"another process is building {path}", "wait for it, or build under another path"
            ) from None
        try:
            # the previous holder removed the file: the lock is on a file that nobody else will see
            current = lock.stat().st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            current = False
        if current:
            break
        os.close(descriptor)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)
