"""kill -9 before any operation on a file, wherever an index is written: the same call then ends with the same index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.killed_operations import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
# One operation of so many; the seed says where the first is.
EVERY, SEED = 3, 1
# Whole folders that are of no more use: the next replacement or addition removes them.
LEFT = {"index.replaced", "one.replaced", "wiki.replaced", "wiki.parts"}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_index_is_whole_after_a_kill_and_the_same_call(tmp_path: Path, scenario: str) -> None:
    numbers = [str(EVERY), str(SEED)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.killed_operations", str(tmp_path / "work"), scenario, *numbers],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["faults"] == []
    assert found["killed"] == (found["operations"] - SEED % EVERY + EVERY - 1) // EVERY > 20
    assert found["left"].keys() <= LEFT
