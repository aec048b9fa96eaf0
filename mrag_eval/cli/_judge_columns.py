"""Estimates as text, and columns of them, for the commands around judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from mrag_eval.metrics import Estimate


def percent(estimate: Estimate) -> str:
    """Return an estimate with its interval in percent, with one digit."""
    return _shown(estimate, 100, 1)


def number(estimate: Estimate) -> str:
    """Return an estimate with its interval, with two digits."""
    return _shown(estimate, 1, 2)


def _shown(estimate: Estimate, scale: float, digits: int) -> str:
    if estimate.value is None:
        return f"- ({estimate.reason or 'undefined'})"
    text = f"{scale * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"


def print_columns(lines: Sequence[tuple[str, ...]]) -> None:
    """Print ``lines`` as columns, each as wide as its longest cell."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
