"""Copies of finished runs, to be tampered with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds.forged_runs import Run


@pytest.fixture
def forged(made: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Run]:
    """Return a function that gives a copy of a run, to be tampered with."""

    def copy(name: str) -> Run:
        return Run(Path(shutil.copytree(made(name) / "out", tmp_path / name)), made(name))

    return copy
