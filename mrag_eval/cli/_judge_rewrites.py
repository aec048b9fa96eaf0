"""``mrag-eval judge rewrites``: the kinds of rewritten queries in the traces of a run."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from mrag_eval.cli._options import NewFile, command
from mrag_eval.platform import Count, Natural


@command()
def rewrites(
    places: list[Path],
    *,
    model: str | None = None,
    task: str | None = None,
    questions: Count | None = None,
    seed: Natural = 0,
    human: list[Path] | None = None,
    write: NewFile | None = None,
    as_json: bool = False,
) -> None:
    """Count the planner's rewritten queries, and the shares that narrow, paraphrase or expand, by people or a model.

    Args:
        model: The model of the config file that labels. The default only counts the rewrites.
        task: Read only this task.
        questions: Number of questions to draw at random. The default is all.
        seed: Random seed of the draw and of the order in the file.
        human (CSV): A person's labels: columns previous, rewritten, label. Give one file per person. Those on which all
            agree are final, and their shares are printed; two or more people are also compared with each other.
        write (CSV): Write the pairs of queries to this file, for people to label.
        as_json (--json): Print the counts as JSON.
    """
    from mrag_eval.report import rewrites_report, shown_report

    people = human or ()
    report = rewrites_report(places, model, task=task, questions=questions, seed=seed, people=people, write=write)
    typer.echo(json.dumps(report, indent=2, ensure_ascii=False) if as_json else shown_report(report))
