"""``mrag-eval compare``: two runs, the answers of several tasks, or the languages of one task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

import typer

from mrag_eval.cli._options import NewFile, command, pairs_of, refuse_with, warned_of_unsupported
from mrag_eval.platform import Count, to_json


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
            _print_answers(runs, most, form)
        elif languages:
            _print_languages(runs, by, form)
        else:
            _print_comparison(runs, pair, form, rows, html, settings)


def _print_comparison(
    runs: list[Path], pair: list[str] | None, form: str, rows: bool, html: Path | None, settings: Mapping[str, Any]
) -> None:
    from mrag_eval.report import compare as compare_runs
    from mrag_eval.report import comparison_changes, comparison_text, write_changes

    if len(runs) != 2:
        raise typer.BadParameter(
            "name two runs, or add --answers or --languages, which take any number", param_hint="RUN"
        )
    pairs = pairs_of(pair, "A_TASK=B_TASK", "--pair")
    found = compare_runs(runs[:1], runs[1:], pairs=pairs, **settings)
    typer.echo(comparison_text(found, form, flips=rows))
    if html is not None:
        write_changes(comparison_changes(found, runs[:1], runs[1:], pairs), html, "Rows that changed")


def _print_answers(runs: list[Path], most: int, form: str) -> None:
    from mrag_eval.report import flips, shown_flips

    found = flips(runs)
    typer.echo(json.dumps([e.as_dict() for e in found], indent=2) if form == "json" else shown_flips(found, most))


def _print_languages(runs: list[Path], by: str, form: str) -> None:
    from mrag_eval.report import By, consistency, shown_consistency

    if by not in get_args(By):
        raise typer.BadParameter("must be question, group or row", param_hint="--by")
    found = consistency(runs, by=cast(By, by))
    typer.echo(json.dumps([to_json(e) for e in found], indent=2) if form == "json" else shown_consistency(found))
