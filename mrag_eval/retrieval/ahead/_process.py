"""Retrieval of a run in a separate process, which ends before the evaluated model is loaded.

So embedder, reranker and translating models leave no memory behind, on whatever device they ran. The process gets a
work order, validated blocks and ids of rows, instead of command-line flags: it reads no task files and loads neither
torch nor the harness where no model of the retrieval needs them.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from pydantic import BaseModel

from mrag_eval import core
from mrag_eval.config import Agent, Judge, Prompt, Retrieval, TaskBlocks
from mrag_eval.core import ConfigError, MragError, cache_dir, hidden_on_screen, keep_secrets_of, naming, write_whole
from mrag_eval.retrieval._rows import TaskRows
from mrag_eval.retrieval.saved._folder import RunFolder

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_FAULT = "fault.json"
_BLOCKS: Mapping[str, type[BaseModel]] = {"retrieval": Retrieval, "agent": Agent, "prompt": Prompt, "judge": Judge}
# Seconds that a process may take to save its work after it was asked to end.
_GRACE = 10.0


@dataclass(frozen=True)
class Order:
    """Hold the rows of one task to retrieve for."""

    task: str
    supply: TaskRows
    ids: Sequence[str]


@contextmanager
def retrieved_apart(orders: Sequence[Order], *, debug: bool = False) -> Iterator[RunFolder]:
    """Yield a run folder with the rows of all orders, made by a separate process; remove it after the block.

    A failure there is raised here, with the same message and next step. An interruption ends both processes.
    """
    home = cache_dir() / "runs"
    try:
        home.mkdir(parents=True, exist_ok=True)
        place = TemporaryDirectory(prefix="first-", dir=home)
    except OSError as error:
        raise ConfigError(
            f"{home} cannot be written to ({error.strerror or error})", "name another cache: export MRAG_CACHE=FOLDER"
        ) from None
    with place as name:
        folder = Path(name)
        order = {
            "level": logging.getLogger("lm_eval").getEffectiveLevel(),
            "debug": debug,
            "tasks": {each.task: {"blocks": _dumped(each.supply.blocks), "ids": list(each.ids)} for each in orders},
        }
        (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
        _run(folder)
        yield RunFolder(folder / "rows")


def _run(folder: Path) -> None:
    # the pipe tells the process that this one is alive: however it ends, the other end notices
    child = subprocess.Popen(
        [sys.executable, "-m", "mrag_eval.retrieval.ahead._process", str(folder)],
        stdin=subprocess.PIPE,
        env=_environment(),
    )
    try:
        code = child.wait()
    except BaseException:
        _end(child)
        raise
    finally:
        if child.stdin is not None:
            child.stdin.close()
    if code == 0:
        return
    if code in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    fault = folder / _FAULT
    if fault.is_file():
        _raise(json.loads(fault.read_text(encoding="utf-8")))
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    raise MragError(
        f"the process that retrieves before the model is loaded was ended ({ended}); this machine's memory may be full",
        "run again (what was found is kept), retrieve beforehand with mrag-eval retrieve, or use --no-retrieve-first",
    )


def _environment() -> dict[str, str]:
    """Return our environment, with the folders that this process imports from."""
    paths = [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def _end(child: subprocess.Popen[bytes]) -> None:
    """Wait for the process after Ctrl-C, which has reached it already; after any other end of this one, end it now."""
    try:
        child.send_signal(signal.SIGINT)
        child.wait(_GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
        child.wait()


def _kind(error: Exception) -> str:
    """Return the name by which :func:`_raise` finds the class of an error, or the nearest class above it."""
    named = (cls.__name__ for cls in type(error).__mro__ if getattr(core, cls.__name__, None) is cls)
    return next(named, type(error).__name__)


def _raise(fault: Mapping[str, Any]) -> NoReturn:
    kind = getattr(core, fault["kind"], None)
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


def _main(folder: Path) -> int:
    path = folder / "order.json"
    order = json.loads(path.read_text(encoding="utf-8"))
    # the blocks are as the user wrote them, passwords included
    path.unlink()
    keep_secrets_of(order["tasks"])
    _log_as_the_harness(order["level"])
    threading.Thread(target=_ends_with_the_run, daemon=True).start()
    try:
        _retrieve(folder, order["tasks"])
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # reported where the user sees it, with the run's exit code
        if order["debug"]:
            traceback.print_exc()
        known = isinstance(error, MragError)
        fault = {
            "kind": _kind(error),
            "message": error.message if known else next(iter(str(error).splitlines()), ""),  # type: ignore[attr-defined]
            "next_step": error.next_step if known else None,  # type: ignore[attr-defined]
        }
        write_whole(folder / _FAULT, json.dumps(fault))
        return 2
    return 0


def _retrieve(folder: Path, tasks: Mapping[str, Any]) -> None:
    from mrag_eval.retrieval.ahead._write import open_folder, retrieve_into

    rows = open_folder(folder / "rows")
    for task, asked in tasks.items():
        with naming(task):
            supply = TaskRows(_blocks(asked["blocks"]), task)
        retrieve_into(rows, task, supply, asked["ids"])


def _ends_with_the_run() -> None:
    # unbuffered, since the end of this process does not wait for the thread
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_GRACE)
    os._exit(130)


def _log_as_the_harness(level: int) -> None:
    logger = logging.getLogger("lm_eval")
    logger.setLevel(level)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-8s %(message)s", "%Y-%m-%d:%H:%M:%S"))
    logger.addHandler(handler)
    logger.propagate = False


if __name__ == "__main__":
    with hidden_on_screen():
        outcome = _main(Path(sys.argv[1]))
    sys.exit(outcome)
