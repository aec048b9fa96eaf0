"""The benchmarks and tasks of the package: their YAML files, the check of these, and their lists as text and JSON."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from mrag_eval.cli._task_files import read_task
from mrag_eval.config import MODES, Listed, listed_in
from mrag_eval.core import columns
from mrag_eval.datasets import LOADERS, Declaration
from mrag_eval.platform import close_match, number_of, tasks_folder

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


# Requirements on the user's side, in a few words.
NEEDS: Mapping[str, str] = {
    "download": "a connection for the first run, or a local copy",
    "files": "JSON Lines files of your own",
    "index": "an index of a corpus (mrag-eval index build), for the modes that search",
    "judge": "one or more models as judges, for the main metric",
}
# Maximum number of codes in a column; more are counted.
_LISTED = 5


def benchmark_named(name: str) -> Declaration | None:
    """Return the benchmark of that name or with that folder of tasks; None if there is no such benchmark."""
    declared = [loader.declaration for loader in LOADERS.values()]
    return next((found for found in declared if name in (found.name, found.tasks)), None)


def matching(tasks: Sequence[TaskEntry], name: str) -> list[TaskEntry]:
    """Return the tasks of the tag ``name``, or else those whose names contain it."""
    return [task for task in tasks if name in task.tags] or [task for task in tasks if name in task.name]


def nothing_named(name: str, tasks: Sequence[TaskEntry]) -> str:
    """Return the message for a name that no benchmark, tag or task has, with the closest one if there is any."""
    known = {*LOADERS, *(task.name for task in tasks), *(tag for task in tasks for tag in task.tags)}
    if Path(name).is_file():
        named, step = f"'{name}' is a file", f"mrag-eval plan --tasks {name}   shows what a task's file needs"
    else:
        named = f"no benchmark, tag or task is called '{name}'{close_match(name, known)}"
        step = "mrag-eval tasks   lists the benchmarks and tags"
    return f"mrag-eval: {named}\n    {step}"


def benchmarks_text(entries: Sequence[BenchmarkEntry]) -> str:
    """Return one line per benchmark (number of tasks, languages, needs, what it asks), and the tags."""
    rows = [("benchmark", "tasks", "languages", "needs", "asks")]
    for entry in entries:
        declared = entry.declaration
        needs = ", ".join(declared.needs) or "nothing"
        rows.append((declared.name, str(entry.tasks or ""), _few(declared.languages), needs, declared.summary))
    used = [need for need in NEEDS if any(need in entry.declaration.needs for entry in entries)]
    total, groups = sum(entry.tasks for entry in entries), sum(entry.groups for entry in entries)
    lines = [
        *columns(rows, "lr"),
        "",
        *columns([(need, NEEDS[need]) for need in used]),
        "",
        f"{number_of(total, 'task')}, {number_of(groups, 'group')}, and tags for one IR mode over all benchmarks:",
        *wrap(", ".join(tag_names()), 100, initial_indent="    ", subsequent_indent="    "),
        "mrag-eval tasks NAME   lists the tasks of one benchmark or tag, mrag-eval tasks --all every task",
    ]
    return "\n".join(lines)


def benchmark_text(declared: Declaration, tasks: Sequence[TaskEntry]) -> str:
    """Return what a benchmark declares, then its groups and its tasks."""
    facts = [(key, text) for key, text in _facts(declared) if text]
    lines = [declared.summary, *columns(facts)]
    for title in ("group", "task"):
        listed = [task for task in tasks if task.kind == title]
        if listed:
            lines += ["", number_of(len(listed), title), *_lines(listed)]
    return "\n".join(lines)


def tasks_text(tasks: Sequence[TaskEntry]) -> str:
    """Return one line per task or group, and their numbers."""
    leaves = sum(task.kind == "task" for task in tasks)
    return "\n".join([*_lines(tasks), f"{number_of(leaves, 'task')}, {number_of(len(tasks) - leaves, 'group')}"])


def benchmarks_json(entries: Sequence[BenchmarkEntry]) -> str:
    """Return the declarations, with ``n_tasks`` and ``n_groups``."""
    return _json(
        [{**_record(entry.declaration), "n_tasks": entry.tasks, "n_groups": entry.groups} for entry in entries]
    )


def benchmark_json(declared: Declaration, tasks: Sequence[TaskEntry]) -> str:
    """Return one declaration, with ``entries``, its groups and tasks."""
    return _json({**_record(declared), "entries": [_named(task) for task in tasks]})


def tasks_json(tasks: Sequence[TaskEntry]) -> str:
    """Return every task and group: name, kind, mode and summary."""
    return _json([_named(task) for task in tasks])


def _facts(declared: Declaration) -> Iterator[tuple[str, str]]:
    yield "languages", " ".join(declared.languages)
    for i, source in enumerate(declared.sources):
        yield "" if i else "data", f"{source.url or 'in this package'}: {source.terms}"
    if declared.sources and declared.tasks is not None:
        yield "texts", "may be redistributed" if declared.shareable else "may not be redistributed, as far as is known"
    for i, paper in enumerate(declared.citations):
        yield "" if i else "papers", f"{paper.authors}, {paper.venue}: {paper.title} ({paper.url})"
    yield "main metric", declared.main_metric or ""
    yield "breakdowns", ", ".join(declared.breakdowns)
    for i, need in enumerate(declared.needs):
        yield "" if i else "needs", f"{need}: {NEEDS[need]}"
    for name in declared.published:
        yield "published", f"mrag-eval report RESULTS --layout {name}"


def _few(languages: Sequence[str]) -> str:
    if not languages:
        return "any"
    return " ".join(languages) if len(languages) <= _LISTED else str(len(languages))


def _lines(tasks: Sequence[TaskEntry]) -> list[str]:
    return columns([(task.name, task.mode, task.summary) for task in tasks])


def _record(declared: Declaration) -> dict[str, Any]:
    return {**declared.model_dump(mode="json"), "licence": declared.licence}


def _named(task: TaskEntry) -> dict[str, str]:
    return {"name": task.name, "kind": task.kind, "mode": task.mode, "summary": task.summary}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
