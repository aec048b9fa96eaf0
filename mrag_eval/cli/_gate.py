"""The commands that hold runs against each other: compare, baseline, gate."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A run: its output folder, or a sample file.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another run.")],
    metric: Annotated[list[str] | None, typer.Option(help="Compare this metric alone (repeat for more).")] = None,
    pair: Annotated[
        list[str] | None, typer.Option(metavar="A_TASK=B_TASK", help="Tasks to pair that have other names (repeat).")
    ] = None,
    differs: Annotated[
        list[str] | None, typer.Option(help="A setting or block that differs on purpose: retrieval.mode, prompt, all.")
    ] = None,
    flips: Annotated[bool, typer.Option("--flips", help="List the rows that gained and lost.")] = False,
    form: Annotated[str, typer.Option("--format", help="md, csv or json.")] = "md",
    seed: Annotated[int, typer.Option(help="Of the resamples.")] = 0,
) -> None:
    """Pair two runs row by row: difference, interval, p-value (paired; corrected by Holm), what flipped."""
    from mrag_eval.report import compare as compare_runs
    from mrag_eval.report import comparison_text

    pairs = {}
    for text in pair or ():
        a, sign, b = text.partition("=")
        if not (a and sign and b):
            raise typer.BadParameter(f"'{text}' is not of the form A_TASK=B_TASK", param_hint="--pair")
        pairs[a] = b
    found = compare_runs([first], [second], metrics=metric or (), pairs=pairs, differs=differs or (), seed=seed)
    typer.echo(comparison_text(found, form, flips=flips))


def baseline(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Output folders, or sample files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("baseline.json"),
) -> None:
    """Keep the scores of a run, row by row and without its texts, for `mrag-eval gate` to compare with."""
    from mrag_eval.report import write_baseline

    tasks = write_baseline(runs, output)
    typer.echo(f"{output}: {tasks} {'task' if tasks == 1 else 'tasks'}, {output.stat().st_size / 1e3:,.0f} kB")


def gate(
    baseline: Annotated[Path, typer.Option(help="A baseline file, or the output folder of a run.")],
    candidate: Annotated[Path, typer.Option(help="The output folder of the run to be released.")],
    rules: Annotated[Path, typer.Option(help="The rules, a YAML file (docs/gate.md).")],
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable, on stdout.")] = False,
) -> None:
    """Exit code 0: no rule is broken; 1: a regression; 2: something cannot be compared.

    In GitHub Actions a summary and annotations are written as well.
    """
    from mrag_eval.report import gate as hold
    from mrag_eval.report import gate_lines, github_annotations, read_rules, summary
    from mrag_eval.report import junit as junit_xml

    result = hold([baseline], [candidate], read_rules(rules))
    if junit is not None:
        junit.write_text(junit_xml(result) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join(gate_lines(result)))
    step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if step_summary:
        with Path(step_summary).open("a", encoding="utf-8") as out:
            out.write(summary(result))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        typer.echo("\n".join(github_annotations(result)), err=as_json)
    raise typer.Exit(result.exit_code)
