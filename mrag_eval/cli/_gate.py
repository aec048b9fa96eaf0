"""``mrag-eval gate``: the check of a run against a baseline, and the file that keeps a baseline."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._options import NewFile, command, refuse_with, warned_of_unsupported
from mrag_eval.platform import number_of, write_whole

if TYPE_CHECKING:
    from mrag_eval.report import Changes, GateResult


@command(
    "runs baseline pinned candidate model baseline_model rules save answers init junit markdown html page_url verbose "
    "as_json",
    "mrag_eval.cli._gate:_written",
)
def gate(
    context: typer.Context,
    runs: list[Path] | None = None,
    *,
    baseline: Path | None = None,
    pinned: Path | None = None,
    candidate: Path | None = None,
    model: str | None = None,
    baseline_model: str | None = None,
    rules: Path | None = None,
    save: NewFile | None = None,
    answers: bool = False,
    init: NewFile | None = None,
    **files: Any,
) -> None:
    """Check whether a run is worse than its baseline by more than the rules allow.

    Exit codes: 0 if every rule passes, 1 for a regression, 2 if something cannot be decided. In GitHub Actions a
    summary and annotations are written as well.

    With --save FILE RUN..., save the scores of runs row by row, without texts, as a baseline for later. With --init
    FILE RUN..., write a file of rules for the tasks of runs, to be edited.

    Args:
        runs (RUN): With --save or --init: output folders or sample files of a run.
        baseline: A file written by --save, or the output folder of a run.
        pinned: A second, older baseline, against which drops add up: the same kinds of file and folder.
        candidate: The output folder of the run to be released.
        model (NAME): The model to take, if the folder of the candidate, or RUN, has several.
        baseline_model (NAME): The model to take, if the folder of the baseline has several, or the pinned one.
        rules: The rules: a YAML file, described in docs/gate.md.
        save (FILE): Write the scores of RUN to this file and check nothing.
        answers: With --save: also keep the answers and the ids of the passages shown.
        init (FILE): Write a first file of rules for RUN and check nothing.
    """
    of_a_check = (
        *("baseline", "pinned", "candidate", "baseline_model", "rules"),
        *("junit", "markdown", "html", "page_url", "verbose", "as_json"),
    )
    if save is not None:
        refuse_with(context, "--save", "init", *of_a_check)
        if not runs:
            raise typer.BadParameter("--save writes the scores of runs: name at least one", param_hint="RUN")
        _save(runs, save, model, answers)
        return
    refuse_with(context, "a check or --init; it belongs to --save", "answers")
    if init is not None:
        refuse_with(context, "--init", *of_a_check)
        if not runs:
            raise typer.BadParameter("--init writes rules for the tasks of runs: name at least one", param_hint="RUN")
        _init(runs, init, model)
        return
    if runs:
        raise typer.BadParameter("only --save and --init take runs; a check takes --candidate", param_hint="RUN")
    if baseline is None or candidate is None or rules is None:
        named = {"--baseline": baseline, "--candidate": candidate, "--rules": rules}
        missing = next(option for option, value in named.items() if value is None)
        hint = "; --init FILE RUN writes one" if missing == "--rules" else ""
        raise typer.BadParameter(
            f"is missing: a check needs --baseline, --candidate and --rules{hint}", param_hint=missing
        )
    from mrag_eval.report import check_page_url

    check_page_url(files["page_url"])
    looked_at = bool(files["markdown"] or files["html"] or os.environ.get("GITHUB_STEP_SUMMARY"))
    found = _checked(baseline, candidate, rules, pinned, model, baseline_model, looked_at)
    raise typer.Exit(_written(*found, **files))


def _save(runs: list[Path], output: Path, model: str | None, answers: bool) -> None:
    from mrag_eval.report import write_baseline

    tasks = write_baseline(runs, output, model, answers=answers)
    typer.echo(f"{output}: {number_of(tasks, 'task')}, {output.stat().st_size / 1e3:,.0f} kB")


def _init(runs: list[Path], output: Path, model: str | None) -> None:
    from mrag_eval.report import starter_rules

    if output.exists():
        raise typer.BadParameter(f"{output} exists already; choose another name", param_hint="--init")
    write_whole(output, starter_rules(runs, model))
    typer.echo(f"{output}: edit it, then: mrag-eval gate --baseline FILE --candidate RUN --rules {output}")


def _checked(
    baseline: Path,
    candidate: Path,
    rules: Path,
    pinned: Path | None,
    model: str | None,
    baseline_model: str | None,
    looked_at: bool,
) -> tuple[GateResult, Changes | None]:
    """Return the result of the gate, and the rows that changed if they are ``looked_at``."""
    from mrag_eval.report import gate, gate_changes, read_rules

    older = [] if pinned is None else [pinned]
    models = {"model": model, "baseline_model": baseline_model}
    with warned_of_unsupported([baseline, *older, candidate]):
        given = read_rules(rules)
        result = gate([baseline], [candidate], given, pinned=older, **models)
        return result, gate_changes(result, [baseline], [candidate], given, **models) if looked_at else None


def _written(
    result: GateResult,
    changes: Changes | None,
    *,
    junit: NewFile | None = None,
    markdown: NewFile | None = None,
    html: NewFile | None = None,
    page_url: str | None = None,
    verbose: bool = False,
    as_json: bool = False,
) -> int:
    """Print the result of the gate, write its files, and return its exit code.

    Args:
        junit: Also write the result as JUnit XML to this file.
        markdown: Also write the result as Markdown to this file: the verdict first, then the changed rows.
        html: Also write the changed rows to this file, as a page.
        page_url: The address at which that page will be found: the Markdown links to its rows.
        verbose: Also list the languages, pairs and other cells that pass.
        as_json (--json): Print the result as JSON.
    """
    from mrag_eval.report import gate_lines, gate_markdown, github_annotations, write_changes
    from mrag_eval.report import junit as junit_xml

    if junit is not None:
        write_whole(junit, f"{junit_xml(result)}\n")
    if markdown is not None:
        write_whole(markdown, gate_markdown(result, changes, page_url))
    if html is not None and changes is not None:
        write_changes(changes, html, "Gate: rows that changed")
    if as_json:
        typer.echo(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join(gate_lines(result, verbose=verbose)))
    step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if step_summary:
        with Path(step_summary).open("a", encoding="utf-8") as out:
            out.write(gate_markdown(result, changes, page_url))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        typer.echo("\n".join(github_annotations(result)), err=as_json)
    return result.exit_code
