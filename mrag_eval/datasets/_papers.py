"""The papers of the benchmarks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from mrag_eval.datasets._declaration import Citation
from mrag_eval.platform import read_yaml


def papers(*keys: str) -> tuple[Citation, ...]:
    """Return the papers with these BibTeX keys, from ``papers.yaml``."""
    return tuple(Citation(key=key, **_known()[key]) for key in keys)


@cache
def _known() -> Any:
    return read_yaml(Path(__file__).with_name("papers.yaml"), as_text=True)
