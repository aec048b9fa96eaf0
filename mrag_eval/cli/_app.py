"""The commands: each parses its flags, calls one function, prints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from mrag_eval.cli._build import build_app
from mrag_eval.cli._corpus import corpus_app
from mrag_eval.cli._export import export
from mrag_eval.cli._gate import baseline, compare, gate
from mrag_eval.cli._index import index_app
from mrag_eval.cli._inspect import inspect
from mrag_eval.cli._judge import judge_app
from mrag_eval.cli._rerun import rerun
from mrag_eval.cli._retrieve import retrieve
from mrag_eval.cli._tasks import tasks
from mrag_eval.cli._trace import trace_app


@dataclass
class Session:
    """What the global flags said, for the code that reports errors."""

    debug: bool = False


app = typer.Typer(
    name="mrag-eval",
    help="Multilingual retrieval-augmented generation, evaluated on lm-evaluation-harness.",
    epilog="Exit codes: 0 done; 1 a check failed; 2 wrong usage, configuration or data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = typer.Typer(help="The config file in force.", no_args_is_help=True)
app.add_typer(build_app, name="build")
app.add_typer(corpus_app, name="corpus")
app.add_typer(index_app, name="index")
app.add_typer(judge_app, name="judge")
app.add_typer(trace_app, name="trace")
app.add_typer(config_app, name="config")
app.command(short_help="Two runs, paired row by row: what changed, and how surely.")(compare)
app.command(short_help="Keep a run's scores, row by row, as a file for the gate.")(baseline)
app.command(short_help="Exit code 1 where a run is worse than its baseline by more than the rules allow.")(gate)
app.command(short_help="The command that repeats a run, from its results; --run runs it and compares.")(rerun)
app.command(short_help="Results as a model card, the hub's or Every Eval Ever's files, MTEB's shape, LaTeX or CSV.")(
    export
)


app.command(short_help="List the benchmarks, or the tasks of one.")(tasks)
app.command(short_help="The retrieval of tasks as a step of its own: retrieve once, evaluate many models.")(retrieve)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mrag-eval {version('mrag-eval')}")
        raise typer.Exit


@app.callback()
def _globals(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback where something fails.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    context.obj.debug = debug


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    short_help="Run an evaluation: the flags of `lm_eval run`, our tasks found by themselves.",
)
def run(context: typer.Context) -> None:
    from mrag_eval.cli._harness import run as run_harness

    run_harness(context.args, debug=context.obj.debug)


@app.command(short_help="A first evaluation, offline: small corpus, small model, a few minutes.")
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for results and samples.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="Draws the questions that answers are generated for.")] = 0,
) -> None:
    """Index a small corpus in eight languages, retrieve in three modes, generate with a small model, print a table."""
    from mrag_eval.cli._demo import run_demo
    from mrag_eval.cli._screen import DemoScreen

    with DemoScreen() as screen:
        result = run_demo(output, screen.listener, seed)
    screen.show(result, output)


@app.command(short_help="Your runs as one HTML file, as a table, or in the tables of a paper.")
def report(
    results: Annotated[list[Path], typer.Argument(help="Result files, or folders of them (--output_path of a run).")],
    layout: Annotated[str | None, typer.Option(help="A paper whose tables to print (xrag, ...), or policies.")] = None,
    form: Annotated[str, typer.Option("--format", help="md, csv or json.")] = "md",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file; a name ending in .html gives the page.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=0, help="Samples of each task in the HTML page (default: what fits into 5 MB, at most 200)."),
    ] = None,
    text: Annotated[bool, typer.Option(help="Texts of passages in the HTML page.")] = True,
) -> None:
    """Scores with intervals. With --layout: a paper's figures beside yours, with its digits; blank where no run fits.

    With --layout policies: retrieval policies by language pair, whatever the benchmark.

    An HTML page opens from disk without a network: plots, where errors come from, judges, and the samples themselves.
    """
    if output is not None and output.suffix == ".html":
        if layout is not None:
            raise typer.BadParameter("prints tables: leave out --layout, or write to another file", param_hint="-o")
        from mrag_eval.report import write_report

        data = write_report(results, output, samples=samples, text=text)
        size = output.stat().st_size / 1e6
        typer.echo(f"{output}: {len(data.leaves)} tasks, {len(data.samples):,} samples, {size:.1f} MB")
        return
    from mrag_eval.report import render, report_tables, score_table

    text_out = render(report_tables(layout, results) if layout else [score_table(results)], form)
    if output is None:
        typer.echo(text_out)
    else:
        output.write_text(f"{text_out}\n", encoding="utf-8")


@app.command(short_help="One territory: what was answered in each language and mode, and what the documents say.")
def case(
    territory: Annotated[str, typer.Argument(help='A disputed territory, e.g. "Spratly Islands".')],
    samples: Annotated[list[Path], typer.Argument(help="Sample files, or folders of them (--log_samples).")],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Print the answers by model, mode and language of the question, and the viewpoints of the documents shown."""
    from mrag_eval.report import read_case, shown_case

    found = read_case(territory, samples)
    typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False) if as_json else shown_case(found))


@app.command(short_help="Label the documents of finished runs by a model: relevant or not, whose claim they support.")
def annotate(
    samples: Annotated[list[Path], typer.Argument(help="Sample files, or folders of them (--log_samples).")],
    model: Annotated[
        str | None, typer.Option(help="A model of the config file (default: count the labels that are there).")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the labelled samples.")] = None,
    zero_shot: Annotated[bool, typer.Option("--zero-shot", help="Prompts without examples.")] = False,
    human: Annotated[
        Path | None,
        typer.Option(help="People's labels to hold against: columns row, passage, relevant, viewpoint."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Write the samples with their documents labelled, and print what share is relevant, by rank."""
    from mrag_eval.report import annotate_files, shown_reports

    reports = annotate_files(samples, model, output, few_shot=not zero_shot, human=human)
    typer.echo(json.dumps(reports, indent=2, ensure_ascii=False) if as_json else shown_reports(reports))


@app.command(short_help="Does the model answer alike in every language? For runs on parallel questions.")
def consistency(
    samples: Annotated[list[Path], typer.Argument(help="Sample files, or folders of them (--log_samples).")],
    by: Annotated[str, typer.Option(help="What versions of a question share: question, group or row.")] = "question",
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Print the share of agreeing pairs of languages: the same answer, and the same correctness."""
    from dataclasses import asdict

    from mrag_eval.report import By, shown_consistency
    from mrag_eval.report import consistency as consistency_of

    if by not in get_args(By):
        raise typer.BadParameter("question, group or row", param_hint="--by")
    found = consistency_of(samples, by=cast(By, by))
    typer.echo(json.dumps([asdict(e) for e in found], indent=2) if as_json else shown_consistency(found))


@app.command(short_help="Which answers change from one mode or run to another.")
def flips(
    samples: Annotated[list[Path], typer.Argument(help="Sample files, or folders of them (--log_samples).")],
    most: Annotated[int, typer.Option(help="So many territories or questions are named for each pair.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Print, for every two tasks of a model, how many answers change, which become right or wrong, and McNemar's p."""
    from mrag_eval.report import flips as flips_of
    from mrag_eval.report import shown_flips

    found = flips_of(samples)
    typer.echo(json.dumps([e.as_dict() for e in found], indent=2) if as_json else shown_flips(found, most))


app.command(short_help="A sheet for people to say what is wrong with predictions, and its counts.")(inspect)


@app.command(short_help="What is installed and found, and the command that mends what is missing.")
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit code 1 where something is missing that every run needs.")] = False,
) -> None:
    """Package, models, embedders, corpora, benchmarks, keys: what is there, what is missing, what to type."""
    from mrag_eval.cli._doctor import examine
    from mrag_eval.cli._screen import print_findings

    findings = examine()
    if as_json:
        typer.echo(json.dumps([finding.as_dict() for finding in findings], indent=2, ensure_ascii=False))
    else:
        print_findings(findings)
    if strict and any(finding.needed and not finding.ok for finding in findings):
        raise typer.Exit(1)


@config_app.command("show", short_help="Where the config file was found, and what it says.")
def config_show() -> None:
    """Print the validated config file; values of keys that look like secrets are hidden."""
    from mrag_eval.cli._show import shown_config

    typer.echo(shown_config())
