"""Programs that start at once: copies of one process that has already loaded the package, torch and the harness.

A start of ``mrag-eval run`` spends some seconds on imports. :class:`Programs` starts one process that imports the
package, and torch and the harness when the first evaluation is requested. The programs in its folder are small clients:
each passes its arguments, environment, folder and open files to that process, which forks. So every call is still a
separate process with its own state and exit code.

Tests of processes themselves (signals, locks, what is imported) start ``sys.executable``.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
if any(word.startswith(("joblib.", "from joblib", "from multiprocessing")) for word in sys.argv[1:]):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])  # a worker inherits more open files than are handed on
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"."], [0, 1, 2])
job = [os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd(), dict(os.environ)]
server.sendall(json.dumps(job).encode() + b"\\n")
code = int(server.makefile().read() or 70)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
# A program's name -> the arguments of Python that it runs.
_NAMES = {"mrag-eval": ["-m", "mrag_eval.cli"], "lm_eval": ["-m", "lm_eval"], "python": []}
# Calls with one of these words wait for these imports; each imports anything missing itself.
_EVALUATING = {"lm_eval", "run", "rerun", "retrieve"}
_LOADED = (
    "bm25s",
    "datasets",
    "faiss",
    "lm_eval._cli.harness",
    "lm_eval.evaluator",
    "lm_eval.loggers",
    "lm_eval.models.dummy",
    "lm_eval.tasks",
    "mrag_eval.cli._harness",
    "mrag_eval.task._hook",
    "multiprocessing.spawn",
    "pytablewriter",
    "scipy.stats",
    "torch",
    "transformers",
)


class Programs:
    """A folder of the programs ``mrag-eval``, ``lm_eval`` and ``python``, to be called by their path."""

    def __init__(self) -> None:
        self._home = TemporaryDirectory(prefix="mrag-")
        self.folder = Path(self._home.name)
        self._server: subprocess.Popen[bytes] | None = None
        if sys.platform != "linux":  # elsewhere a process that has loaded torch may not survive a fork
            for name, arguments in _NAMES.items():
                self._write(name, f'#!/bin/sh\nexec {shlex.join([sys.executable, *arguments])} "$@"\n')
            return
        address = str(self.folder / "socket")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.programs", address],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n", "the process that loads everything did not start"
        for name in _NAMES:
            self._write(name, _CLIENT.format(python=sys.executable, address=address))

    def _write(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(script, "utf-8")
        path.chmod(0o755)

    def __truediv__(self, name: str) -> str:
        return str(self.folder / name)

    def close(self) -> None:
        """End the waiting process; running calls continue."""
        if self._server:
            self._server.kill()
            self._server.wait()
        self._home.cleanup()


def _load_package() -> None:
    """Import every module of the package that does not need torch, and make the tree of commands."""
    import gc
    import importlib
    import pkgutil

    import typer.main

    import mrag_eval
    from mrag_eval.cli import app
    from tests import remembered

    for module in pkgutil.walk_packages(mrag_eval.__path__, "mrag_eval."):
        if not {"harness", "__main__"} & {*module.name.split(".")}:
            importlib.import_module(module.name)
    typer.main.get_command = remembered.commands
    remembered.commands(app)
    gc.freeze()


def _load() -> None:
    """Import everything that an evaluation needs, and collect what the harness collects for every run."""
    import gc
    import importlib

    for name in _LOADED:
        importlib.import_module(name)
    importlib.import_module("transformers").AutoTokenizer  # noqa: B018 - imported when it is named
    from lm_eval.tasks import TaskManager, _index
    from torch.utils import collect_env

    from tests import remembered

    remembered.environment_info()
    collect_env.get_pretty_env_info = remembered.environment_info
    _index.load_yaml = remembered.task_file
    TaskManager(include_path=str(ROOT / "tasks"), include_defaults=False)
    gc.freeze()  # otherwise every call copies the memory of everything that was loaded


def _reap(*_: Any) -> None:
    """Take note of the processes that ended, so that their seconds count as those of the tests."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(address: str) -> list[str]:
    """Fork for every call; in the child, return the arguments of Python for that call."""
    import signal

    _load_package()
    loaded = False
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, _reap)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:  # the tests have ended in some way
            os._exit(0)
        client, _ = listener.accept()
        _, files, _, _ = socket.recv_fds(client, 1, 3)
        name, arguments, folder, environment = json.loads(client.makefile().readline())
        if not loaded and _EVALUATING & {name, *arguments}:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _load()
            signal.signal(signal.SIGCHLD, _reap)
            loaded = True
        if os.fork():
            client.close()
            for file in files:
                os.close(file)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        child = os.fork()
        if child:
            for file in files:
                os.close(file)
            _, status = os.waitpid(child, 0)
            client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
        client.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        real, sys.executable = sys.executable, str(Path(address).parent / "python")
        if name == "python" and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
            os.execv(real, [real, *arguments])
        return [*_NAMES[name], *arguments]


def _run(words: list[str]) -> None:
    """Do the same as ``python *words``."""
    import runpy

    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        runpy.run_path(words[0], run_name="__main__")


def _main(address: str) -> None:
    """Run every call as a program, and exit without unloading the libraries, which costs a second."""
    import atexit
    import threading
    import traceback

    words = _serve(address)
    code: Any = 0
    try:
        _run(words)
    except SystemExit as end:
        code = end.code
    except BaseException:
        code = 1
        traceback.print_exc()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 255)


if __name__ == "__main__":
    _main(sys.argv[1])
