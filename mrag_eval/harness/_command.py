"""The command that this process runs, as its arguments say: ours, or the harness's own."""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from mrag_eval.platform import MragError

# Programs by the file that was started, and as modules.
_PROGRAMS = {"mrag-eval": "mrag-eval", "lm_eval": "lm_eval", "lm-eval": "lm_eval"}
_MODULES = {("mrag_eval", "cli", "__main__.py"): "mrag-eval", ("lm_eval", "__main__.py"): "lm_eval"}


def command_line() -> str | None:
    """Return the command as a line of a shell; None in a program of somebody's own."""
    path = Path(sys.argv[0])
    module = next((name for end, name in _MODULES.items() if path.parts[-len(end) :] == end), None)
    name = _PROGRAMS.get(path.name, module)
    return None if name is None else shlex.join([name, *sys.argv[1:]])


def is_stock_command() -> bool:
    """Return whether this process runs the harness's own command."""
    return (command_line() or "").startswith("lm_eval")


@lru_cache(maxsize=1)
def collect_less() -> None:
    """Have a command run a tenth of the full garbage collections that it would, and none as it ends.

    One takes a quarter of a second once the harness, torch and transformers are imported, and finds nothing there. A
    program of somebody's own runs all.
    """
    if command_line() is not None:
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, 10 * old)
        # what exists then ends with the process
        atexit.register(gc.freeze)


@contextmanager
def without_traceback() -> Iterator[None]:
    """End the harness's own command with the lines of an error that a user can act on; elsewhere the error goes on."""
    try:
        yield
    except MragError as error:
        if not is_stock_command():
            raise
        print(f"mrag-eval: {error.message}", file=sys.stderr)
        print(f"    {error.next_step or 'change it, and run the same command again'}", file=sys.stderr)
        raise SystemExit(1) from error


def end_with_1() -> None:
    """Let the command end with exit code 1 once its files are written; a program of somebody's own goes on."""
    if command_line() is not None:
        exit_with_1_at_the_end()


@lru_cache(maxsize=1)
def exit_with_1_at_the_end() -> None:
    """Let this process end with exit code 1, whatever it would end with."""
    atexit.register(_exit_with_1)


def _exit_with_1() -> None:
    # the exit code is decided already; only this changes it
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
