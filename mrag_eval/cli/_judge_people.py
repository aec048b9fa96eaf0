"""``mrag-eval judge people``: people answer a benchmark's questions, and a panel judges their answers."""

from __future__ import annotations

from pathlib import Path

import typer

from mrag_eval.cli._judge_panel import names_in, show
from mrag_eval.cli._options import NewFile, command
from mrag_eval.platform import Count, Natural, number_of


@command()
def people(
    samples: list[Path],
    *,
    write: NewFile | None = None,
    n: Count = 200,
    seed: Natural = 0,
    answers: Path | None = None,
    panel: list[str] | None = None,
) -> None:
    """Measure people's accuracy: write the questions and their supporting passages to a sheet, and have a panel judge
    the answers that come back, as it judges a model's.

    The judged answers are written beside the samples. `mrag-eval judge inspect --triage` sorts the incorrect ones.

    Args:
        samples (SAMPLES): Sample files, or folders that contain them (--log_samples).
        write (CSV): Write a sheet of questions for people to answer.
        n: With --write: number of questions.
        seed: With --write: random seed of the draw.
        answers (CSV): The sheet with people's answers, to be judged.
    """
    if (write is None) == (answers is None):
        raise typer.BadParameter(
            "name a sheet to write, or one with answers (--answers), not both", param_hint="--write"
        )
    if write is not None:
        from mrag_eval.report import write_questions

        drawn = write_questions(samples, write, n=n, seed=seed)
        typer.echo(f"{write}: {number_of(len(drawn), 'question')}, seed {seed}")
        typer.echo("fill in the column 'answer' in the question's language, save as CSV")
        typer.echo(f"next       mrag-eval judge people {' '.join(map(str, samples))} --answers {write}")
        return
    from mrag_eval.report import judge_people

    assert answers is not None, "one of the two"
    for done in judge_people(samples, answers, panel=names_in(panel)):
        show(answers, done)
        typer.echo(f"next       mrag-eval judge inspect {done.path} --triage -o triage.csv")
