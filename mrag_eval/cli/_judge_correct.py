"""``mrag-eval judge correct``: a judge's rate corrected by a sample of people's labels, and the sheet to label."""

from __future__ import annotations

from pathlib import Path

import typer

from mrag_eval.cli._options import NewFile, command
from mrag_eval.platform import Count, Natural


@command()
def correct(
    run: list[Path],
    *,
    labels: Path | None = None,
    write: NewFile | None = None,
    n: Count = 200,
    seed: Natural = 0,
    metric: str = "judge_correct",
    form: str = "md",
) -> None:
    """Correct a judge's rate by a small sample that people labelled, for every task (IR mode) and language.

    The errors of the judge and of the sample are in the 95 % interval: prediction-powered inference with power tuning
    (PPI++), and the estimator of Rogan and Gladen. --write draws the rows to label at random: a few of every language,
    then in proportion to its rows.

    Args:
        run (RUN): Judged sample files of a run, or folders that contain them.
        labels (CSV): People's labels: columns `id` and `label` (correct or incorrect).
        write (CSV): Write the next rows to label to this file.
        n: With --write: number of rows to label.
        seed: With --write: random seed of the order of rows.
        metric: The judge's metric to correct: judge_correct, judged_accuracy or another of 0 and 1.
        form (--format): Print the rates as md, csv or json.
    """
    from mrag_eval.report import corrected_table, read_labels_of, read_verdicts, render, write_label_sheet

    if labels is None and write is None:
        raise typer.BadParameter("name people's labels, or --write CSV for a sheet to label", param_hint="--labels")
    runs = read_verdicts(run, metric)
    people = None if labels is None else read_labels_of(labels, runs)
    if people is not None:
        typer.echo(render([corrected_table(runs, people)], form))
    if write is not None:
        drawn = write_label_sheet(runs, write, n=n, seed=seed, people=people)
        by_language = ", ".join(f"{task} {language or 'no language'} {k}" for (task, language), k in drawn.items())
        typer.echo(f"{write}: {sum(drawn.values())} rows to label ({by_language}), seed {seed}", err=True)
        typer.echo("fill in the column 'label' (correct or incorrect), save as CSV", err=True)
