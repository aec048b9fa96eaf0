"""``mrag-eval build xrag``: questions on two news articles each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mrag_eval.cli._options import command


@command()
def xrag(
    corpus: Path,
    *,
    output: Path,
    settings: Path | None = None,
    model: str | None = None,
    review: list[Path] | None = None,
    review_translations: list[Path] | None = None,
) -> None:
    """Build questions on two news articles each, from dated articles in several languages.

    The tasks `xrag_mono_*` and `xrag_multi_*` can read the set. Run the command again to continue after an
    interruption.

    Args:
        corpus (ARTICLES): The articles: a .jsonl, .jsonl.gz, .parquet or .json file, or a folder of such files.
        output (-o): The folder of the set, its datasheet and its steps.
        settings: A YAML file of settings: languages, limits, models, prompts, ...
        model: The model of the config file for every step that the settings name no model for.
        review: A sheet for a person: written if the file does not exist, otherwise read. Repeat it for each person.
        review_translations: The same for the translations, which are reviewed after the questions.
    """
    from mrag_eval.building import build_xrag, read_settings, yield_table

    changes: dict[str, Any] = {} if model is None else {"models": {"default": model}}
    built = build_xrag(
        corpus,
        output,
        read_settings(settings, **changes),
        review_sheets=tuple(review or ()),
        translation_sheets=tuple(review_translations or ()),
        say=typer.echo,
    )
    typer.echo(yield_table(built.reports))
    typer.echo(f"datasheet  {built.datasheet}")
    if built.sheet is not None:
        typer.echo(f"review     {built.sheet}: fill it in, then run the same command again")
        return
    typer.echo(f"set        {built.output}: {built.rows:,} rows")
    typer.echo(f"use it     mrag-eval run ... --tasks xrag_multi --metadata data.path={output}")
