"""What the harness is doing now, read from its calls on the stack: it tells its tasks none of this."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager


@dataclass(frozen=True, eq=False)
class TaskLoading:
    """One call of ``TaskManager.load``: the names and configurations of the tasks that it loads, and the manager."""

    asked: list[str | Mapping[str, Any]]
    manager: TaskManager


# What the first argument of that call is named, which differs between releases.
_ASKED = TaskManager.load.__code__.co_varnames[1]
_last: TaskLoading | None = None


def loading() -> TaskLoading | None:
    """Return the call that loads a task now, the same object for each task of it; None while none is loaded."""
    global _last
    call = _variables_of(TaskManager.load.__code__)
    if call is None:
        return None
    # a task or group that is built already goes by its name
    asked = [
        one if isinstance(one, str | Mapping) else getattr(one, "task_name", None) or one.name for one in call[_ASKED]
    ]
    if _last is None or _last.manager is not call["self"] or _last.asked != asked:
        _last = TaskLoading(asked, call["self"])
    return _last


def tracker_of_run() -> Any:
    """Return the tracker that writes the files of the run under way; None without one."""
    call = _variables_of(simple_evaluate.__wrapped__.__code__)
    return None if call is None else call["evaluation_tracker"]


def _variables_of(function: CodeType) -> Mapping[str, Any] | None:
    """Return the local variables of the innermost call of a function that has not ended; None without one."""
    frame = sys._getframe()
    while frame is not None and frame.f_code is not function:
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_locals
