"""Estimates as text, and columns of them, for the judge commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate


def percent(estimate: Estimate) -> str:
    """Return an estimate with its interval in percent, with one digit."""
    from mrag_eval.report import estimate_text

    return estimate_text(estimate, undefined=f"- ({estimate.reason or 'undefined'})")


def number(estimate: Estimate) -> str:
    """Return an estimate with its interval, with two digits."""
    from mrag_eval.report import estimate_text

    return estimate_text(estimate, 1, 2, undefined=f"- ({estimate.reason or 'undefined'})")


def print_columns(lines: Sequence[tuple[str, ...]]) -> None:
    """Print ``lines`` as columns, each as wide as its widest cell."""
    from mrag_eval.report import columns

    for line in columns(lines):
        typer.echo(line)
