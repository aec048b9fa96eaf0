"""``mrag-eval export``: results in the formats of leaderboards and papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._options import Declared, command, warned_of_unsupported


class ExportCommand(Declared):
    """List the formats at the end of the help; only there, since reading them takes time."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from mrag_eval.report import EXPORTS

        lines = [f"- `{one.name}`: {one.help} ({one.file or 'a folder'})" for one in EXPORTS.values()]
        self.epilog = "\n\n".join(["Formats, and what is written by default:", *lines])
        super().format_help(ctx, formatter)


@command()
def export(
    results: list[Path],
    *,
    form: str,
    output: Path | None = None,
    metric: list[str] | None = None,
    card: Path | None = None,
    dataset: str | None = None,
    source_url: str | None = None,
    organization: str = "unspecified",
    relationship: str = "other",
    deployment: str | None = None,
    availability: str | None = None,
    bold: bool = False,
    include_text: bool = False,
    push: str | None = None,
) -> None:
    """Write results in the formats of leaderboards and papers: a model card, files of the hub, LaTeX and others.

    A note names what the format needs and the results lack. Nothing is uploaded without --push and a token.

    Args:
        results (RESULTS): Result files of runs, or folders that contain them (--output_path of a run).
        form (--format): The format, one of those listed below.
        output (-o): The folder or file to write to. The default is the folder export/, or a file in it.
        metric: Export only this metric. May be repeated; the first is the main one.
        card: With model-index: the README.md to add it to.
        dataset: With eval-results: the dataset on the hub that the scores belong to, as ORG/NAME.
        source_url: A web address at which the results are published.
        organization: With eee: the organization that publishes the record.
        relationship: With eee: the evaluator's relationship to the model developer (first_party, third_party, ...).
        deployment: With eee: how the model was served, self_deployed or externally_managed.
        availability: With eee: whether the model is open_weights or closed_weights.
        bold: With latex: set the best model of each task in bold.
        include_text: Include texts even if their licence does not clearly allow redistribution.
        push (REPO): Open a pull request in this repository on the hub.
    """
    from mrag_eval.platform import one_of, tasks_folder
    from mrag_eval.report import EXPORTS, Options, Sender, rerun
    from mrag_eval.report import export as write

    one_of("--relationship", relationship, ("first_party", "third_party", "collaborative", "other"))
    one_of("--deployment", deployment, ("self_deployed", "externally_managed"))
    one_of("--availability", availability, ("open_weights", "closed_weights"))
    options = Options(
        output=output,
        metrics=tuple(metric or ()),
        card=card,
        dataset=dataset,
        source_url=source_url,
        sender=Sender(organization, relationship, deployment, availability),
        include_text=include_text,
        bold=bold,
        push=push,
        command_of=lambda path: rerun(path, Path("out"), tasks_folder()).command,
    )
    with warned_of_unsupported(results, texts=form in EXPORTS and EXPORTS[form].texts):
        written = write(results, form, options)
    for file in written.files:
        typer.echo(str(file))
    for note in written.notes:
        typer.echo(f"# {note}", err=True)
    if written.sent is not None:
        typer.echo(written.sent)
