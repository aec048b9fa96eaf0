"""The number of rows that a run has."""

from __future__ import annotations

import math


def limited(rows: int | None, limit: float | None) -> int | None:
    """Return how many of the rows of a task ``--limit`` leaves, as the harness counts; None if that is not known."""
    if limit is None or rows is None:
        return rows if limit is None or limit < 1 else int(limit)
    return min(rows, int(limit) if limit >= 1 else math.ceil(rows * limit))
