"""Several processes and one cache: a killed run resumes, and two at once do not disturb each other."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import Store
from mrag_eval.models import AuxModel
from tests.models.conftest import ask
from tests.worlds.model_server import Answer, ModelServer, asked, echo

N, IN_FLIGHT = 300, 8

RUN = """
import sys
from pathlib import Path
from mrag_eval.config import ModelSpec
from mrag_eval.models import AuxModel
from mrag_eval.core._store import Store
url, cache, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
spec = ModelSpec(model="local-chat-completions", model_args={"model": "m", "base_url": url}, max_in_flight=8)
model = AuxModel(spec, name="judge", cache=Store(Path(cache)))
replies = model.generate([[{"role": "user", "content": f"q{i}"}] for i in range(first, last)])
assert [r.text for r in replies] == [f"re: q{i}" for i in range(first, last)], [r.error for r in replies if r.error]
print(model.ledger.calls, model.ledger.cached)
"""


def run(server: ModelServer, cache: Path, first: int = 0, last: int = N) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, server.url, str(cache), str(first), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def slowly(body: dict[str, Any], attempt: int) -> Answer:
    return Answer(body=echo(body, attempt).body, delay=0.02)


@pytest.mark.slow
def test_after_a_kill_half_way_only_calls_in_flight_are_repeated(
    start: Callable[..., ModelServer], tmp_path: Path
) -> None:
    server, cache = start(slowly), tmp_path / "models.sqlite"
    first = run(server, cache)
    while len(server.requests) < N // 2:
        assert first.poll() is None
        time.sleep(0.002)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    time.sleep(0.1)  # requests that had already left the process still arrive
    before = len(server.requests)
    assert N // 2 <= before < N
    kept = len(cached(cache))
    assert kept >= before - IN_FLIGHT

    second = run(server, cache)
    out, _ = second.communicate(timeout=120)
    assert second.returncode == 0
    assert out.split() == [str(N - kept), str(kept)]
    assert N <= len(server.requests) <= N + IN_FLIGHT

    third = run(server, cache)
    out, _ = third.communicate(timeout=120)
    assert out.split() == ["0", str(N)]


def cached(path: Path) -> list[str]:
    import sqlite3

    with sqlite3.connect(path) as db:
        return [key for (key,) in db.execute("SELECT key FROM entries")]


@pytest.mark.slow
def test_two_processes_share_a_cache(start: Callable[..., ModelServer], tmp_path: Path) -> None:
    server, cache = start(slowly), tmp_path / "models.sqlite"
    runs = [run(server, cache, 0, 200), run(server, cache, 100, 300)]
    for process in runs:
        process.communicate(timeout=120)
        assert process.returncode == 0
    # both may have asked the 100 shared questions; nothing was lost
    assert N <= len(server.requests) <= N + 100
    assert len(cached(cache)) == N
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("models.sqlite*")} == {0o600}


def test_a_fork_of_the_process_has_its_own_loop(
    start: Callable[..., ModelServer], model_of: Callable[..., AuxModel], tmp_path: Path
) -> None:
    """The sending thread does not exist in a forked process."""
    server = start()
    model_of(server).generate(ask("parent"))
    child = os.fork()
    if child == 0:
        try:
            store = Store(tmp_path / "child.sqlite")
            (reply,) = model_of(server, store).generate(ask("child"))
            os._exit(0 if reply.text == "re: child" else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert {asked(body) for _, _, body in server.requests} == {"parent", "child"}
