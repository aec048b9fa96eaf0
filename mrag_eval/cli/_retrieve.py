"""``mrag-eval retrieve``: the retrieval of tasks as a step of its own, without a model to evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer


def retrieve(
    tasks: Annotated[str, typer.Option("--tasks", "-t", help="Names of tasks and groups, separated by commas.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to, or to go on with.")],
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="Settings of our blocks, as for a run; may be repeated.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option("--limit", "-L", help="So many rows of each task, or that share of them.")
    ] = None,
    samples: Annotated[
        str | None, typer.Option("--samples", "-E", help="Row numbers by task, as JSON or a file of it.")
    ] = None,
    include_path: Annotated[
        str | None, typer.Option("--include_path", "--include-path", help="A folder of task files of your own.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Retrieve anew what the folder holds of these tasks.")
    ] = False,
) -> None:
    """Search, plan, translate and rerank for the rows of tasks, and keep what each row gets.

    Runs of any model then take it from there: mrag-eval run ... --metadata retrieval.run_folder=FOLDER
    """
    from mrag_eval.cli._harness import built_tasks
    from mrag_eval.retrieval import open_folder, retrieve_into

    if limit is not None and samples is not None:
        raise typer.BadParameter("goes without --samples", param_hint="--limit")
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
    """The harness's own flags, which it reads its own way."""
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
