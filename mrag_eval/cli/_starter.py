"""Starter corpora on the command line: their plan, and the lines of their build."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_eval.cli._index_text import echo_part

if TYPE_CHECKING:
    from mrag_eval.retrievers import Starter


def print_the_plan(preset: Starter, langs: Sequence[str], kind: str | None, most: int | None) -> None:
    """Print what a starter takes, by language and in all."""
    from mrag_eval.core import pipe_table
    from mrag_eval.retrieval import plan_starter

    kind = kind or preset.kind
    planned = plan_starter(preset, langs, kind=kind, most=most)
    head = ("language", "~pages read", "~passages there", "~passages kept", "~GB", "~minutes")
    rows = [
        (
            one.lang,
            f"{one.pages:,}",
            f"{one.whole:,}",
            f"{one.kept:,}" + (" (whole)" if one.kept == one.whole else ""),
            f"{one.gigabytes:,.2f}",
            f"{one.seconds / 60:,.1f}",
        )
        for one in planned
    ]
    kept, whole = sum(one.kept for one in planned), sum(one.whole for one in planned)
    size, hours = sum(one.gigabytes for one in planned), sum(one.seconds for one in planned) / 3600
    typer.echo(f"{preset.name}: a part of Wikipedia for {preset.benchmarks}; {kind}")
    typer.echo(pipe_table(head, rows))
    typer.echo(
        f"in all     ~{kept:,} of ~{whole:,} passages, ~{size:,.1f} GB, ~{hours:,.1f} hours from a copy of the hub's "
        "dataset, the download aside"
    )
    typer.echo("           sizes are those of November 2023, rounded or estimated; rates are of one core of a laptop")
    typer.echo(f"build it   mrag-eval corpus wikipedia --preset {preset.name} --from COPY   (docs/corpora.md)")


def build_the_starter(
    preset: Starter,
    langs: Sequence[str],
    settings: dict[str, Any],
    *,
    name: str | None,
    dump: str | None,
    source: Path | None,
    most: int | None,
    add: bool,
    overwrite: bool,
) -> None:
    """Build a starter corpus; print a line for each language, and how tasks find it."""
    from mrag_eval.cli._screen import lines_of_progress
    from mrag_eval.retrieval import CorpusSettings, build_starter

    lines_of_progress()
    index = build_starter(
        preset,
        langs,
        CorpusSettings(**settings),
        name=name,
        dump=dump,
        source=source,
        most=most,
        add=add,
        overwrite=overwrite,
        on_part=echo_part,
    )
    typer.echo(f"{index.path}: {len(index):,} passages in {len(index.counts)} languages, a part of Wikipedia")
    typer.echo(f"use it     --metadata retrieval.corpus={name or preset.name}")
