"""Files that are written completely or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape as glob_escape
from pathlib import Path
from tempfile import mkstemp

from mrag_eval.core._secrets import hide


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``; at the end of the block that file replaces ``path``.

    If the block raises, the temporary file is removed and ``path`` is unchanged. The folder is created if needed.
    Temporary files that killed processes left for the same path are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left(path)
    descriptor, name = mkstemp(prefix=f"{path.name}.", suffix=_SUFFIX, dir=path.parent)
    part = Path(name)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.chmod(0o666 & ~_UMASK)
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
        os.close(descriptor)


_SUFFIX = ".part"
# can only be read by setting it, which would affect other threads later
_UMASK = os.umask(0o022)
os.umask(_UMASK)


def _remove_left(path: Path) -> None:
    # the kernel ends a lock with its process
    for left in path.parent.glob(f"{glob_escape(path.name)}.*{_SUFFIX}"):
        with suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def write_whole(path: Path, text: str, errors: str = "strict") -> Path:
    """Write ``text`` as UTF-8 to ``path``, completely or not at all, with known secrets hidden; return ``path``."""
    with replaced(path) as part:
        part.write_text(hide(text), encoding="utf-8", errors=errors)
    return path
