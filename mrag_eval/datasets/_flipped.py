"""One document of each question exchanged for one that supports another claimant, to see how much hangs on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mrag_eval.datasets._published import Run
from mrag_eval.datasets._viewpoints import NEUTRAL, NOT_RELEVANT, Label

# The documents that the published prompts show.
_SHOWN = 10


def flipped(row: str, run: Run, labels: Mapping[tuple[str, str], Label], pool: Sequence[str]) -> Run | None:
    """The run with its best document that supports a claimant exchanged for one of ``pool`` that supports another.

    The new document takes the place and the score of the old one; it is in the same language where there is such a
    one, else the first by id. None where no document takes sides, or none of the pool the other side.
    """
    place = next((i for i, (passage, _) in enumerate(run[:_SHOWN]) if _side(labels.get((row, passage)))), None)
    if place is None:
        return None
    old, score = run[place]
    side, shown = _side(labels[row, old]), {passage for passage, _ in run}
    others = [p for p in pool if p not in shown and _side(labels.get((row, p))) not in ("", side)]
    if not others:
        return None
    language = old.partition(":")[0]
    new = min(others, key=lambda passage: (passage.partition(":")[0] != language, passage))
    return (*run[:place], (new, score), *run[place + 1 :])


def _side(label: Label | None) -> str:
    """The claimant that a document supports, "" where it supports none."""
    if label is None or label.viewpoint in (NEUTRAL, NOT_RELEVANT):
        return ""
    return label.viewpoint
