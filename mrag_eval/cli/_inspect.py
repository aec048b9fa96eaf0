"""The command for manual inspection: write a sheet of drawn predictions, read it back as counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer


def inspect(
    samples: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SAMPLES]...", help="Sample files, or folders of them (--log_samples)."),
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Predictions to draw, as many from each language.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    per_language: Annotated[
        bool, typer.Option("--per-language", help="--n of each language, as in the mRAG paper.")
    ] = False,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only predictions that are scored as wrong.")] = False,
    task: Annotated[str | None, typer.Option(help="Of this task alone.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The sheet to write.")] = Path("inspection.csv"),
    read: Annotated[Path | None, typer.Option(metavar="SHEET", help="Count a sheet that was filled in.")] = None,
    form: Annotated[str, typer.Option("--format", help="Of the counts: md, csv or json.")] = "md",
) -> None:
    """Write a sheet for people to say what is wrong with predictions, in the categories of the mRAG paper's Table 8.

    With --read: counts by language and category with intervals; exit code 1 where rows are lost, altered or not
    filled in.
    """
    if (read is None) == (not samples):
        raise typer.BadParameter("name the samples to draw from, or --read SHEET, and not both", param_hint="SAMPLES")
    if read is not None:
        from mrag_eval.report import inspection_table, read_inspection, render

        found = read_inspection(read)
        typer.echo(render([inspection_table(found)], form))
        raise typer.Exit(0 if found.complete else 1)
    from mrag_eval.report import write_inspection

    drawn = write_inspection(samples or [], output, n=n, seed=seed, per_language=per_language, wrong=wrong, task=task)
    counts = Counter(one.language or "no language" for one in drawn)
    by_language = ", ".join(f"{language} {count}" for language, count in sorted(counts.items()))
    typer.echo(f"{output}: {len(drawn)} predictions ({by_language}), seed {seed}")
    typer.echo("fill in the column 'categories' (numbers as in the column 'legend', 0: nothing to note), save as CSV")
    typer.echo(f"next       mrag-eval inspect --read {output}")
