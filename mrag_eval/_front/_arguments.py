"""Arguments of the Python interface: settings, names of tasks, folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from mrag_eval.config import BLOCKS, closest_task
from mrag_eval.platform import ConfigError, check_output, tasks_folder

if TYPE_CHECKING:
    from mrag_eval.harness import TaskManager

Block = Mapping[str, Any]


def blocks_of(**given: Block | None) -> dict[str, Any]:
    for name, block in given.items():
        if block is not None and not isinstance(block, Mapping):
            raise ConfigError(
                f"{name}: expected a dictionary of settings, got {type(block).__name__}", f"{name}={{...}}"
            )
    return {name: dict(block) for name, block in given.items() if block is not None}


def named_blocks(settings: Mapping[str, Block]) -> dict[str, Any]:
    """Return settings by the name of a benchmark, group, tag or task. Raises ConfigError for anything else."""
    for name, blocks in blocks_of(settings=settings).get("settings", {}).items():
        if name in BLOCKS:
            raise ConfigError(f"settings: '{name}' is a block, not a name", f"pass it as {name}={{...}}, for all tasks")
        if not isinstance(blocks, Mapping) or not all(str(key).partition(".")[0] in BLOCKS for key in blocks):
            raise ConfigError(
                f"settings['{name}']: expected blocks ({', '.join(BLOCKS)}), got {blocks!r}",
                f'settings={{"{name}": {{"retrieval": {{"k": 3}}}}}}',
            )
    return dict(settings)


def manager_over(include: str | Path | None, metadata: Mapping[str, Any]) -> TaskManager:
    from mrag_eval.harness import task_manager

    folders = [str(tasks_folder())]
    if include is not None:
        if not Path(include).is_dir():
            raise ConfigError(f"include={include} is not a folder", "name the folder that holds your task files")
        folders.append(str(include))
    return task_manager(folders, dict(metadata))


def known_names(tasks: str | Sequence[str], manager: TaskManager) -> list[str]:
    """Return the names of tasks as the harness knows them. Raises ConfigError for one that it does not."""
    names = [tasks] if isinstance(tasks, str) else list(tasks)
    known = set(manager.all_tasks)
    for name in names:
        if not name.endswith(".yaml") and name not in known:
            raise ConfigError(
                f"no task '{name}'{closest_task(name, known)}",
                "mrag-eval tasks   lists them; include=FOLDER adds your own",
            )
    if not names:
        raise ConfigError("evaluate: no task is named", 'e.g. tasks="mrag_demo"')
    return [str(Path(name).absolute()) if name.endswith(".yaml") else name for name in names]


def folder_for(output: str | Path | None) -> Path:
    """Return the folder to write to, created if it is missing. Raises ConfigError for the path of a file."""
    folder = Path(mkdtemp(prefix="mrag_eval_") if output is None else output).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"output={folder} is a file", "name a folder")
    if folder.suffix == ".json":
        raise ConfigError(f"output={folder}: .json is the ending of a file", "name a folder")
    check_output(folder, "output")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
