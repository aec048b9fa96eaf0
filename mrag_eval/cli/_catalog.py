"""The benchmarks and tasks of the package: their YAML files, their descriptions, and the check of their files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.cli._task_files import read_task
from mrag_eval.config import MODES, Listed, listed_in
from mrag_eval.platform import tasks_folder

if TYPE_CHECKING:
    from mrag_eval.datasets import Declaration


@dataclass(frozen=True)
class TaskEntry:
    """One name that ``--tasks`` takes. ``mode`` is the IR mode, empty for groups; ``summary`` is a line about it.

    ``tags`` are the other names under which ``--tasks`` finds it, together with all tasks of that tag.
    """

    name: str
    kind: str
    mode: str
    summary: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class BenchmarkEntry:
    """A benchmark's declaration, with the number of its tasks and groups."""

    declaration: Declaration
    tasks: int
    groups: int


def list_tasks(folder: Path | None = None) -> list[TaskEntry]:
    """Return every task and group in ``folder`` (default: ours), by name. Files that do not parse are left out."""
    listed = listed_in([folder or tasks_folder()])
    return [_entry(name, listed[name]) for name in sorted(listed)]


def list_benchmarks() -> list[BenchmarkEntry]:
    """Return every benchmark with the number of its tasks and groups; no task file is parsed for it."""
    from mrag_eval.datasets import LOADERS

    entries = []
    for loader in LOADERS.values():
        declared = loader.declaration
        files = [] if declared.tasks is None else list(_yaml_files(tasks_folder() / declared.tasks))
        groups = sum(re.search("^group:", file.read_text("utf-8"), re.MULTILINE) is not None for file in files)
        entries.append(BenchmarkEntry(declared, len(files) - groups, groups))
    return entries


def tasks_of(declared: Declaration) -> list[TaskEntry]:
    """Return the tasks and groups of a benchmark, by name."""
    return [] if declared.tasks is None else list_tasks(tasks_folder() / declared.tasks)


def check_tasks(folder: Path | None = None) -> list[str]:
    """Return the faults of the task files in ``folder`` (default: ours), one line each; empty if there are none.

    The harness skips a broken task file in silence; here each one is read, its blocks and prompt are validated, and
    the members of groups are looked up.
    """
    root = folder or tasks_folder()
    faults: list[str] = []
    defined: dict[str, list[Path]] = defaultdict(list)
    groups: dict[Path, Listed] = {}
    for path in _yaml_files(root):
        try:
            listed = Listed(path, read_task(path, with_functions=True))
            if listed.is_group:
                groups[path] = listed
            else:
                _check_leaf(path, listed.config)
            defined[listed.config["group" if listed.is_group else "task"]].append(path)
        except Exception as error:  # any error in a file is a finding, and the next file is still checked
            said = next(iter(str(error).strip().splitlines()), type(error).__name__)
            faults.append(f"{path.relative_to(root)}: {said}")
    faults += [
        f"{paths[1].relative_to(root)}: the name '{name}' is already that of {paths[0].relative_to(root)}"
        for name, paths in defined.items()
        if len(paths) > 1
    ]
    faults += [
        f"{path.relative_to(root)}: group member '{member}' is no task here"
        for path, group in groups.items()
        for member, _ in group.members
        if member not in defined
    ]
    return sorted(faults)


def tag_names() -> list[str]:
    """Return the names of our tags; no task file is parsed for it."""
    found = (
        re.search(r"^tag: \[?([\w, ]+)", file.read_text("utf-8"), re.MULTILINE)
        for file in tasks_folder().rglob("*yaml")
    )
    return sorted({tag.strip() for match in found if match is not None for tag in match[1].split(",")})


def _yaml_files(folder: Path) -> Iterator[Path]:
    """Yield the files that the harness would index: bases, whose names end in ``_yaml``, are not among them.

    ``mrag.yaml`` may sit next to task files, and ``_matrix.yaml`` is what they are written from; skip both.
    """
    yield from sorted(path for path in folder.rglob("*.yaml") if path.name not in ("mrag.yaml", "_matrix.yaml"))


def _entry(name: str, listed: Listed) -> TaskEntry:
    config = listed.config
    if listed.is_group:
        alias = config.get("group_alias")
        count = f"group of {len(listed.members)}"
        return TaskEntry(name, "group", "", f"{count} · {alias}" if alias else count)
    retrieval = config.get("retrieval")
    mode = str(retrieval.get("mode", "no_ir")) if isinstance(retrieval, Mapping) else "no_ir"
    return TaskEntry(name, "task", mode, MODES[mode].summary if mode in MODES else "", listed.tags)


def _check_leaf(path: Path, config: Mapping[str, Any]) -> None:
    from mrag_eval.config import split_config
    from mrag_eval.datasets import validate_data
    from mrag_eval.prompts import load_template
    from mrag_eval.scoring import METRIC_NAMES

    _, blocks = split_config(
        {**config, "metadata": {**(config.get("metadata") or {}), "config_source": str(path)}}, METRIC_NAMES
    )
    validate_data(blocks.data)
    load_template(blocks.prompt.template, blocks.prompt.system, name_language=blocks.prompt.name_language)
