"""Finished runs, made once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds.finished_runs import RUNS


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Callable[[str], Path]:
    """Return a function that gives the folder of a run by name, and makes it when it is first asked for."""
    found: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in found:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("MRAG_CACHE", str(tmp_path_factory.mktemp("cache")))
                found[name] = RUNS[name](tmp_path_factory.mktemp(name), test_data)
        return found[name]

    return folder
