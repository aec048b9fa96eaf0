"""Folders and files of this machine, named by what they hold."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

# Endings of files in a folder of a model that change nothing that it says, and folders of its training.
_NOT_THE_MODEL = (".md", ".lock", "")
_TRAINING = "checkpoint-"


def content_of_folder(folder: Path) -> str:
    """Return a hash of names and content of the files in a model's folder, wherever it lies."""
    shown = (
        file
        for file in sorted(folder.rglob("*"))
        if not any(part.startswith((".", _TRAINING)) for part in file.relative_to(folder).parts)
    )
    files = [file for file in shown if file.suffix not in _NOT_THE_MODEL and file.is_file()]
    return _hash_of(folder, tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in files))


def place_by_content(text: str) -> str | None:
    """Return the name of a whole path with a hash of what lies there; None for a text that is none, or is not here."""
    path = Path(os.path.expanduser(text))
    if not path.is_absolute():
        return None
    try:
        if os.path.isdir(path):
            return f"{path.name} {content_of_folder(path)}" if any(path.iterdir()) else None
        if os.path.isfile(path):
            return f"{path.name} {_hash_of(path.parent, ((path, path.stat().st_size, path.stat().st_mtime_ns),))}"
    except OSError:
        # what cannot be read is known by its path alone
        pass
    return None


@lru_cache(maxsize=16)
def _hash_of(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    """Return a hash of the files' names and contents; sizes and times invalidate the cache."""
    digest = hashlib.sha256()
    for path, size, _ in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return f"files-{digest.hexdigest()[:16]}"
