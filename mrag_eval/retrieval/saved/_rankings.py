"""Rankings of a run folder as TREC files, for other tools."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mrag_eval.core import CONTROL, Ranked
from mrag_eval.platform import replaced


def write_trec(path: Path, lists: Iterable[tuple[str, Sequence[Ranked]]], tag: str) -> None:
    """Write the rankings of rows, by their ids; ``tag`` is the run's name in the last column."""
    with replaced(path) as part, part.open("w", encoding="utf-8", errors="backslashreplace") as out:
        for row, ranking in lists:
            for rank, (place, score) in enumerate(zip(ranking, _without_ties(ranking), strict=True), 1):
                # tabs, since ids may hold spaces
                out.write(f"{_column(row)}\tQ0\t{_column(place.id)}\t{rank}\t{score!r}\t{_column(tag)}\n")


def _without_ties(ranking: Sequence[Ranked]) -> Iterator[float]:
    """Yield the scores, lowered where they tie, since readers of such files order ties by the passages' ids.

    A score is lowered by four parts in ten million, which single precision still tells apart (trec_eval's).
    """
    before = written = math.inf
    for place in ranking:
        score = place.score
        if written <= score <= before:
            score = written - max(abs(written) * 4e-7, 1e-30)
        before, written = place.score, score
        yield score


def _column(name: str) -> str:
    """Return an id as one column of one line: tabs, line ends and other control characters are escaped."""
    return name if name.isprintable() else CONTROL.sub(lambda found: repr(found[0])[1:-1], name)
