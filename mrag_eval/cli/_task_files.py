"""Task files that cannot be used: what is wrong with a file, and which file a task's fault is in."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mrag_eval.config import BLOCKS, read_task_yaml
from mrag_eval.platform import ConfigError, MragError, beside

_CLASS = "add the line   class: !function mrag_eval.task.RagTask"


def read_task(path: Path, *, with_functions: bool = False) -> dict[str, Any]:
    """Return the content of the file of a task or group.

    Raises ConfigError for a file that cannot be read, has no name, or has our blocks and no class.
    """
    from yaml import YAMLError

    try:
        config = _content(path, with_functions)
    except OSError as error:
        own = error.filename in (None, str(path.resolve()))
        named = beside(path) if own else f": {error.filename}"
        raise ConfigError(f"{path}: cannot be read ({error.strerror}{named})", "name a readable YAML file") from None
    except (YAMLError, ValueError, TypeError, AttributeError, ImportError, RecursionError) as error:
        said = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"{path}: not the YAML of a task: {said}",
            f"correct it, then: mrag-eval tasks --check --folder {path.parent}",
        ) from None
    key = next((key for key in ("group", "task") if key in config), None)
    if key is None:
        raise ConfigError(f"{path}: neither 'task' nor 'group' is set", "add a line  task: NAME  (or group: NAME)")
    if not isinstance(config[key], str) or not config[key].strip():
        raise ConfigError(f"{path}: '{key}' is {config[key]!r}, not a name", f"write the line as  {key}: NAME")
    block = next((block for block in BLOCKS if block in config), None)
    if key == "task" and block is not None and config.get("class") is None:
        raise ConfigError(f"{path}: 'class' is missing, which the block '{block}' requires", _CLASS)
    if isinstance(config.get("class"), str) and with_functions:
        raise ConfigError(f"{path}: class is the word '{config['class']:.60}', not a class", _CLASS)
    return config


def _content(path: Path, with_functions: bool) -> dict[str, Any]:
    if not with_functions:
        return read_task_yaml(path)
    from mrag_eval.harness import read_task_file

    return read_task_file(path, with_functions=True)


def expanded(names: Sequence[str], known: Container[str], *, with_functions: bool = True) -> list[str]:
    """Return the names of tasks, with the YAML files of a folder in place of the folder.

    ``with_functions`` imports what the files name; without it the harness is not loaded.

    Raises ConfigError for a file or a folder that holds no task.
    """
    (folder, *others) = names
    if not others and Path(folder).is_dir() and folder not in known:
        found = sorted(str(path) for path in Path(folder).glob("*.yaml"))
        if not found and Path(folder).name != folder:
            raise ConfigError(
                f"--tasks {folder}: the folder holds no task file (.yaml)", "--tasks NAME, with --include_path FOLDER"
            )
        names = found or names
    for name in names:
        if name.endswith(".yaml") and "*" not in name:
            read_task(Path(name), with_functions=with_functions)
    return list(names)


def fault_in(folders: Sequence[str], names: Container[str] | None = None) -> MragError | None:
    """Return the fault of the first task file in ``folders`` that has one; None if there is no fault.

    Only files that say which task they define are checked; with ``names``, only those of these tasks, and those that
    are called like them.
    """
    for path in (path for folder in folders for path in sorted(Path(folder).rglob("*.yaml"))):
        try:
            named = _named_in(path)
            if named if names is None else (path.stem in names or named in names):
                read_task(path, with_functions=True)
        except OSError as error:
            return ConfigError(f"{path}: cannot be read ({error.strerror})", "name a readable YAML file")
        except MragError as error:
            return error
    return None


@contextmanager
def blaming(folders: Sequence[str]) -> Iterator[None]:
    """Turn an unexpected error of the block into the fault of the first faulty task file in ``folders``, if any."""
    try:
        yield
    except MragError:
        raise
    except Exception as error:
        fault = fault_in(folders)
        if fault is None:
            raise
        raise fault from error


def _named_in(path: Path) -> str:
    """Return the name on the line ``task:`` or ``group:`` of a file that may not be YAML; empty without one."""
    found = re.search(r"^(?:task|group):\s*(\S+)", path.read_text("utf-8", "replace"), re.MULTILINE)
    return "" if found is None else found[1]
