"""Files that are written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mrag_eval.core._secrets import hide


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``; at the end of the block that file replaces ``path``.

    If the block raises, the temporary file is removed and ``path`` is unchanged. The folder is created if needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, text: str, errors: str = "strict") -> Path:
    """Write ``text`` as UTF-8 to ``path``, completely or not at all, with known secrets hidden; return ``path``."""
    with replaced(path) as part:
        part.write_text(hide(text), encoding="utf-8", errors=errors)
    return path
