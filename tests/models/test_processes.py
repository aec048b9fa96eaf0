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

from mrag_eval.models import AuxModel, Reply
from mrag_eval.platform import Claims, Store, content_key
from tests.models.conftest import ask
from tests.worlds.model_server import Answer, ModelServer, asked, echo

N, IN_FLIGHT = 300, 8

RUN = """
import sys
from pathlib import Path
from mrag_eval.config import ModelSpec
from mrag_eval.models import AuxModel
from mrag_eval.platform._store import Store
url, cache, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
spec = ModelSpec(model="local-chat-completions", model_args={"model": "m", "base_url": url}, max_in_flight=8)
model = AuxModel(spec, name="judge", cache=Store(Path(cache)))
replies = model.seat().generate([[{"role": "user", "content": f"q{i}"}] for i in range(first, last)])
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
    assert len(server.requests) == N
    assert len(cached(cache)) == N
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("models.*")} == {0o600}


@pytest.mark.slow
def test_three_processes_that_start_together_pay_once(start: Callable[..., ModelServer], tmp_path: Path) -> None:
    server, cache = start(slowly), tmp_path / "models.sqlite"
    runs = [run(server, cache, 0, 90) for _ in range(3)]
    counts = [[int(word) for word in process.communicate(timeout=120)[0].split()] for process in runs]
    assert [process.returncode for process in runs] == [0, 0, 0]
    assert len(server.requests) == 90
    assert sum(calls for calls, _ in counts) == 90
    assert all(calls + cached == 90 for calls, cached in counts)


@pytest.mark.slow
def test_the_calls_of_a_killed_process_are_made_by_the_others(
    start: Callable[..., ModelServer], tmp_path: Path
) -> None:
    server, cache = start(slowly), tmp_path / "models.sqlite"
    first, second = run(server, cache, 0, 200), run(server, cache, 0, 200)
    while len(server.requests) < 50:
        time.sleep(0.002)
    first.kill()
    first.communicate()
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert sum(map(int, out.split())) == 200
    assert 200 <= len(server.requests) <= 200 + IN_FLIGHT


def held(claims: str, key: str) -> subprocess.Popen[str]:
    """Start a process that claims a key and never makes the call."""
    code = (
        "import sys, time; from pathlib import Path; from mrag_eval.platform._claims import Claims; "
        "print(Claims(Path(sys.argv[1])).take(sys.argv[2]), flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, claims, key], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_a_claim_excludes_other_processes_until_its_process_ends(tmp_path: Path) -> None:
    path, key = tmp_path / "models.claims", content_key("q")
    claims = Claims(path)
    process = held(str(path), key)
    assert not claims.take(key)
    assert claims.take(content_key("another"))
    process.kill()
    process.communicate()
    assert claims.take(key)
    claims.release(key)
    claims.release(key)
    assert path.stat().st_size == 0


def test_a_process_that_hangs_delays_the_others_by_one_time_limit(
    start: Callable[..., ModelServer],
    model_of: Callable[..., AuxModel],
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = start()
    keys: list[str] = []

    def fail(self: Claims, key: str) -> bool:
        keys.append(key)
        return False

    monkeypatch.setattr(Claims, "take", fail)
    begun = time.monotonic()
    (reply,) = model_of(server, store, timeout=1).seat().generate(ask("q"))
    assert reply.text == "re: q"
    assert 1 <= time.monotonic() - begun < 10
    assert len(keys) > 2


def test_a_reply_that_another_process_stores_meanwhile_is_not_paid_for(
    start: Callable[..., ModelServer], model_of: Callable[..., AuxModel], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()

    def take(self: Claims, key: str) -> bool:
        store.put_many({key: Reply("theirs").stored()})
        return True

    monkeypatch.setattr(Claims, "take", take)
    model = model_of(server, store)
    (reply,) = model.seat().generate(ask("q"))
    assert (reply.text, reply.cached) == ("theirs", True)
    assert server.requests == []
    assert (model.ledger.calls, model.ledger.cached) == (0, 1)


def test_a_fork_of_the_process_has_its_own_loop(
    start: Callable[..., ModelServer], model_of: Callable[..., AuxModel], tmp_path: Path
) -> None:
    """The sending thread does not exist in a forked process."""
    server = start()
    model_of(server).seat().generate(ask("parent"))
    child = os.fork()
    if child == 0:
        try:
            store = Store(tmp_path / "child.sqlite")
            (reply,) = model_of(server, store).seat().generate(ask("child"))
            os._exit(0 if reply.text == "re: child" else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert {asked(body) for _, _, body in server.requests} == {"parent", "child"}
