"""The commands in groups by task, and the options that all of them share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._build import build_app
from mrag_eval.cli._compare import compare, gate, verify
from mrag_eval.cli._corpus import corpus_app
from mrag_eval.cli._index import index_app
from mrag_eval.cli._judge import judge_app
from mrag_eval.cli._options import App, command, refuse_with
from mrag_eval.cli._plan import plan
from mrag_eval.cli._report import ExportCommand, controls, export, report, trace
from mrag_eval.cli._retrieve import retrieve
from mrag_eval.cli._run import rerun, run
from mrag_eval.cli._score import score, strategies
from mrag_eval.cli._tasks import languages, tasks
from mrag_eval.platform import Natural


@dataclass
class Session:
    """The global options, for the code that reports errors."""

    debug: bool = False


app = App(
    name="mrag-eval",
    help="Evaluate multilingual retrieval-augmented generation with lm-evaluation-harness.",
    epilog="Exit codes: 0 done; 1 a check failed; 2 wrong usage, configuration or data. "
    "mrag-eval COMMAND --help explains a command.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mrag-eval {version('mrag-eval')}")
        raise typer.Exit


@app.callback()
def _globals(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when a command fails.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    context.obj.debug = debug


@app.command(rich_help_panel="Start", short_help="Run a first evaluation offline, in a few minutes.")
@command()
def demo(*, output: Path = Path("out/demo"), seed: Natural = 0) -> None:
    """Run a small evaluation without a network: index a corpus in eight languages, retrieve in three modes, generate
    answers with a small model, and print a table of scores.

    Args:
        output (-o): Folder for results and samples.
        seed: Random seed of the draw of questions that the model answers.
    """
    from mrag_eval.cli._demo import run_demo
    from mrag_eval.cli._screen import DemoScreen

    with DemoScreen() as screen:
        result = run_demo(output, screen.listener, seed)
    screen.show(result, output)


@app.command(rich_help_panel="Start", short_help="Show what is installed and how to get what is missing.")
@command()
def doctor(context: typer.Context, *, as_json: bool = False, strict: bool = False, config: bool = False) -> None:
    """Check the package, models, judges, agents, embedders, corpora, data and keys.

    For everything that is missing, a command that adds it is printed.

    Args:
        as_json (--json): Print the findings as JSON.
        strict: Return exit code 1 if something is missing that every run needs.
        config: Print the config file in use, with secrets hidden, and nothing else.
    """
    from mrag_eval.cli._doctor import examine, shown_config
    from mrag_eval.cli._screen import print_findings

    if config:
        refuse_with(context, "--config", "as_json", "strict")
        typer.echo(shown_config())
        return
    findings = examine()
    if as_json:
        typer.echo(json.dumps([finding.as_dict() for finding in findings], indent=2, ensure_ascii=False))
    else:
        print_findings(findings)
    if strict and any(finding.needed and not finding.ok for finding in findings):
        raise typer.Exit(1)


app.command(rich_help_panel="Start", short_help="List the benchmarks, or the tasks of one of them.")(tasks)
app.command(rich_help_panel="Start", short_help="Show what is done for a language, and what is not.")(languages)
app.command(
    rich_help_panel="Start",
    short_help="Show what tasks need, what is missing, and what a run costs.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(plan)
app.command(
    rich_help_panel="Run",
    short_help="Evaluate a model on tasks, with the options of lm_eval run.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(run)
app.command(rich_help_panel="Run", short_help="Retrieve once for the tasks, to evaluate many models on it.")(retrieve)
app.command(rich_help_panel="Run", short_help="Score the answers and contexts of a RAG system that you have.")(score)
app.command(rich_help_panel="Run", short_help="Say which retrieval strategy to use for your languages.")(strategies)
app.command(rich_help_panel="Run", short_help="Print the command that repeats a run, or run it and compare.")(rerun)
app.command(rich_help_panel="Look", short_help="Show what a task's metrics give in each language without a model.")(
    controls
)
app.command(rich_help_panel="Look", short_help="Show scores as a table, an HTML page or a paper's tables.")(report)
app.command(rich_help_panel="Look", short_help="Show how the agents' loop answered one question.")(trace)
app.command(
    cls=ExportCommand, rich_help_panel="Look", short_help="Write results in the formats of leaderboards and papers."
)(export)
app.command(rich_help_panel="Compare and gate", short_help="Compare runs, answers or languages with tests.")(compare)
app.command(rich_help_panel="Compare and gate", short_help="Fail if a run is worse than its baseline.")(gate)
app.command(rich_help_panel="Compare and gate", short_help="Compute scores again from samples, and say what differs.")(
    verify
)
app.add_typer(judge_app, name="judge", rich_help_panel="Judge")
app.add_typer(corpus_app, name="corpus", rich_help_panel="Corpora and indexes")
app.add_typer(index_app, name="index", rich_help_panel="Corpora and indexes")
app.add_typer(build_app, name="build", rich_help_panel="Build")
