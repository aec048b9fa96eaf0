"""What the harness is doing now, read from its calls on the stack: it tells its tasks none of this."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import Entry, Kind, TaskIndex

from mrag_eval.core import MragError
from mrag_eval.harness._task_files import read_task_file


def run_variables() -> Mapping[str, Any]:
    """Return the variables of the ``simple_evaluate`` under way, which hands neither tracker nor model to its tasks."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "simple_evaluate":
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


class Loaded(NamedTuple):
    """The groups and tags that hold a task, and its file, or its configuration if it is loaded without a file."""

    holders: frozenset[str]
    file: Path | None = None
    config: Mapping[str, Any] | None = None


def loaded_together() -> dict[str, Loaded] | None:
    """Return the tasks of a class of their own, as ours are, that are being loaded together; None while none is."""
    frame = _loading()
    if frame is None:
        return None
    asked = frame.f_locals["task_list"]
    found = dict(_loaded(frame.f_locals["self"], tuple(map(_name_of, asked))))
    for spec in asked:
        # the harness's command reads a task file itself
        if isinstance(spec, Mapping) and "class" in spec:
            tags = spec.get("tag") or ()
            found.setdefault(_name_of(spec), Loaded(frozenset([tags] if isinstance(tags, str) else tags), config=spec))
    return found


# Each task that is loaded asks for all of them.
@lru_cache(maxsize=1)
def _loaded(manager: TaskManager, asked: tuple[str, ...]) -> dict[str, Loaded]:
    index = manager.task_index
    holders: dict[str, set[str]] = {}
    for holder in (*manager.all_groups, *manager.all_tags):
        for leaf in _leaves(holder, index):
            holders.setdefault(leaf, set()).add(holder)
    found = {}
    for name in (leaf for one in asked for leaf in _leaves(one, index)):
        entry = _entry(name, index)
        if entry is not None and entry.kind is Kind.PY_TASK:
            found[entry.name] = Loaded(frozenset(holders.get(entry.name, set()) | entry.tags), entry.yaml_path)
    return found


def _loading() -> FrameType | None:
    """Return the call of ``TaskManager.load`` from which this function is called."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not TaskManager.load.__code__:
        frame = frame.f_back
    return frame


def _entry(name: str, index: Mapping[str, Entry]) -> Entry | None:
    """Return the harness's entry of a name, or of a task file; None if there is no such name or file."""
    if name in index or not name.endswith(".yaml") or not Path(name).is_file():
        return index.get(name)
    found: dict[str, Entry] = {}
    TaskIndex.process_cfg(read_task_file(Path(name)), Path(name), found)
    return next(iter(found.values()))


def _leaves(name: str, index: Mapping[str, Entry], above: Sequence[str] = ()) -> Iterator[str]:
    """Yield the tasks of a group or tag, of groups within it too; of any other name, itself."""
    entry = _entry(name, index)
    if entry is not None and entry.kind is Kind.TAG:
        yield from sorted(entry.tags)
    elif entry is None or entry.kind is not Kind.GROUP:
        yield name
    elif name not in above:
        yield from _leaves_of((entry.cfg or {}).get("task"), index, (*above, name))


def _leaves_of(members: Any, index: Mapping[str, Entry], above: Sequence[str]) -> Iterator[str]:
    for member in members if isinstance(members, list) else ():
        given = member if isinstance(member, Mapping) else {"task": member}
        name = str(given.get("group", given.get("task")))
        if "group" in given and name not in index:
            # a group that is written within another
            yield from _leaves_of(given.get("task"), index, above)
        else:
            yield from _leaves(name, index, above)


def _name_of(asked: Any) -> str:
    """Return the name of a task as the harness is asked for it: by name, by configuration, or built."""
    if isinstance(asked, Mapping):
        return str(asked.get("task"))
    return str(asked if isinstance(asked, str) else getattr(asked, "task_name", None) or asked.name)


class StockRun(NamedTuple):
    """A run of the harness's own command: its tasks, as names and configurations, and who loads them."""

    asked: list[str | Mapping[str, Any]]
    manager: TaskManager


def stock_run() -> StockRun | None:
    """Return what the harness's own command loads, when its first task is built; None for any other, and elsewhere.

    From then on an error that a user can act on ends that command in its own lines, without a traceback.
    """
    load, frame = _loading(), sys._getframe().f_back
    while frame is not None and not _is_stock_command(frame):
        frame = frame.f_back
    if load is None or frame is None or hasattr(load.f_locals["self"], "mrag_eval_planned"):
        return None
    manager: Any = load.f_locals["self"]
    manager.mrag_eval_planned = True
    sys.excepthook = partial(_say_mistake, sys.excepthook)
    asked = [one for one in load.f_locals["task_list"] if isinstance(one, str | Mapping)]
    return StockRun(asked, manager)


def _is_stock_command(frame: FrameType) -> bool:
    """Return whether a frame is the harness's command, started as a program or with ``python -m``."""
    code = frame.f_code
    return code.co_name == "cli_evaluate" and Path(code.co_filename).parts[-2:] == ("lm_eval", "__main__.py")


def _say_mistake(
    otherwise: Callable[[type[BaseException], BaseException, Any], Any],
    kind: type[BaseException],
    error: BaseException,
    trace: Any,
) -> None:
    """Print an error that a user can act on as ``mrag-eval`` does; leave any other to the hook that was there."""
    if isinstance(error, MragError):
        print(f"mrag-eval: {error.message}", file=sys.stderr)
        print(f"    {error.next_step or 'change it, and run the same command again'}", file=sys.stderr)
    else:
        otherwise(kind, error, trace)
