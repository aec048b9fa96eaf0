"""``mrag-eval tasks``: the benchmarks, the tasks of one of them or of a tag, and the check of task files."""

from __future__ import annotations

from pathlib import Path

import typer

from mrag_eval.cli._options import command
from mrag_eval.platform import number_of


@command()
def tasks(
    name: str = "",
    *,
    every: bool = False,
    as_json: bool = False,
    path: bool = False,
    check: bool = False,
    folder: Path | None = None,
) -> None:
    """List the benchmarks: what each asks, its languages, its number of tasks, and what you need to run it.

    With the name of a benchmark, print what is known about it and list its groups and tasks. With the name of a tag,
    list its tasks. The exit code is 2 if nothing has that name.

    Args:
        name: A benchmark, a tag, or a part of the names of tasks.
        every (--all): List every task and group by name.
        as_json (--json): Print the list as JSON.
        path: Print the folder of task files and nothing else.
        check: Validate every task file; exit code 1 on a fault.
        folder: List or check another folder of task files.
    """
    from mrag_eval.cli import _catalog as catalog
    from mrag_eval.platform import ConfigError, tasks_folder

    if folder is not None and not folder.is_dir():
        raise ConfigError(f"--folder {folder} is not a folder", "name the folder that holds your task files")
    if path:
        typer.echo(folder or tasks_folder())
        return
    if check:
        faults = catalog.check_tasks(folder)
        for fault in faults:
            typer.echo(fault)
        checked = len(catalog.list_tasks(folder))
        typer.echo(f"{checked} tasks and groups, {number_of(len(faults), 'fault')}")
        raise typer.Exit(1 if faults else 0)
    if folder is None and not every and not name:
        entries = catalog.list_benchmarks()
        typer.echo(catalog.benchmarks_json(entries) if as_json else catalog.benchmarks_text(entries))
        return
    found = None if every or folder is not None else catalog.benchmark_named(name)
    if found is not None:
        own = catalog.tasks_of(found)
        typer.echo(catalog.benchmark_json(found, own) if as_json else catalog.benchmark_text(found, own))
        return
    known = catalog.list_tasks(folder)
    listed = catalog.matching(known, name)
    if name and not listed:
        typer.echo(catalog.nothing_named(name, known), err=True)
        raise typer.Exit(2)
    typer.echo(catalog.tasks_json(listed) if as_json else catalog.tasks_text(listed))
