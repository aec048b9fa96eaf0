"""Finished runs, made once for all tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds.finished_runs import RUNS
from tests.worlds.forged_runs import Run


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


@pytest.fixture
def forged(made: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Run]:
    """Return a function that gives a copy of a run, to be tampered with."""

    def copy(name: str) -> Run:
        return Run(Path(shutil.copytree(made(name) / "out", tmp_path / name)), made(name))

    return copy
