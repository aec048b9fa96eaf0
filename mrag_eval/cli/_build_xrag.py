"""The command that builds a set in XRAG's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def xrag(
    corpus: Annotated[
        Path,
        typer.Argument(metavar="ARTICLES", help="A .jsonl, .jsonl.gz, .parquet or .json file, or a folder of such."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the set, its datasheet and its steps.")],
    settings: Annotated[Path | None, typer.Option(help="YAML: languages, limits, models, prompts, ...")] = None,
    model: Annotated[
        str | None, typer.Option(help="The model of the config file that does whatever the settings name none for.")
    ] = None,
    review: Annotated[
        list[Path] | None,
        typer.Option(help="Sheet for people: written where it is not there, else read; give it once for each person."),
    ] = None,
) -> None:
    """Build a set that the tasks `xrag_mono_*` and `xrag_multi_*` read; run again, it goes on where it stood."""
    from mrag_eval.building import build_xrag, read_settings, yield_table

    changes: dict[str, Any] = {} if model is None else {"models": {"default": model}}
    built = build_xrag(
        corpus, output, read_settings(settings, **changes), review_sheets=tuple(review or ()), say=typer.echo
    )
    typer.echo(yield_table(built.reports))
    typer.echo(f"datasheet  {built.datasheet}")
    if built.sheet is not None:
        typer.echo(f"review     {built.sheet}: fill it in, then run the same command again")
        return
    typer.echo(f"set        {built.output}: {built.rows:,} rows")
    typer.echo(f"use it     mrag-eval run ... --tasks xrag_multi --metadata data.path={output}")
