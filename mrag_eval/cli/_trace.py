"""``mrag-eval trace``: the agents' loop of one question."""

from __future__ import annotations

from pathlib import Path

import typer

from mrag_eval.cli._options import command


@command()
def trace(row: str, places: list[Path], *, task: str | None = None) -> None:
    """Show how the agents' loop (retrieval.mode=coral) answered one question: the queries, passages, scores and
    decisions of each round.

    Args:
        row (ROW): The id of a row, or its number in the samples.
        task: The task of the row, if several tasks have such a row.
    """
    from mrag_eval.retrieval import find_trace, shown_trace

    typer.echo(shown_trace(find_trace(places, row, task)))
