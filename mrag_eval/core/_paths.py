"""Paths of this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the cache folder of indexes and retrieval results: ``$MRAG_CACHE``, else ``~/.cache/mrag_eval``."""
    value = os.environ.get("MRAG_CACHE")
    return Path(value).expanduser() if value else Path.home() / ".cache" / "mrag_eval"
