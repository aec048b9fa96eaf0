"""``mrag-eval report``: finished runs as tables or as one HTML page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._options import form_of, output_file, refuse_with, warned_of_unsupported, write_or_print
from mrag_eval.platform import number_of


def report(
    context: typer.Context,
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS", help="Result files of runs, or folders that contain them (--output_path of a run)."
        ),
    ],
    output: Annotated[
        Path | None,
        output_file(
            "--output",
            "-o",
            help="Write to this file. Its extension sets the format: .html (a page), .md, .csv or .json.",
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="The output format: md, csv or json. The default is md.")
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(help="Print the tables of a paper (xrag, ...), or `policies`: retrieval by language pair."),
    ] = None,
    territory: Annotated[
        str | None,
        typer.Option(help="Show one disputed territory of BordIRlines, such as `Spratly Islands`. Needs samples."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=0, help="Number of samples of each task in the HTML page. The default is as many as fit into 5 MB."
        ),
    ] = None,
    text: Annotated[bool, typer.Option(help="Include the texts of passages in the HTML page.")] = True,
) -> None:
    """Show the scores of runs with their confidence intervals.

    With --layout, the figures of a paper are printed next to yours; runs with other settings are below the table.

    With --territory, print the answers about a territory by model, mode and language, with the viewpoints of the
    documents shown. RESULTS are then sample files (--log_samples), or folders that contain them.

    With -o FILE.html, everything is written to one page that needs no network: charts, error sources, judges and
    samples.
    """
    form = form_of(form, output, () if territory is not None else ("html",))
    if form == "html" and output is not None:
        from mrag_eval.report import write_report

        refuse_with(context, "an HTML page", "layout")
        with warned_of_unsupported(results):
            data = write_report(results, output, samples=samples, text=text)
        size = output.stat().st_size / 1e6
        typer.echo(
            f"{output}: {number_of(len(data.leaves), 'task')}, {number_of(len(data.samples), 'sample')}, {size:.1f} MB"
        )
        return
    if territory is None:
        write_or_print(_tables(results, form, layout), output)
        return
    refuse_with(context, "--territory", "layout", "samples", "text")
    from mrag_eval.report import read_case, shown_case

    if form == "csv":
        raise typer.BadParameter("--territory is printed as md or json", param_hint="--format")
    with warned_of_unsupported(results):
        found = read_case(territory, results)
    shown = json.dumps(found.as_dict(), indent=2, ensure_ascii=False) if form == "json" else shown_case(found)
    write_or_print(shown, output)


def _tables(results: list[Path], form: str, layout: str | None) -> str:
    from mrag_eval.report import render

    with warned_of_unsupported(results):
        # the papers' tables load more than the scores
        if layout:
            from mrag_eval.report import report_tables

            return render(report_tables(layout, results), form)
        from mrag_eval.report import score_tables

        return render(score_tables(results), form)
