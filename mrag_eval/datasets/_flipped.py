"""Exchange of one document per question for one that supports another claimant, to measure its influence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mrag_eval.datasets._published import Run
from mrag_eval.datasets._viewpoints import NEUTRAL, NOT_RELEVANT, Label

# Number of documents in the published prompts.
_SHOWN = 10


def flipped(row: str, run: Run, labels: Mapping[tuple[str, str], Label], pool: Sequence[str]) -> Run | None:
    """Return the run with its best claimant-supporting document replaced by one of ``pool`` that supports another
    claimant.

    The new document takes the position and the score of the old one. It is in the same language if possible, else it is
    the first by id. Returns None if no document supports a claimant, or none of the pool supports another.
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
    """Return the claimant that a document supports, "" if it supports none."""
    if label is None or label.viewpoint in (NEUTRAL, NOT_RELEVANT):
        return ""
    return label.viewpoint
