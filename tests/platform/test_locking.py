"""Locks between processes, and what holds where a file system has none."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrag_eval.platform import Claims, ConfigError, CorpusError, Store, build_lock, write_whole

# what a process begins with so that no file below the folder argv[1] can be locked
NO_LOCKS = """
import errno, fcntl, os, sys
def refusing(lock):
    def call(file, *rest):
        number = file if isinstance(file, int) else file.fileno()
        if os.readlink(f"/proc/self/fd/{number}").startswith(sys.argv[1]):
            raise OSError(errno.ENOLCK, "No locks available")
        return lock(file, *rest)
    return call
fcntl.flock, fcntl.lockf = refusing(fcntl.flock), refusing(fcntl.lockf)
"""
HOLDING = """
import sys
from pathlib import Path
from mrag_eval.platform import build_lock
with build_lock(Path(sys.argv[1]) / "wiki"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path, before: str = "") -> Iterator[subprocess.Popen[str]]:
    """Let another process hold the lock of ``wiki`` in the block."""
    command = [sys.executable, "-c", before + HOLDING, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which no file can be locked."""
    folder = tmp_path / "network drive"
    folder.mkdir()
    monkeypatch.setattr(sys, "argv", ["", str(folder)])
    monkeypatch.setattr(fcntl, "flock", fcntl.flock)
    monkeypatch.setattr(fcntl, "lockf", fcntl.lockf)
    exec(NO_LOCKS, {})
    with (folder / "probe").open("wb") as file, pytest.raises(OSError, match="No locks available"):
        fcntl.flock(file, fcntl.LOCK_EX)
    return folder


def test_a_second_run_says_that_it_waits_and_for_whom(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("lm_eval").propagate = True
    with holder(tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        threading.Timer(2.7, process.kill).start()
        started = time.monotonic()
        with build_lock(tmp_path / "wiki", wait=True):
            assert 2 < time.monotonic() - started < 20
    assert [record.getMessage() for record in caplog.records] == [
        f"waiting for process {process.pid} on {socket.gethostname()}, which builds {tmp_path / 'wiki'} "
        "(if it is stopped: kill -CONT lets it go on)"
    ]
    assert not list(tmp_path.iterdir())


def test_who_builds_there_is_named_where_nobody_waits(tmp_path: Path) -> None:
    with holder(tmp_path) as process, pytest.raises(CorpusError) as fault, build_lock(tmp_path / "wiki"):
        pass
    assert fault.value.message == f"another process is building {tmp_path / 'wiki'}"
    assert f"process {process.pid} on {socket.gethostname()}" in str(fault.value.next_step)


def test_the_name_of_a_killed_holder_is_replaced(tmp_path: Path) -> None:
    lock = tmp_path / ".wiki.lock"
    lock.write_text("process 123456789012345 on a host whose name is long")
    with build_lock(tmp_path / "wiki"):
        assert lock.read_text() == f"process {os.getpid()} on {socket.gethostname()}"


def test_builders_of_one_machine_exclude_each_other_without_locks(
    no_locks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("lm_eval").propagate = True
    with holder(no_locks, NO_LOCKS) as process:
        with pytest.raises(CorpusError, match=f"process {process.pid} on"), build_lock(no_locks / "wiki"):
            pass
        with build_lock(no_locks / "another"):
            pass
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == f"{no_locks}: no locks on this file system: write there from one machine at a time"
    with build_lock(no_locks / "wiki"):
        pass
    assert [path.name for path in no_locks.iterdir()] == ["probe"]


def test_claims_without_locks_hold_among_threads(no_locks: Path) -> None:
    one, other = Claims(no_locks / "claims"), Claims(no_locks / "claims")
    assert one.take("ab")
    assert not other.take("ab")
    one.release("ab")
    assert other.take("ab")


def test_files_are_written_without_locks_and_those_of_others_stay(no_locks: Path) -> None:
    theirs = no_locks / "results.json.abc.part"
    theirs.touch()
    write_whole(no_locks / "results.json", "{}")
    assert sorted(path.name for path in no_locks.iterdir()) == ["probe", "results.json", theirs.name]


def test_a_cache_without_locks_is_refused_at_once(no_locks: Path) -> None:
    started = time.monotonic()
    with pytest.raises(ConfigError) as fault:
        Store(no_locks / "models.sqlite")
    assert time.monotonic() - started < 5
    assert fault.value.message == (
        f"the cache {no_locks / 'models.sqlite'} cannot be used (its file system has no locks)"
    )
    assert "local disk" in str(fault.value.next_step)


def test_index_build_without_locks(tmp_path: Path) -> None:
    folder = tmp_path / "network"
    folder.mkdir()
    (folder / "texts.jsonl").write_text(json.dumps({"id": "a", "text": "Oslo lies by the fjord.", "lang": "en"}))
    begin = NO_LOCKS + "\nfrom mrag_eval.cli._main import main\nmain(sys.argv[2:])"
    command = [sys.executable, "-c", begin, str(folder), "index", "build", str(folder / "texts.jsonl")]
    done = subprocess.run(
        [*command, str(folder / "index"), "--kind", "bm25"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "no locks on this file system" in done.stderr
    assert (folder / "index" / "manifest.json").is_file()
