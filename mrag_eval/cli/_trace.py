"""The commands around traces of the agents' loop."""

from __future__ import annotations

import json
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
    from mrag_eval.retrieval import find_trace, shown_trace

    typer.echo(shown_trace(find_trace(places or [Path("traces")], row, task)))


@trace_app.command(short_help="Which share of the rewritten queries narrows, paraphrases or expands.")
def rewrites(
    places: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PLACE]...", help="Trace or sample files, or folders of them (default: traces)."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A model of the config file, which labels them (default: count them).")
    ] = None,
    task: Annotated[str | None, typer.Option(help="Of this task alone.")] = None,
    questions: Annotated[int | None, typer.Option(min=1, help="Of so many questions, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw, and of the order written.")] = 0,
    human: Annotated[
        Path | None, typer.Option(help="People's labels to hold the model against: columns previous, rewritten, label.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the pairs to this CSV file, to be labelled by hand.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Count the planner's rewritings in the traces of a run, and have them labelled by a model."""
    from mrag_eval.report import rewrites_report, shown_report

    report = rewrites_report(
        places or [Path("traces")], model, task=task, questions=questions, seed=seed, people=human, write=write
    )
    typer.echo(json.dumps(report, indent=2, ensure_ascii=False) if as_json else shown_report(report))
