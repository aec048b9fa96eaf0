"""``mrag-eval build report``: the description of a set that was built."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._options import form_of, output_file, write_or_print


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of the set (--output of the build).")],
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="Result files of runs on the set, or folders that contain them (--output_path)."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The metric that decides whether an answer is right. The default is the judges' if there are any."
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="The format of the tables: md, csv or json. The default is md.")
    ] = None,
    output: Annotated[
        Path | None,
        output_file("--output", "-o", help="Write to this file. Its extension sets the format: .md, .csv or .json."),
    ] = None,
) -> None:
    """Describe a set that was built: its types, languages and lengths, and the overlap with its sources.

    With results, the report adds accuracy with and without documents.
    """
    from mrag_eval.building import quality_tables
    from mrag_eval.report import render

    form = form_of(form, output)
    write_or_print(render(quality_tables(folder, results or (), metric), form), output)
