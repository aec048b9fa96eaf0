"""Benchmarks and tasks as the lists that ``mrag-eval tasks`` prints, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from mrag_eval.cli._catalog import BenchmarkEntry, TaskEntry, tag_names
from mrag_eval.core import columns
from mrag_eval.datasets import LOADERS, Declaration
from mrag_eval.platform import close_match, number_of

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
    return "\n".join(
        [
            f"mrag-eval: no benchmark, tag or task is called '{name}'{close_match(name, known)}",
            "    mrag-eval tasks   lists the benchmarks and tags",
        ]
    )


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
    return _json({**_record(declared), "entries": [_entry(task) for task in tasks]})


def tasks_json(tasks: Sequence[TaskEntry]) -> str:
    """Return every task and group: name, kind, mode and summary."""
    return _json([_entry(task) for task in tasks])


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


def _entry(task: TaskEntry) -> dict[str, str]:
    return {"name": task.name, "kind": task.kind, "mode": task.mode, "summary": task.summary}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
