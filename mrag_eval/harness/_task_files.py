"""Files of tasks, and the harness's manager of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from lm_eval.config.task import TaskConfig
from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml

from mrag_eval.platform import ConfigError

T = TypeVar("T")
# What the harness says of a task that two of the requested names hold.
_DUPLICATE = re.compile(r"Duplicate task '([^']*)': found in both '([^']*)' and '([^']*)'")


def read_task_file(path: Path, *, with_includes: bool = True, with_functions: bool = False) -> dict[str, Any]:
    """Read a task's YAML, with the files it includes or without; functions are left as names, or imported.

    Raises ImportError for a module that ends the process, too.
    """
    try:
        return dict(load_yaml(path, resolve_func=with_functions, recursive=with_includes))
    except SystemExit as error:
        raise ImportError(f"a module that it names ends the process (SystemExit: {error})") from None


def task_keys() -> set[str]:
    """Return the keys that a task's YAML may have, ours aside."""
    return {field.name for field in fields(TaskConfig)}


def task_manager(folders: Sequence[str], metadata: dict[str, Any] | None = None) -> TaskManager:
    """Return a task manager over ``folders`` alone: indexing the built-in tasks takes over ten seconds."""
    return TaskManager(include_path=list(folders), include_defaults=False, metadata=metadata or {})


def listed_tasks(manager: TaskManager, listed: Callable[[Path | None, Mapping[str, Any]], T]) -> Mapping[str, T]:
    """Return every task and group that a task manager knows by name, as ``listed`` makes it of its file and content."""
    return _Listing(manager.task_index, listed)


class _Listing(Mapping[str, T]):
    """The entries of an index that have a content, which tags have not; each is made when it is asked for."""

    def __init__(self, index: Mapping[str, Any], listed: Callable[[Path | None, Mapping[str, Any]], T]) -> None:
        self._index, self._listed = index, listed

    def __getitem__(self, name: str) -> T:
        entry = self._index[name]
        if entry.cfg is None:
            raise KeyError(name)
        return self._listed(entry.yaml_path, entry.cfg)

    def __iter__(self) -> Iterator[str]:
        return (name for name, entry in self._index.items() if entry.cfg is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def load_tasks(manager: TaskManager, names: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the tasks and groups of these names, built, and all their tasks by name.

    Raises ConfigError for names that hold the same task.
    """
    try:
        loaded = manager.load(list(names))
    except ValueError as err:
        twice = _DUPLICATE.match(str(err))
        if twice is None:
            raise
        raise ConfigError(
            f"--tasks: {twice[1]} belongs to {twice[2]} and to {twice[3]}, and a run asks a task once",
            f"run {twice[2]} and {twice[3]} one after the other, or leave one of them out",
        ) from None
    groups = loaded.get("groups", {})
    inner = {child for group in groups.values() for child in group.child_names}
    items = [item for name, item in [*groups.items(), *loaded["tasks"].items()] if name not in inner]
    return items, loaded["tasks"]
