"""Fixtures around the small world of :mod:`tests.worlds.small`."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """The folder with the small benchmark and its corpus."""
    from tests.worlds.small import write_world

    return write_world(tmp_path)


@pytest.fixture
def tasks(world: Path) -> Path:
    """The folder with the task ``small``: mode all, lexical index, two passages."""
    from tests.worlds.small import BASE, write_task

    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    write_task(world, "small", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    return world
