"""The command that runs the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAMES]...", help="Which (default: all).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small numbers: do they run? Bounds are not applied.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="The largest sizes too: 10 million vectors, an hour more.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write all figures as JSON.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Print the names and run nothing.")] = False,
) -> None:
    """Run benchmarks/ one after another; exit code 1 where one fails or an asked ratio is missed."""
    from mrag_eval.cli._benchmarks import benchmarks_folder, known_benchmarks, run_benchmarks, shown_benchmarks

    if listed:
        for name in known_benchmarks(benchmarks_folder()):
            typer.echo(name)
        return
    measured = run_benchmarks(names or (), quick=quick, full=full, say=lambda line: typer.echo(line, err=True))
    typer.echo(shown_benchmarks(measured))
    if output is not None:
        output.write_text(json.dumps(measured.as_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if not measured.ok:
        raise typer.Exit(1)
