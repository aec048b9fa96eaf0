"""``mrag-eval verify``: whether the scores of runs follow from their samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def verify(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Output folders of runs, or their results_*.json."),
    ],
    own_settings: Annotated[
        bool, typer.Option("--own-settings", help="Accept settings and numbers of rows that are not the benchmark's.")
    ] = False,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            metavar="PATH",
            help="A copy of a benchmark's files, or a folder with copies under their names, to compare rows with.",
            exists=True,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Compute the scores of runs again from their samples, and print line by line what differs.

    A fault is something that does not follow from replies, rankings, votes and the benchmark's rows. A deviation is a
    setting that is not the task's own, or a run on a part of its rows (--limit). Both give exit code 1; with
    --own-settings only faults do. The last lines name what cannot be checked.
    """
    from mrag_eval.platform import tasks_folder
    from mrag_eval.report import verify as verified

    found = verified(runs, tasks_folder(), data or ())
    if as_json:
        typer.echo(json.dumps([file.as_dict() for file in found], indent=2, ensure_ascii=False))
    else:
        for file in found:
            typer.echo("\n".join(file.lines))
    failing = any(file.of("fault") or (file.of("deviation") and not own_settings) for file in found)
    raise typer.Exit(1 if failing else 0)
