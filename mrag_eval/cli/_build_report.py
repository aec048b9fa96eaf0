"""``mrag-eval build report``: what a built set is like, and how hard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="The --output folder of a build.")],
    results: Annotated[
        list[Path] | None, typer.Argument(help="Result files of runs on it, or folders of them (--output_path).")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What says whether an answer is right (default: the judges, where there are).")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="md, csv or json.")] = "md",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Types, languages, lengths, overlap with the sources; with results, accuracy with and without documents."""
    from mrag_eval.building import quality_tables
    from mrag_eval.report import render

    text = render(quality_tables(folder, results or (), metric), form)
    if output is None:
        typer.echo(text)
    else:
        output.write_text(f"{text}\n", encoding="utf-8")
