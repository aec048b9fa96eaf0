"""The commands around traces of the agents' loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

trace_app = typer.Typer(help="How the agents' loop went, question by question.", no_args_is_help=True)


@trace_app.callback()
def _traces() -> None:
    """How the agents' loop went, question by question."""


@trace_app.command(short_help="One question's trace: what was searched, found, scored and decided in each round.")
def show(
    row: Annotated[str, typer.Argument(metavar="DOC_ID", help="The row's own id, or its number in the samples.")],
    places: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PLACE]...", help="Trace or sample files, or folders of them (default: traces)."),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Of this task, where several have the row.")] = None,
) -> None:
    """Print the trace of one question of a run with retrieval.mode=coral."""
    from mrag_eval.agents.trace import find_trace, shown_trace

    typer.echo(shown_trace(find_trace(places or [Path("traces")], row, task)))
