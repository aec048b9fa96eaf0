"""``mrag-eval trace``: the agents' loop of one question."""

from __future__ import annotations

from typing import Annotated

import typer

from mrag_eval.cli._options import TracePlaces


def trace(
    row: Annotated[str, typer.Argument(metavar="ROW", help="The id of a row, or its number in the samples.")],
    places: TracePlaces,
    task: Annotated[str | None, typer.Option(help="The task of the row, if several tasks have such a row.")] = None,
) -> None:
    """Show how the agents' loop (retrieval.mode=coral) answered one question: the queries, passages, scores and
    decisions of each round.
    """
    from mrag_eval.retrieval import find_trace, shown_trace

    typer.echo(shown_trace(find_trace(places, row, task)))
