"""``mrag-eval retrieve``: the retrieval of tasks as a separate step, without a model to evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer


def retrieve(
    tasks: Annotated[str, typer.Option("--tasks", "-t", help="Names of tasks, groups or tags, separated by commas.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to. A folder from an earlier call is continued.")
    ],
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", help="Settings of the tasks, as in `mrag-eval run --help`. May be repeated."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option("--limit", "-L", help="Number (or, below 1, the fraction) of rows of each task.")
    ] = None,
    samples: Annotated[
        str | None, typer.Option("--samples", "-E", help="The rows of each task by number, as JSON or a JSON file.")
    ] = None,
    include_path: Annotated[
        str | None, typer.Option("--include_path", "--include-path", help="A folder of your own task files.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Retrieve again what the folder already contains of these tasks.")
    ] = False,
) -> None:
    """Retrieve the passages of every row of the tasks, and keep them in a folder.

    Runs of any model can then use them: mrag-eval run ... --metadata retrieval.run_folder=FOLDER
    """
    from mrag_eval.cli._harness import built_tasks
    from mrag_eval.retrieval import open_folder, retrieve_into

    found, chosen = built_tasks(_flags(tasks, metadata, limit, samples, include_path))
    folder = open_folder(output)
    done = []
    for name, task in found.items():
        retrieval = task.supply.blocks.retrieval
        if retrieval.run_folder is not None:
            raise typer.BadParameter(f"task {name} takes its rows from a run folder", param_hint="--metadata")
        if not retrieval.retrieves:
            typer.echo(f"{name}: mode {retrieval.mode} retrieves nothing")
            continue
        done.append(retrieve_into(folder, name, task.supply, task.rows_to_run(limit, chosen), overwrite=overwrite))
    for one in done:
        kept = f", {one.kept:,} of them from before" if one.kept else ""
        faults = "".join(f", {count:,} with a fault ({fault})" for fault, count in one.faults.items())
        typer.echo(f"{one.task}: {one.rows:,} rows{kept}{faults}")
    if done:
        typer.echo(f"{output}: use it   mrag-eval run --tasks {tasks} ... --metadata retrieval.run_folder={output}")


def _flags(
    tasks: str, metadata: Sequence[str] | None, limit: float | None, samples: str | None, include: str | None
) -> list[str]:
    """Return the flags as the harness's command line writes them."""
    flags = ["--tasks", tasks]
    for given in metadata or ():
        flags += ["--metadata", given]
    if limit is not None:
        flags += ["--limit", str(limit)]
    if samples is not None:
        flags += ["--samples", samples]
    if include is not None:
        flags += ["--include_path", include]
    return flags
