"""A cache on a full disk: the run goes on without it or ends with a next step, and reads nothing half-written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.models import AuxModel
from mrag_eval.platform import Store
from tests.models.conftest import ask, model_of  # noqa: F401 - a fixture
from tests.worlds.model_server import Answer, ModelServer, asked, said

DISKS = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounts a small disk")
SMALL_DISK = str(Path(__file__).with_name("small_disk.py"))

JUDGE = """
import logging, sys
from pathlib import Path
from mrag_eval.config import ModelSpec
from mrag_eval.models import get
logging.basicConfig(format="%(message)s")
spec = ModelSpec(model="local-chat-completions", model_args={"model": "m", "base_url": sys.argv[1]}, max_in_flight=4)
model = get(spec, "judge")
for part in range(4):
    replies = model.seat().generate([[{"role": "user", "content": f"q{i}"}] for i in range(20 * part, 20 * part + 20)])
    assert not [reply.error for reply in replies if reply.error]
print(model.ledger.calls, model.ledger.cached)
"""


class NoRoom:
    """A connection with room for a few entries."""

    def __init__(self, db: sqlite3.Connection, room: int) -> None:
        self._db, self._room = db, room

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def executemany(self, *words: Any) -> Any:
        self._room -= 1
        if self._room < 0:
            raise sqlite3.OperationalError("database or disk is full")
        return self._db.executemany(*words)


def long_reply(body: dict[str, Any], attempt: int) -> Answer:
    return said(f"re: {asked(body)} " + "x" * 3000)


def test_a_judge_goes_on_without_the_cache_and_says_so_once(
    start: Callable[..., ModelServer],
    model_of: Callable[..., AuxModel],  # noqa: F811
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, store = start(), Store(tmp_path / "models.sqlite")
    monkeypatch.setattr(store, "_db", NoRoom(store._db, 3))
    model = model_of(server, store, max_in_flight=1)
    for part in range(3):
        replies = model.seat().generate(ask(*(f"q{i}" for i in range(10 * part, 10 * part + 10))))
        assert [reply.error for reply in replies] == [None] * 10
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "disk is full): going on without it; free some space" in warnings[0]
    store.close()
    again = model_of(server, Store(tmp_path / "models.sqlite"))
    again.seat().generate(ask(*(f"q{i}" for i in range(30))))
    assert (again.ledger.cached, again.ledger.calls) == (3, 27)


def run(folder: Path, size: str, *command: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    env = {**os.environ, "MRAG_CACHE": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = ["unshare", "--mount", sys.executable, SMALL_DISK, str(folder), size, sys.executable, *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env, timeout=500)


@pytest.mark.slow
@DISKS
def test_a_full_disk_keeps_what_fitted(start: Callable[..., ModelServer], tmp_path: Path) -> None:
    server = start(long_reply)
    done = run(tmp_path / "cache", "160k", "-c", JUDGE, server.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["80", "0"]
    assert done.stderr.count("\n") == 1, done.stderr
    assert "disk is full" in done.stderr
    # everything that was kept is whole
    kept = len(list(sqlite3.connect(tmp_path / "cache-kept" / "models.sqlite").execute("SELECT key FROM entries")))
    assert 0 < kept < 80
    environment = {**os.environ, "MRAG_CACHE": str(tmp_path / "cache-kept")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-c", JUDGE, server.url]
    again = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert again.stdout.split() == [str(80 - kept), str(kept)], again.stderr


@pytest.mark.slow
@DISKS
@pytest.mark.parametrize("size", ["8k", "50k", "80k", "120k"])
def test_a_run_on_a_full_cache_ends_with_one_line_or_with_results(tasks: Path, size: str) -> None:
    words = ["-m", "mrag_eval.cli", "run", "--model", "dummy", "--tasks", "small", "--include_path", str(tasks)]
    done = run(tasks / "cache", size, *words, "--output_path", str(tasks / "out"), "--log_samples")
    assert "Traceback" not in done.stderr
    assert "JSONDecodeError" not in done.stderr
    if done.returncode:
        assert done.returncode == 2
        error = done.stderr[done.stderr.index("mrag-eval: ") :].splitlines()
        assert len(error) == 2, error
        assert "full" in error[0] or "No space left on device" in error[0]
        assert "space" in error[1] or "MRAG_CACHE" in error[1]
    else:
        assert len(list((tasks / "out").rglob("samples_*"))) == 1
    assert not list((tasks / "cache-kept" / "runs").glob("*"))
