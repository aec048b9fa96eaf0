"""``mrag-eval verify``: whether the scores of runs follow from their samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._options import command


@command()
def verify(
    runs: list[Path],
    *,
    own_settings: bool = False,
    allow: str | None = None,
    strict: bool = False,
    data: Annotated[list[Path], typer.Option(exists=True)] | None = None,
    as_json: bool = False,
) -> None:
    """Compute the scores of runs again from their samples, and print line by line what differs.

    A fault is something that does not follow from replies, rankings, votes and the benchmark's rows. What is open could
    not be compared with this version, or without data that are not here. A deviation is a setting that is not the
    task's own, or a run on a part of its rows (--limit). The exit code is 1 for a fault, else 3 for what is open, else
    4 for a deviation that neither --own-settings nor --allow accepts. The last lines name what cannot be checked.

    Args:
        runs (RUN): Output folders of runs, or their results_*.json.
        own_settings: Accept settings and numbers of rows that are not the benchmark's.
        allow (KEYS): Accept deviations in these keys or blocks: retrieval.k,judge,rows.
        strict: Count notes as faults.
        data (PATH): A copy of a benchmark's files, or a folder with copies under their names, to compare rows with.
        as_json (--json): Print the findings as JSON.
    """
    from mrag_eval.platform import tasks_folder
    from mrag_eval.report import verify as verified

    found = verified(runs, tasks_folder(), data or ())
    if as_json:
        typer.echo(json.dumps([file.as_dict() for file in found], indent=2, ensure_ascii=False))
    else:
        for file in found:
            typer.echo("\n".join(file.lines))
    allowed = None if own_settings else [key.strip() for key in (allow or "").split(",")]
    codes = {file.code(allowed, strict=strict) for file in found}
    raise typer.Exit(min(codes - {0}, default=0))
