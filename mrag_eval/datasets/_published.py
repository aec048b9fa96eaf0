"""Search results published with a benchmark, annotators' labels, and what a condition shows of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mrag_eval.config import Condition
from mrag_eval.core import Passage
from mrag_eval.datasets._bordirlines_files import NEUTRAL, NOT_RELEVANT

# (passage id, score), best first
Run = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Published:
    """Published search results. ``runs``: IR mode -> row id -> its hits; ``passages`` has the text of every hit.

    ``searchable``: row id -> language -> number of known documents on the row's subject, the best available estimate of
    the searched passages; ``pool`` says which documents these are. ``labels``: (row id, passage id) -> label -> value.
    ``kept`` and ``flip`` are those of the condition that the data block asks for.
    """

    runs: Mapping[str, Mapping[str, Run]]
    passages: Mapping[str, Passage]
    searchable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    labels: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    pool: str = ""
    kept: Literal["all", "relevant", "non_relevant"] = "all"
    flip: bool = False

    def shown(self, mode: str, k: int) -> dict[str, Run]:
        """Return what the data block's condition shows of a mode's hits, by row; without rows that show nothing."""
        condition = Condition(mode, k, self.kept, self.flip)
        found = {}
        for row, run in self.runs[mode].items():
            kept = condition.chosen(run, [self._relevant(row, passage) for passage, _ in run])
            found[row] = self._flipped(row, kept, k) if self.flip else kept
        return {row: run for row, run in found.items() if run}

    def _relevant(self, row: str, passage: str) -> bool | None:
        label = self.labels.get((row, passage), {}).get("relevant")
        return None if label is None else label == "yes"

    def _flipped(self, row: str, run: Run, k: int) -> Run:
        """Return hits with the best that supports a claimant, of the first ``k``, replaced by one for another claimant.

        It comes from those of any mode for the question, in the same language if possible, else it is the first by id;
        it takes the position and the score of the old one. Empty if no document supports a claimant, or no other one
        another.
        """
        place = next((i for i, (passage, _) in enumerate(run[:k]) if self._side(row, passage)), None)
        if place is None:
            return ()
        old, score = run[place]
        side, known = self._side(row, old), {passage for passage, _ in run}
        pool = {passage for rows in self.runs.values() for passage, _ in rows.get(row, ())}
        others = [one for one in pool - known if self._side(row, one) not in ("", side)]
        if not others:
            return ()
        language = old.partition(":")[0]
        new = min(others, key=lambda passage: (passage.partition(":")[0] != language, passage))
        return (*run[:place], (new, score), *run[place + 1 :])

    def _side(self, row: str, passage: str) -> str:
        """Return the claimant that a document supports, "" if it supports none."""
        view = self.labels.get((row, passage), {}).get("viewpoint", "")
        return "" if view in (NEUTRAL, NOT_RELEVANT) else view
