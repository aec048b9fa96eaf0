"""Runs beside others and their own samples: ``mrag-eval compare``, ``mrag-eval gate`` and ``mrag-eval verify``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from mrag_eval import report
from mrag_eval.cli._options import NewFile, command, pairs_of, refuse_with, screen_width, warned_of_unsupported
from mrag_eval.platform import Count, number_of, tasks_folder, to_json, write_whole


@command(
    "runs metrics(--metric) pair differs equivalent(MARGIN) rows seed answers most languages by form html",
    "mrag_eval.report:compare",
)
def compare(
    context: typer.Context,
    runs: list[Path],
    *,
    pair: list[str] | None = None,
    rows: bool = False,
    answers: bool = False,
    most: Count = 10,
    languages: bool = False,
    by: str = "question",
    form: str = "md",
    html: NewFile | None = None,
    **settings: Any,
) -> None:
    """Compare two runs row by row: difference, confidence interval, and a paired p-value, corrected for all.

    With --answers, read one or more runs. For every two tasks of a model, print the changed answers, those that became
    right or wrong, and the p-value of their difference.

    With --languages, read one or more runs on parallel questions. Print the share of language pairs with the same
    answer, and with the same correctness.

    Args:
        runs (RUN): Runs: their output folders, or sample files (--log_samples).
        pair (A_TASK=B_TASK): Compare two tasks of different names. Repeat for several.
        rows: List the rows whose score rose or fell.
        answers: Count the answers that change between any two tasks of a model.
        most: With --answers: the number of territories or questions to name for each pair.
        languages: Measure whether a model gives the same answers in every language.
        by: With --languages: the field that versions of a question share (question, group or row).
        form (--format): md, csv or json; md or json with --answers and --languages.
        html: Also write the rows whose score rose or fell to this file, as a page.
    """
    of_two = ("metrics", "pair", "differs", "equivalent", "rows", "seed", "html")
    if answers:
        refuse_with(context, "--answers", *of_two, "languages", "by")
    elif languages:
        refuse_with(context, "--languages", *of_two, "most")
    else:
        refuse_with(context, "a comparison of two runs; it belongs to --answers or --languages", "most", "by")
    with warned_of_unsupported(runs):
        if (answers or languages) and form not in ("md", "json"):
            raise typer.BadParameter("must be md or json with --answers and --languages", param_hint="--format")
        if answers:
            changed = report.flips(runs)
            as_json = json.dumps([e.as_dict() for e in changed], indent=2)
            typer.echo(as_json if form == "json" else report.shown_flips(changed, most))
        elif languages:
            if by not in get_args(report.By):
                raise typer.BadParameter("must be question, group or row", param_hint="--by")
            same = report.consistency(runs, by=cast(report.By, by))
            as_json = json.dumps([to_json(e) for e in same], indent=2)
            typer.echo(as_json if form == "json" else report.shown_consistency(same))
        elif len(runs) != 2:
            raise typer.BadParameter(
                "name two runs, or add --answers or --languages, which take any number", param_hint="RUN"
            )
        else:
            pairs = pairs_of(pair, "A_TASK=B_TASK", "--pair")
            found = report.compare(*runs, pairs=pairs, **settings)
            typer.echo(report.comparison_text(found, form, flips=rows, width=screen_width()))
            if html is not None:
                changes = report.comparison_changes(found, runs[:1], runs[1:], pairs)
                report.write_changes(changes, html, "Rows that changed")


@command(
    "runs baseline pinned candidate model baseline_model rules save answers init junit markdown html page_url verbose "
    "as_json",
    "mrag_eval.cli._compare:_written",
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
        tasks = report.write_baseline(runs, save, model, answers=answers)
        typer.echo(f"{save}: {number_of(tasks, 'task')}, {save.stat().st_size / 1e3:,.0f} kB")
        return
    refuse_with(context, "a check or --init; it belongs to --save", "answers")
    if init is not None:
        refuse_with(context, "--init", *of_a_check)
        if not runs:
            raise typer.BadParameter("--init writes rules for the tasks of runs: name at least one", param_hint="RUN")
        if init.exists():
            raise typer.BadParameter(f"{init} exists already; choose another name", param_hint="--init")
        write_whole(init, report.starter_rules(runs, model))
        typer.echo(f"{init}: edit it, then: mrag-eval gate --baseline FILE --candidate RUN --rules {init}")
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
    report.check_page_url(files["page_url"])
    looked_at = bool(files["markdown"] or files["html"] or os.environ.get("GITHUB_STEP_SUMMARY"))
    older = [] if pinned is None else [pinned]
    models = {"model": model, "baseline_model": baseline_model}
    with warned_of_unsupported([baseline, *older, candidate]):
        given = report.read_rules(rules)
        result = report.gate(baseline, candidate, given, pinned=older, **models)
        changes = report.gate_changes(result, [baseline], [candidate], given, **models) if looked_at else None
    raise typer.Exit(_written(result, changes, **files))


def _written(
    result: report.GateResult,
    changes: report.Changes | None,
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
    if junit is not None:
        write_whole(junit, f"{report.junit(result)}\n")
    if markdown is not None:
        write_whole(markdown, report.gate_markdown(result, changes, page_url))
    if html is not None and changes is not None:
        report.write_changes(changes, html, "Gate: rows that changed")
    if as_json:
        typer.echo(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join(report.gate_lines(result, verbose=verbose)))
    step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if step_summary:
        with Path(step_summary).open("a", encoding="utf-8") as out:
            out.write(report.gate_markdown(result, changes, page_url))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        typer.echo("\n".join(report.github_annotations(result)), err=as_json)
    return result.exit_code


@command()
def verify(
    runs: list[Path],
    *,
    own_settings: bool = False,
    allow: str | None = None,
    strict: bool = False,
    data: Annotated[list[Path], typer.Option(exists=True)] | None = None,
    as_json: bool = False,
) -> None:
    """Compute the scores of runs again from their samples, and print line by line what differs.

    A fault is something that does not follow from replies, rankings, votes and the benchmark's rows. What is open could
    not be compared with this version, or without data that are not here. A deviation is a setting that is not the
    task's own, or a run on a part of its rows (--limit). The exit code is 1 for a fault, else 3 for what is open, else
    4 for a deviation that neither --own-settings nor --allow accepts. The last lines name what cannot be checked.

    Args:
        runs (RUN): Output folders of runs, or their results_*.json.
        own_settings: Accept settings and numbers of rows that are not the benchmark's.
        allow (KEYS): Accept deviations in these keys or blocks: retrieval.k,judge,rows.
        strict: Count notes as faults.
        data (PATH): A copy of a benchmark's files, or a folder with copies under their names, to compare rows with.
        as_json (--json): Print the findings as JSON.
    """
    found = report.verify(runs, tasks_folder(), data or ())
    if as_json:
        typer.echo(json.dumps([file.as_dict() for file in found], indent=2, ensure_ascii=False))
    else:
        for file in found:
            typer.echo("\n".join(file.lines))
    allowed = None if own_settings else [key.strip() for key in (allow or "").split(",")]
    codes = {file.code(allowed, strict=strict) for file in found}
    raise typer.Exit(min(codes - {0}, default=0))
