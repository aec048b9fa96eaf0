"""Ctrl-C and SIGTERM: every process ends within a second or so, and says how to go on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.worlds.judges import verdict
from tests.worlds.model_server import ModelServer, said
from tests.worlds.small import BASE, write_task

# a second of ours, and what a busy machine adds
BOUND = 10.0

CODE = """
import sys, threading, time
from mrag_eval.platform import ending_within

def computes():
    import hashlib
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)  # C code: Python's own handlers have no moment to run

def waits_for_threads():
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as pool:
        pool.submit(time.sleep, 300)

def swallows():
    while True:
        try:
            time.sleep(300)
        except KeyboardInterrupt:
            pass

def waits_at_exit():
    threading.Thread(target=time.sleep, args=(300,)).start()

def sleeps():
    time.sleep(300)

print("ready", flush=True)
with ending_within(0.8, "go on like this\\n"):
    globals()[sys.argv[1]]()
    time.sleep(300)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("state", ["sleeps", "computes", "swallows", "waits_for_threads", "waits_at_exit"])
def test_a_process_ends_whatever_it_does(state: str, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, state],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that runs the tests in the background makes them and their children ignore Ctrl-C
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(number)
    sent = time.monotonic()
    _, shown = process.communicate(timeout=60)
    assert time.monotonic() - sent < BOUND
    assert process.returncode == 128 + number
    assert shown == "go on like this\n"


PANEL = """
import sys
from mrag_eval.config import ModelSpec
from mrag_eval.platform import at_once, ending_within
from mrag_eval.models import AuxModel
spec = ModelSpec(model="local-chat-completions", model_args={"model": "m", "base_url": sys.argv[1]}, timeout=300)
with ending_within(0.8, "go on like this\\n"):
    asked = [[{"role": "user", "content": "q"}]]
    at_once({role: lambda role=role: AuxModel(spec).seat(role).generate(asked) for role in "abc"})
"""


@pytest.mark.slow
def test_a_panel_that_waits_for_its_judges_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1/chat/completions"
        process = subprocess.Popen([sys.executable, "-c", PANEL, url], stderr=subprocess.PIPE, text=True)
        server.settimeout(120)
        server.accept()
        process.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        _, shown = process.communicate(timeout=60)
    assert time.monotonic() - sent < BOUND
    assert process.returncode == 143
    assert shown == "go on like this\n"


NOTEBOOK = """
import asyncio, os, signal, sys, threading, time
from pathlib import Path
import mrag_eval
from mrag_eval.config import ModelSpec
from mrag_eval.platform import Store, at_once
from mrag_eval.models import AuxModel

signal.signal(signal.SIGINT, signal.default_int_handler)
url, folder = sys.argv[1], Path(sys.argv[2])

def panel():
    spec = ModelSpec(model="local-chat-completions", model_args={"model": "m", "base_url": url}, max_in_flight=1)
    model = AuxModel(spec, cache=Store(folder / "models.sqlite"))
    asked = [[{"role": "user", "content": f"q{n}"}] for n in range(40)]
    at_once({role: lambda role=role: model.seat(role).generate(asked) for role in "abc"})

def evaluate():
    mrag_eval.evaluate("dummy", "judged", include=folder, apply_chat_template=False)

async def cell():  # as a notebook runs its cells
    try:
        globals()[sys.argv[3]]()
    except KeyboardInterrupt:
        print(f"interrupted at {time.monotonic()}", flush=True)

asyncio.new_event_loop().run_until_complete(cell())
time.sleep(1)
os._exit(0)
"""


@pytest.mark.parametrize("call", ["panel", pytest.param("evaluate", marks=pytest.mark.slow)])
def test_an_interrupted_notebook_waits_for_no_judge_and_pays_for_no_more_calls(
    world: Path, start: Callable[..., ModelServer], call: str
) -> None:
    server = start(lambda body, attempt: replace(said(verdict("correct")), delay=0.3))
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl")}
    keys = {**BASE, "metrics": ["judge_correct"]}
    write_task(world, "judged", **keys, data=data, judge={"prompt": "correctness"})
    seat = {"model": "local-chat-completions", "model_args": {"base_url": server.url}, "max_in_flight": 2}
    seats = [{**seat, "model_args": {"model": f"judge-{n}", "base_url": server.url}} for n in range(3)]
    (world / "mrag.yaml").write_text(yaml.safe_dump({"judges": seats}), "utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK, server.url, str(world), call],
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "MRAG_CACHE": str(world / "cache"),
            "MRAG_CONFIG": str(world / "mrag.yaml"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OPENAI_API_KEY": "none",
        },
    )
    until = time.monotonic() + 120
    while not server.requests:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    shown, _ = process.communicate(timeout=60)
    (line,) = [line for line in shown.splitlines() if line.startswith("interrupted")]
    seconds = float(line.split()[-1]) - sent
    late = [at - sent for at, _, _ in server.requests if at > sent + 0.25]
    print(f"\n{call}: {seconds:.2f} s, requests after it: {len(late)}")
    assert seconds < BOUND
    assert late == []


@pytest.mark.slow
def test_a_forked_worker_is_ended_without_its_parent() -> None:
    code = """
import os, signal, time
from mrag_eval.platform import ending_within
with ending_within(0.2):
    worker = os.fork()
    if worker == 0:
        time.sleep(300)
    time.sleep(0.2)
    os.kill(worker, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)
    time.sleep(1)
print("on", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["-15", "on"]), done.stderr


def test_handlers_are_put_back() -> None:
    from mrag_eval.platform import ending_within

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with ending_within(0.1):
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_nohup_is_respected() -> None:
    code = "import os, signal; from mrag_eval.platform import ending_within\nwith ending_within(0.1):\n"
    code += "    os.kill(os.getpid(), signal.SIGINT)\nprint('on')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_IGN),
    )
    assert done.stdout == "on\n", done.stderr


@pytest.mark.parametrize("name", ["first-dead", "first-alive"])
def test_folders_of_killed_runs_are_removed_and_those_of_living_ones_stay(tmp_path: Path, name: str) -> None:
    from mrag_eval.platform import build_lock
    from mrag_eval.retrieval.ahead._process import _folder_in

    (tmp_path / name / "rows").mkdir(parents=True)
    (tmp_path / ".first-gone.lock").touch()
    if name == "first-dead":
        (tmp_path / f".{name}.lock").touch()
        with _folder_in(tmp_path) as folder:
            assert [path for path in tmp_path.iterdir() if path.is_dir()] == [folder]
    else:
        with build_lock(tmp_path / name), _folder_in(tmp_path) as folder:
            assert {path for path in tmp_path.iterdir() if path.is_dir()} == {folder, tmp_path / name}
        assert (tmp_path / name).is_dir()
    assert not list(tmp_path.glob(".first-*"))


@pytest.mark.slow
def test_the_start_of_the_command_ends_too(tmp_path: Path) -> None:
    """Signals arrive while the command is importing."""
    for delay in (0.0, 0.2, 0.6):
        process = subprocess.Popen(
            [sys.executable, "-m", "mrag_eval.cli", "doctor"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "MRAG_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        time.sleep(0.5 + delay)
        process.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        process.communicate(timeout=60)
        assert time.monotonic() - sent < BOUND
        assert process.returncode in (143, -signal.SIGTERM, 0)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize(
    ("to", "delay"), [("both", 0.0), ("both", 0.05), ("both", 0.4), ("the run", 0.0), ("the run, by kill", 0.05)]
)
def test_both_processes_end_while_the_second_one_starts(world: Path, delay: float, to: str) -> None:
    """The second process imports for a second or more; in that time it neither reads its pipe nor handles signals."""
    data = {"benchmark": "jsonl", "path": str(world / "questions.jsonl"), "corpus": str(world / "corpus.jsonl")}
    write_task(world, "small", **BASE, data=data, retrieval={"mode": "all", "k": 2, "kind": "bm25"})
    words = ["run", "--model", "dummy", "--tasks", "small", "--include_path", str(world)]
    run = subprocess.Popen(
        [sys.executable, "-m", "mrag_eval.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "MRAG_CACHE": str(world / "cache"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    while not children.read_text().split():
        assert run.poll() is None
        time.sleep(0.001)
    (child,) = map(int, children.read_text().split())
    time.sleep(delay)
    sent = time.monotonic()
    if to == "both":
        os.killpg(run.pid, signal.SIGINT)
    else:
        run.send_signal(signal.SIGINT if to == "the run" else signal.SIGKILL)
    # the second process has the pipe, too: this waits for both
    shown, _ = run.communicate(timeout=60)
    seconds = time.monotonic() - sent
    print(f"\n{to} after {delay} s: {seconds:.2f} s")
    assert not Path(f"/proc/{child}/exe").exists()
    assert seconds < 1.5
    if "kill" not in to:
        assert run.returncode == 130
        assert "Traceback" not in shown
        assert "mrag-eval: interrupted\n    run the same command again" in shown
