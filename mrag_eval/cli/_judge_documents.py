"""``mrag-eval judge documents``: a model's labels of the documents that runs retrieved."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from mrag_eval.cli._options import command


@command()
def documents(
    samples: list[Path],
    *,
    model: str | None = None,
    output: Path | None = None,
    labels: Path | None = None,
    zero_shot: bool = False,
    human: Path | None = None,
    as_json: bool = False,
) -> None:
    """Label the documents that finished runs retrieved: relevant or not, and whose claim they support.

    The labelled samples are written to new files, and the share of relevant documents is printed by rank.

    Args:
        samples (SAMPLES): Sample files, or folders that contain them (--log_samples).
        model: The model of the config file that labels. The default counts the labels in the samples.
        output (-o): Folder for the labelled samples.
        labels (FILE): Count the published labels of the llm_annotations.tsv of BordIRlines, with its queries.tsv in the
            same folder, instead of those in the samples.
        zero_shot: Prompt the model without examples, or count its published labels so made.
        human (FILE): People's labels to compare with: a CSV with columns row, passage, relevant, viewpoint, or the
            human_annotations.tsv of BordIRlines with its queries.tsv in the same folder.
        as_json (--json): Print the counts as JSON.
    """
    from mrag_eval.platform import check_output
    from mrag_eval.report import annotate_files, shown_reports

    if output is not None:
        check_output(output, "--output")
    reports = annotate_files(samples, model, output, few_shot=not zero_shot, human=human, labels=labels)
    typer.echo(json.dumps(reports, indent=2, ensure_ascii=False) if as_json else shown_reports(reports))
