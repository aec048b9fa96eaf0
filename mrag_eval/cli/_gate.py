"""``mrag-eval gate``: the check of a run against a baseline, and the file that keeps a baseline."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from mrag_eval.cli._options import refuse_with, warn_of_unsupported
from mrag_eval.core import write_whole


def gate(
    context: typer.Context,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="With --save: the output folders or sample files of the baseline."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A file written by --save, or the output folder of a run.")
    ] = None,
    candidate: Annotated[Path | None, typer.Option(help="The output folder of the run to be released.")] = None,
    rules: Annotated[Path | None, typer.Option(help="The rules: a YAML file, described in docs/gate.md.")] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the scores of RUN to this file and check nothing.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Also write the result as JUnit XML to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check whether a run is worse than its baseline by more than the rules allow.

    Exit codes: 0 if no rule is broken, 1 for a regression, 2 if something cannot be compared. In GitHub Actions a
    summary and annotations are written as well.

    With --save FILE RUN..., save the scores of runs row by row, without texts, as a baseline for later.
    """
    if save is not None:
        refuse_with(context, "--save", "baseline", "candidate", "rules", "junit", "as_json")
        if not runs:
            raise typer.BadParameter("--save writes the scores of runs: name at least one", param_hint="RUN")
        _save(runs, save)
        return
    if runs:
        raise typer.BadParameter("only --save takes runs; a check takes --candidate", param_hint="RUN")
    if baseline is None or candidate is None or rules is None:
        named = {"--baseline": baseline, "--candidate": candidate, "--rules": rules}
        missing = next(option for option, value in named.items() if value is None)
        raise typer.BadParameter("is missing: a check needs --baseline, --candidate and --rules", param_hint=missing)
    raise typer.Exit(_check(baseline, candidate, rules, junit, as_json))


def _save(runs: list[Path], output: Path) -> None:
    from mrag_eval.report import write_baseline

    tasks = write_baseline(runs, output)
    typer.echo(f"{output}: {tasks} {'task' if tasks == 1 else 'tasks'}, {output.stat().st_size / 1e3:,.0f} kB")


def _check(baseline: Path, candidate: Path, rules: Path, junit: Path | None, as_json: bool) -> int:
    """Print the result of the gate and return its exit code."""
    from mrag_eval.report import gate, gate_lines, github_annotations, read_rules, summary
    from mrag_eval.report import junit as junit_xml

    warn_of_unsupported([baseline, candidate])
    result = gate([baseline], [candidate], read_rules(rules))
    if junit is not None:
        write_whole(junit, f"{junit_xml(result)}\n")
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
    return result.exit_code
