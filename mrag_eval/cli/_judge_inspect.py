"""``mrag-eval judge inspect``: a sheet of predictions for people to fill in, and its counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from mrag_eval.cli._options import NewFile, command
from mrag_eval.platform import Count, Natural


@command()
def inspect(
    samples: list[Path] | None = None,
    *,
    n: Count = 50,
    seed: Natural = 0,
    per_language: bool = False,
    wrong: bool = False,
    task: str | None = None,
    output: NewFile = Path("inspection.csv"),
    read: Path | None = None,
    triage: bool = False,
    form: str = "md",
) -> None:
    """Write a sheet on which people note what is wrong with predictions, in the categories of the mRAG paper's Table 8.

    With --read SHEET, the counts by language and category are printed with intervals. The exit code is 1 if rows of the
    sheet are lost, altered or not filled in. With --triage, the categories are those of XRAG's section 5.2, and the
    counts are shares of all judged answers, so that --read also takes the samples.

    Args:
        samples (SAMPLES): Sample files, or folders that contain them (--log_samples).
        n: Number of predictions to draw, the same number from each language.
        seed: Random seed of the draw.
        per_language: Draw --n predictions from each language, as in the mRAG paper.
        wrong: Draw only predictions that are scored as wrong.
        task: Draw only from this task.
        output (-o): The sheet to write, as CSV.
        read (SHEET): Count a sheet that people have filled in.
        triage: Sort every answer of people (judge people) that is incorrect: misjudged, wrong or noisy.
        form (--format): With --read: print the counts as md, csv or json.
    """
    if triage:
        _triage(samples, read, output, form)
        return
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
    typer.echo(f"next       mrag-eval judge inspect --read {output}")


def _triage(samples: list[Path] | None, read: Path | None, output: Path, form: str) -> None:
    from mrag_eval.report import read_triage, render, write_triage

    if not samples:
        raise typer.BadParameter("name the judged answers: people_samples_*.jsonl", param_hint="SAMPLES")
    if read is None:
        drawn = write_triage(samples, output)
        typer.echo(f"{output}: {len(drawn)} incorrect answers")
        typer.echo("fill in the column 'categories' (one number of the column 'legend'), save as CSV")
        typer.echo(f"next       mrag-eval judge inspect {' '.join(map(str, samples))} --triage --read {output}")
        return
    table, complete = read_triage(read, samples)
    typer.echo(render([table], form))
    raise typer.Exit(0 if complete else 1)
