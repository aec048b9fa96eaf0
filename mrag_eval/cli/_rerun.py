"""``mrag-eval rerun``: the command that repeats a run."""

from __future__ import annotations

from pathlib import Path

import typer

from mrag_eval.cli._options import command


@command()
def rerun(results: Path, *, output: Path = Path("out/rerun"), execute: bool = False, trust: bool = False) -> None:
    """Print the exact command that repeats a run.

    Notes on what the command leaves out, and on what the results do not contain (keys, config file, versions), go to
    standard error.

    Args:
        results: The results_*.json of a run, or its output folder, whose newest file is read.
        output (-o): The output folder of the repetition.
        execute (--run): Run the command and compare the scores. The exit code is 1 if they differ.
        trust: Also repeat code, hosts, files and folders that the results name.
    """
    from contextlib import nullcontext

    from mrag_eval.platform import DataError, reading_back, tasks_folder
    from mrag_eval.report import repeated
    from mrag_eval.report import rerun as command_for

    found = command_for(results, output, tasks_folder(), trust=trust)
    typer.echo(found.command)
    for note in found.notes:
        typer.echo(f"# {note}", err=True)
    if not execute:
        return
    if found.withheld:
        raise DataError(
            f"{found.source}: {', '.join(found.withheld)}: only you can allow what these results name",
            "if they are yours, add --trust",
        )
    from mrag_eval.cli._harness import run

    with nullcontext() if trust else reading_back(found.source):
        run(found.arguments)
    outcome = repeated(found.source, output)
    for task in outcome:
        typer.echo(task.line)
    raise typer.Exit(1 if any(task.other for task in outcome) else 0)
