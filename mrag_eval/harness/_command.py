"""The command that this process runs, as its arguments say: ours, or the harness's own."""

from __future__ import annotations

import atexit
import os
import shlex
import sys
from functools import lru_cache
from pathlib import Path

# Programs by the file that was started, and as modules.
_PROGRAMS = {"mrag-eval": "mrag-eval", "lm_eval": "lm_eval", "lm-eval": "lm_eval"}
_MODULES = {("mrag_eval", "cli", "__main__.py"): "mrag-eval", ("lm_eval", "__main__.py"): "lm_eval"}


def command_line() -> str | None:
    """Return the command as a line of a shell; None in a program of somebody's own."""
    path = Path(sys.argv[0])
    module = next((name for end, name in _MODULES.items() if path.parts[-len(end) :] == end), None)
    name = _PROGRAMS.get(path.name, module)
    return None if name is None else shlex.join([name, *sys.argv[1:]])


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
