"""``mrag-eval judge rewrites``: the kinds of rewritten queries in the traces of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._options import TracePlaces, output_file


def rewrites(
    places: TracePlaces,
    model: Annotated[
        str | None, typer.Option(help="The model of the config file that labels. The default only counts the rewrites.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="Read only this task.")] = None,
    questions: Annotated[
        int | None, typer.Option(min=1, help="Number of questions to draw at random. The default is all.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the draw and of the order in the file.")] = 0,
    human: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CSV",
            help="A person's labels: columns previous, rewritten, label. Give one file per person. Those on which all "
            "agree are final, and their shares are printed; two or more people are also compared with each other.",
        ),
    ] = None,
    write: Annotated[
        Path | None, output_file(metavar="CSV", help="Write the pairs of queries to this file, for people to label.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Count the planner's rewritten queries, and the shares that narrow, paraphrase or expand, by people or a model."""
    from mrag_eval.report import rewrites_report, shown_report

    people = human or ()
    report = rewrites_report(places, model, task=task, questions=questions, seed=seed, people=people, write=write)
    typer.echo(json.dumps(report, indent=2, ensure_ascii=False) if as_json else shown_report(report))
