"""``mrag-eval judge documents``: a model's labels of the documents that runs retrieved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def documents(
    samples: Annotated[
        list[Path],
        typer.Argument(metavar="SAMPLES", help="Sample files, or folders that contain them (--log_samples)."),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="The model of the config file that labels. The default counts the labels in the samples."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the labelled samples.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Count the published labels of the llm_annotations.tsv of BordIRlines, with its queries.tsv in the "
            "same folder, instead of those in the samples.",
        ),
    ] = None,
    zero_shot: Annotated[
        bool,
        typer.Option("--zero-shot", help="Prompt the model without examples, or count its published labels so made."),
    ] = False,
    human: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="People's labels to compare with: a CSV with columns row, passage, relevant, viewpoint, or the "
            "human_annotations.tsv of BordIRlines with its queries.tsv in the same folder.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Label the documents that finished runs retrieved: relevant or not, and whose claim they support.

    The labelled samples are written to new files, and the share of relevant documents is printed by rank.
    """
    from mrag_eval.platform import check_output
    from mrag_eval.report import annotate_files, shown_reports

    if output is not None:
        check_output(output, "--output")
    reports = annotate_files(samples, model, output, few_shot=not zero_shot, human=human, labels=labels)
    typer.echo(json.dumps(reports, indent=2, ensure_ascii=False) if as_json else shown_reports(reports))
