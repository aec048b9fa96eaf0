"""What runs show: ``mrag-eval report``, ``trace`` of one question, ``controls`` without a model, and ``export``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._options import (
    FORMS,
    DeclaredCommand,
    Limit,
    NewFile,
    command,
    form_of,
    refuse_with,
    screen_width,
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
    metrics: str | None = None,
    territory: str | None = None,
    samples: Natural | None = None,
    text: bool = True,
    title: str | None = None,
) -> None:
    """Say what runs show, and give the scores behind it with their confidence intervals.

    With --layout, the figures of a paper are printed next to yours; runs with other settings are below the table.

    With --territory, print the answers about a territory by model, mode and language, with the viewpoints of the
    documents shown. RESULTS are then sample files (--log_samples), or folders that contain them.

    With -o FILE.html, everything is written to one page that needs no network: charts, error sources, judges and
    samples.

    Args:
        results (RESULTS): Result files of runs, or folders that contain them (--output_path of a run).
        output (-o): Write to this file. Its extension sets the format: .html (a page), .md, .csv, .json or .tex.
        form (--format): The output format: md, csv, json or latex. The default is md.
        layout: Print the tables of a paper (xrag, ...), or `policies`: retrieval by language pair.
        metrics: Metrics to show, separated by commas, or `all`: every metric by task and pair, what is lost, and the
            controls. The default is the headline, of one system with a few more. CSV and JSON have all.
        territory: Show one disputed territory of BordIRlines, such as `Spratly Islands`. Needs samples.
        samples: Number of samples of each task in the HTML page. The default is as many as fit into 5 MB.
        text: Include the texts of passages in the HTML page.
        title: Title of the HTML page. The default is the benchmarks and the models.
    """
    form = "tex" if form == "latex" else form
    form = form_of(form, output, () if territory is not None else ("html", "tex"))
    if output is None and form not in (*FORMS, "tex"):
        known = ", ".join((*FORMS, "latex"))
        raise typer.BadParameter(f"{form} is none of {known}; a page has a name: -o FILE.html", param_hint="--format")
    if form in ("csv", "json") and metrics not in (None, "all"):
        raise typer.BadParameter("CSV and JSON have every metric; leave it out", param_hint="--metrics")
    if form == "html" and output is not None:
        from mrag_eval.report import report_tables, write_report, write_tables

        refuse_with(context, "an HTML page", "metrics")
        if layout is not None:
            refuse_with(context, "--layout", "samples", "text")
            with warned_of_unsupported(results):
                tables = report_tables(layout, results)
                write_tables(tables, output, title or f"Layout {layout}")
            typer.echo(f"{output}: {number_of(len(tables), 'table')}")
            return
        with warned_of_unsupported(results):
            data = write_report(results, output, samples=samples, text=text, title=title)
        size = output.stat().st_size / 1e6
        typer.echo(
            f"{output}: {number_of(len(data.leaves), 'task')}, {number_of(len(data.samples), 'sample')}, {size:.1f} MB"
        )
        return
    if layout is not None:
        refuse_with(context, "--layout", "metrics")
    if territory is None:
        write_or_print(_tables(results, form, layout, metrics, printed=output is None), output)
        return
    refuse_with(context, "--territory", "layout", "metrics", "samples", "text", "title")
    from mrag_eval.report import read_case, shown_case

    if form not in ("md", "json"):
        raise typer.BadParameter("--territory is printed as md or json", param_hint="--format")
    with warned_of_unsupported(results):
        found = read_case(territory, results)
    shown = json.dumps(found.as_dict(), indent=2, ensure_ascii=False) if form == "json" else shown_case(found)
    write_or_print(shown, output)


def _tables(results: list[Path], form: str, layout: str | None, metrics: str | None, *, printed: bool) -> str:
    from mrag_eval import report as of

    # who reads a file lays it out, and a paper's table has the paper's columns
    width = screen_width() if printed and layout in (None, "policies") else None
    named = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    short = not layout and named != ["all"] and form not in ("csv", "json")
    with warned_of_unsupported(results):
        if layout:
            tables = of.report_tables(layout, results)
        else:
            tables = of.short_tables(results, named, width) if short else of.score_tables(results)
        found = [] if layout or form == "csv" else of.findings_of(results)
    if form == "tex":
        return of.latex_tables(tables, found)
    text = of.render(tables, form, width)
    if printed and short:
        folders = " ".join(map(shlex.quote, map(str, results)))
        step = f"mrag-eval report {folders} --metrics all    every metric, pair and control"
        text += f"\n\nnext       {next((one.next for one in found[:1] if ' compare ' in one.next), step)}"
    return of.with_findings(found, text, form, width)


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


@command()
def controls(
    tasks: str,
    *,
    language: list[str] | None = None,
    metadata: list[str] | None = None,
    limit: Limit | None = None,
    include_path: str | None = None,
    as_json: bool = False,
    judge: bool = False,
) -> None:
    """Show what the metrics of tasks give in each language without a model: ceilings and floors of a score.

    A right answer, in a plain sentence or bare, should score near 100, another row's answer near 0. What is missing
    there is the metric's loss, and no model's. Searches use the index of the task; no model is evaluated.

    Args:
        tasks (TASK): Names of tasks, groups or tags, separated by commas.
        language (-l): Only rows whose question is in this language. May be repeated.
        as_json (--json): Print the controls as JSON, with unrounded values.
        judge: Ask the judges about the replies of the controls, too, which costs calls.
    """
    from mrag_eval.cli._harness import built_tasks
    from mrag_eval.cli._retrieve import flags_of
    from mrag_eval.models import forget_asked
    from mrag_eval.platform import DataError, to_json
    from mrag_eval.report import TaskControls, control_tables, render
    from mrag_eval.scoring import control_table, marked_by_controls

    found, _ = built_tasks(flags_of(tasks=tasks, metadata=metadata, limit=limit, include_path=include_path))
    shown = []
    for name, task in found.items():
        docs = task.supply.docs
        asked = {docs[row].query_lang for row in docs}
        unknown = next((code for code in language or () if code not in asked), None)
        if unknown is not None and len(found) == 1:
            raise DataError(f"task {name}: no question in '{unknown}'", f"its languages: {', '.join(sorted(asked))}")
        rows = [row for row in task.rows_to_run(limit) if not language or docs[row].query_lang in language]
        if rows:
            records = task.control_records(rows, judged=judge)
            shown.append(TaskControls(name, "no model", control_table(records, task.supply.blocks.retrieval.seed)))
    forget_asked()
    if not shown:
        raise DataError(f"{tasks}: no row in {', '.join(language or ())}", "name languages of the tasks' questions")
    if not as_json:
        typer.echo(render(control_tables(shown), "md", screen_width()))
        return
    parts = {
        one.name: {
            "controls": to_json(one.controls),
            "marked": {metric: why for metric in one.controls if (why := marked_by_controls(one.controls, metric))},
        }
        for one in shown
    }
    typer.echo(json.dumps(parts, ensure_ascii=False, indent=2))


class ExportCommand(DeclaredCommand):
    """List the formats at the end of the help; only there, since reading them takes time."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from mrag_eval.report import EXPORTS

        lines = [f"- `{one.name}`: {one.help} ({one.file or 'a folder'})" for one in EXPORTS.values()]
        self.epilog = "\n\n".join(["Formats, and what is written by default:", *lines])
        super().format_help(ctx, formatter)


@command(
    "results form output(-o) metric card dataset source_url organization relationship deployment availability bold "
    "include_text push(REPO)",
    "mrag_eval.report:Options",
)
def export(results: list[Path], *, form: str, metric: list[str] | None = None, **settings: Any) -> None:
    """Write results in the formats of leaderboards and papers: a model card, files of the hub, LaTeX and others.

    A note names what the format needs and the results lack. Nothing is uploaded without --push and a token.

    Args:
        results (RESULTS): Result files of runs, or folders that contain them (--output_path of a run).
        form (--format): The format, one of those listed below.
        metric: Export only this metric. May be repeated; the first is the main one.
    """
    from mrag_eval.platform import one_of, tasks_folder
    from mrag_eval.report import Options, rerun
    from mrag_eval.report import export as write

    one_of("--relationship", settings["relationship"], ("first_party", "third_party", "collaborative", "other"))
    one_of("--deployment", settings["deployment"], ("self_deployed", "externally_managed"))
    one_of("--availability", settings["availability"], ("open_weights", "closed_weights"))
    options = Options(
        metrics=tuple(metric or ()),
        command_of=lambda path: rerun(path, Path("out"), tasks_folder()).command,
        **settings,
    )
    with warned_of_unsupported(results):
        written = write(results, form, options)
    for file in written.files:
        typer.echo(str(file))
    for note in written.notes:
        typer.echo(f"# {note}", err=True)
    if written.sent is not None:
        typer.echo(written.sent)
