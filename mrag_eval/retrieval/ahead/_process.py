"""Retrieval of a run in a separate process, which ends before the evaluated model is loaded.

So embedder, reranker and translating models leave no memory behind, on whatever device they ran. The process gets a
work order, validated blocks and ids of rows, instead of command-line flags: it reads no task files and loads neither
torch nor the harness where no model of the retrieval needs them.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from pydantic import BaseModel

from mrag_eval import platform
from mrag_eval.config import Agent, Judge, Prompt, Retrieval, TaskBlocks
from mrag_eval.models import ASKED, evaluating
from mrag_eval.platform import (
    ConfigError,
    CorpusError,
    MragError,
    build_lock,
    cache_dir,
    ending_within,
    guarded_screen,
    is_full,
    naming,
)
from mrag_eval.retrieval._rows import TaskRows
from mrag_eval.retrieval.saved._folder import RunFolder

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_PREFIX = "first-"
# Cache keys of what the evaluated model was asked.
_ASKED = "asked.json"
_ROOM = "free some space there, or name another cache: export MRAG_CACHE=FOLDER"
_BLOCKS: Mapping[str, type[BaseModel]] = {"retrieval": Retrieval, "agent": Agent, "prompt": Prompt, "judge": Judge}
# Seconds that the process may take to end.
_GRACE = 0.4
# The process. It ends with the run from its first moment on, not only when the imports are done.
_START = """
import os, signal, threading

def end_with_the_run():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end_with_the_run, daemon=True).start()
from mrag_eval.retrieval.ahead._process import main
main()
"""


@dataclass(frozen=True)
class Order:
    """The rows of one task to retrieve for."""

    task: str
    supply: TaskRows
    ids: Sequence[str]


@contextmanager
def retrieved_apart(orders: Sequence[Order], *, debug: bool = False) -> Iterator[RunFolder]:
    """Yield a run folder with the rows of all orders, made by a separate process; remove it after the block.

    A failure there is raised here, with the same message and next step. An interruption ends both processes. Folders
    of runs that were killed are removed first.
    """
    home = cache_dir() / "runs"
    with _folder_in(home) as folder:
        order: dict[str, Any] = {
            "level": logging.getLogger("lm_eval").getEffectiveLevel(),
            "debug": debug,
            "tasks": {each.task: {"blocks": _dumped(each.supply.blocks), "ids": list(each.ids)} for each in orders},
        }
        asked = next((each.supply.evaluated for each in orders if each.supply.evaluated is not None), None)
        if asked is not None:
            # a key is in the environment, and its name goes along: one among the arguments is refused
            named = {"api_key_env": asked.spec.api_key_env} if asked.spec.api_key_env else {}
            order["evaluated"] = {"model": asked.spec.model, "args": {**asked.spec.model_args, **named}}
        with _writing(home):
            (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
        _run(folder)
        yield RunFolder(folder / "rows")


@contextmanager
def _folder_in(home: Path) -> Iterator[Path]:
    """Yield a new folder, locked while this process lives; remove it after the block."""
    with _writing(home):
        home.mkdir(parents=True, exist_ok=True)
        for left in {home / lock.name[1:-5] for lock in home.glob(f".{_PREFIX}*.lock")} | {*home.glob(f"{_PREFIX}*")}:
            # that of a living run is locked
            with suppress(CorpusError), build_lock(left):
                shutil.rmtree(left, ignore_errors=True)
    folder = home / f"{_PREFIX}{uuid4().hex}"
    with build_lock(folder):
        try:
            with _writing(home):
                folder.mkdir(mode=0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _writing(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{home} cannot be written to ({error.strerror or error})", _ROOM) from None


def _run(folder: Path) -> None:
    # the first pipe tells the process that this one is alive: however it ends, the other end notices
    child = subprocess.Popen(
        [sys.executable, "-c", _START, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C reaches the run alone, which ends the process: while Python starts, it would print a traceback
        start_new_session=True,
        env=_environment(),
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        code = child.wait()
        # a process that it started may hold the pipe open
        os.set_blocking(child.stdout.fileno(), False)
        fault = child.stdout.read() or b""
    except BaseException:
        _end(child)
        raise
    finally:
        child.stdin.close()
        child.stdout.close()
    if code == 0:
        ASKED.update(json.loads((folder / _ASKED).read_text(encoding="utf-8")))
        return
    if code in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if fault:
        _raise(json.loads(fault))
    number = -code if code < 0 else code - 128
    ended = signal.Signals(number).name if number in signal.valid_signals() else f"exit code {code}"
    raise MragError(
        f"the process that retrieves before the model is loaded was ended ({ended}); this machine's memory may be full",
        "run again (what was found is kept), retrieve beforehand with mrag-eval retrieve, or use --no-retrieve-first",
    )


def _environment() -> dict[str, str]:
    """Return our environment, with the folders that this process imports from."""
    paths = [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the process, by force if it takes its time."""
    try:
        child.terminate()
        child.wait(_GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
        child.wait()


def _kind(error: Exception) -> str:
    """Return the name by which :func:`_raise` finds the class of an error, or the nearest class above it."""
    named = (cls.__name__ for cls in type(error).__mro__ if getattr(platform, cls.__name__, None) is cls)
    return next(named, type(error).__name__)


def _raise(fault: Mapping[str, Any]) -> NoReturn:
    kind = getattr(platform, fault["kind"], None)
    if isinstance(kind, type) and issubclass(kind, MragError):
        raise kind(fault["message"], fault["next_step"])
    raise MragError(
        f"retrieving before the model is loaded failed: {fault['kind']}: {fault['message']}",
        "again with --debug shows where; --no-retrieve-first retrieves in the process of the run",
    )


def _dumped(blocks: TaskBlocks) -> dict[str, Any]:
    # unset keys stay unset: some keys are refused where they have no meaning
    out = {name: getattr(blocks, name).model_dump(mode="json", exclude_unset=True) for name in _BLOCKS}
    return {**out, "data": blocks.data, "metrics": blocks.metrics}


def _blocks(dumped: Mapping[str, Any]) -> TaskBlocks:
    read: dict[str, Any] = {name: block.model_validate(dumped[name]) for name, block in _BLOCKS.items()}
    return TaskBlocks(**read, data=dict(dumped["data"]), metrics=tuple(dumped["metrics"]))


# --- in the separate process ------------------------------------------------------------------------------------------


def main() -> NoReturn:
    """Carry out the work order in the folder that the command line names."""
    with guarded_screen():
        outcome = _main(Path(sys.argv[1]))
    sys.exit(outcome)


def _main(folder: Path) -> int:
    # the pipe to the run is for a fault alone; whatever a library prints is for the user
    faults = os.dup(1)
    os.dup2(2, 1)
    path = folder / "order.json"
    order = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    _log_as_the_harness(order["level"])
    try:
        with ending_within(_GRACE), evaluating(**order["evaluated"]) if "evaluated" in order else nullcontext():
            _retrieve(folder, order["tasks"])
        (folder / _ASKED).write_text(json.dumps(sorted(ASKED)), encoding="utf-8")
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # reported where the user sees it, with the run's exit code
        if order["debug"]:
            traceback.print_exc()
        if is_full(error):
            error = CorpusError(f"the disk of {cache_dir()} is full", _ROOM)
        known = isinstance(error, MragError)
        fault = {
            "kind": _kind(error),
            "message": error.message if known else next(iter(str(error).splitlines()), ""),  # type: ignore[attr-defined]
            "next_step": error.next_step if known else None,  # type: ignore[attr-defined]
        }
        # a pipe takes this much without a reader
        os.write(faults, json.dumps({key: text and text[:4000] for key, text in fault.items()}).encode())
        return 2
    return 0


def _retrieve(folder: Path, tasks: Mapping[str, Any]) -> None:
    from mrag_eval.retrieval.ahead._write import open_folder, retrieve_into

    rows = open_folder(folder / "rows")
    for task, asked in tasks.items():
        with naming(task):
            supply = TaskRows(_blocks(asked["blocks"]), task)
        retrieve_into(rows, task, supply, asked["ids"])


def _log_as_the_harness(level: int) -> None:
    logger = logging.getLogger("lm_eval")
    logger.setLevel(level)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-8s %(message)s", "%Y-%m-%d:%H:%M:%S"))
    logger.addHandler(handler)
    logger.propagate = False
