"""``mrag-eval export``: results in other people's formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    results: Annotated[list[Path], typer.Argument(help="Result files, or folders of them (--output_path of a run).")],
    form: Annotated[str, typer.Option("--format", help="model-index, eval-results, eee, mteb, latex or csv.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder; for latex and csv a file (default: export/...).")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="This metric alone (repeat; the first is the main one).")
    ] = None,
    card: Annotated[Path | None, typer.Option(help="An existing README.md to put a model-index into.")] = None,
    dataset: Annotated[str | None, typer.Option(help="ORG/NAME on the hub that .eval_results belong to.")] = None,
    source_url: Annotated[str | None, typer.Option(help="Where the results can be looked at.")] = None,
    organization: Annotated[str, typer.Option(help="Who sends the record (eee).")] = "unspecified",
    relationship: Annotated[
        str, typer.Option(help="To the model's makers (eee): first_party, third_party, collaborative, other.")
    ] = "other",
    deployment: Annotated[str | None, typer.Option(help="eee: self_deployed or externally_managed.")] = None,
    availability: Annotated[str | None, typer.Option(help="eee: open_weights or closed_weights.")] = None,
    bold: Annotated[bool, typer.Option("--bold", help="latex: the best model of each task in bold.")] = False,
    include_text: Annotated[
        bool, typer.Option("--include-text", help="Texts, too, whose licence is not known to allow it.")
    ] = False,
    push: Annotated[
        str | None, typer.Option(metavar="REPO", help="Open a pull request in this repository on the hub.")
    ] = None,
) -> None:
    """Write the files, and say what they lack. Nothing leaves this machine without --push and a token."""
    from mrag_eval.cli._catalog import tasks_folder
    from mrag_eval.core import one_of
    from mrag_eval.report import Options, Sender, rerun
    from mrag_eval.report import export as write

    one_of("--relationship", relationship, ("first_party", "third_party", "collaborative", "other"))
    one_of("--deployment", deployment, ("self_deployed", "externally_managed"))
    one_of("--availability", availability, ("open_weights", "closed_weights"))
    tables = {"latex": Path("export/scores.tex"), "csv": Path("export/scores.csv")}
    options = Options(
        output=output or tables.get(form, Path("export")),
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
    written = write(results, form, options)
    for file in written.files:
        typer.echo(str(file))
    for note in written.notes:
        typer.echo(f"# {note}", err=True)
    if written.sent is not None:
        typer.echo(written.sent)
