"""``mrag-eval rerun``: the command that repeats a run, printed or run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def rerun(
    results: Annotated[Path, typer.Argument(help="The results_*.json of a run, or its output folder (the newest).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder of the repetition.")] = Path(
        "out/rerun"
    ),
    execute: Annotated[
        bool, typer.Option("--run", help="Run it, and compare the numbers (exit code 1: they differ).")
    ] = False,
) -> None:
    """Print the exact command on stdout, and on stderr what the file does not tell (keys, config file, versions)."""
    from mrag_eval.cli._catalog import tasks_folder
    from mrag_eval.report import repeated
    from mrag_eval.report import rerun as command_for

    found = command_for(results, output, tasks_folder())
    typer.echo(found.command)
    for note in found.notes:
        typer.echo(f"# {note}", err=True)
    if not execute:
        return
    from mrag_eval.cli._harness import run

    run(found.arguments)
    outcome = repeated(found.source, output)
    for task in outcome:
        typer.echo(task.line)
    raise typer.Exit(1 if any(task.other for task in outcome) else 0)
