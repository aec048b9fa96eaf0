"""``mrag-eval report`` and ``mrag-eval trace``: finished runs as tables or one HTML page, and one question."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from mrag_eval.cli._options import (
    NewFile,
    command,
    form_of,
    refuse_with,
    warned_of_unsupported,
    write_or_print,
)
from mrag_eval.platform import Natural, number_of


@command()
def report(
    context: typer.Context,
    results: list[Path],
    *,
    output: NewFile | None = None,
    form: str | None = None,
    layout: str | None = None,
    territory: str | None = None,
    samples: Natural | None = None,
    text: bool = True,
) -> None:
    """Show the scores of runs with their confidence intervals.

    With --layout, the figures of a paper are printed next to yours; runs with other settings are below the table.

    With --territory, print the answers about a territory by model, mode and language, with the viewpoints of the
    documents shown. RESULTS are then sample files (--log_samples), or folders that contain them.

    With -o FILE.html, everything is written to one page that needs no network: charts, error sources, judges and
    samples.

    Args:
        results (RESULTS): Result files of runs, or folders that contain them (--output_path of a run).
        output (-o): Write to this file. Its extension sets the format: .html (a page), .md, .csv or .json.
        form (--format): The output format: md, csv or json. The default is md.
        layout: Print the tables of a paper (xrag, ...), or `policies`: retrieval by language pair.
        territory: Show one disputed territory of BordIRlines, such as `Spratly Islands`. Needs samples.
        samples: Number of samples of each task in the HTML page. The default is as many as fit into 5 MB.
        text: Include the texts of passages in the HTML page.
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


@command()
def trace(row: str, places: list[Path], *, task: str | None = None) -> None:
    """Show how the agents' loop (retrieval.mode=coral) answered one question: the queries, passages, scores and
    decisions of each round.

    Args:
        row (ROW): The id of a row, or its number in the samples.
        task: The task of the row, if several tasks have such a row.
    """
    from mrag_eval.retrieval import find_trace, shown_trace

    typer.echo(shown_trace(find_trace(places, row, task)))
