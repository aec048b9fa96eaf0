"""Answers that change from one mode, or one run, to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from mrag_eval.core import DataError, p_text, pipe_table, score_text
from mrag_eval.metrics import Estimate
from mrag_eval.report.files._answers import AnswerSheet, read_answers


@dataclass(frozen=True)
class Flips:
    """Hold two answer sheets, paired by row. ``changed`` is the share of changed answers (Wilson interval).

    ``transitions``: (answer before, after) -> number of rows, for rows that differ. ``gained`` rows were wrong and
    became right, ``lost`` rows the reverse. ``p`` is McNemar's exact test of these two, None if no row's correctness is
    known. ``groups`` are the territories (or questions) with a changed answer, in descending order of changes.
    """

    model: str
    before: str
    after: str
    rows: int
    unpaired: int
    changed: Estimate
    transitions: dict[tuple[str, str], int]
    gained: int
    lost: int
    judged: int
    p: float | None
    groups: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values; a transition is ``before -> after``."""
        transitions = {f"{a} -> {b}": n for (a, b), n in self.transitions.items()}
        return {**vars(self), "changed": self.changed.as_dict(), "transitions": transitions}


def flips(paths: Sequence[Path]) -> list[Flips]:
    """Return the flips of every two tasks of one model and benchmark that share rows, the one without retrieval first.

    Raises DataError if no two tasks share a row.
    """
    sheets = read_answers(paths)
    pairs = [
        (a, b) for a, b in combinations(sheets, 2) if (a.model, a.benchmark) == (b.model, b.benchmark) and _shared(a, b)
    ]
    if not pairs:
        raise DataError("no two tasks of one model answer the same questions", "name the samples of two modes or more")
    return [_flips(a, b) for a, b in pairs]


def _shared(a: AnswerSheet, b: AnswerSheet) -> bool:
    return not {given.row for given in a.answers}.isdisjoint(given.row for given in b.answers)


def _flips(a: AnswerSheet, b: AnswerSheet) -> Flips:
    from mrag_eval.metrics import mcnemar_exact, wilson

    later = {given.row: given for given in b.answers}
    rows = [(given, later[given.row]) for given in a.answers if given.row in later]
    other = [(x, y) for x, y in rows if x.key != y.key]
    judged = [(float(x.correct), float(y.correct)) for x, y in rows if x.correct is not None and y.correct is not None]
    test = mcnemar_exact([y for _, y in judged], [x for x, _ in judged]) if judged else None
    return Flips(
        a.model,
        a.task,
        b.task,
        len(rows),
        len(a.answers) + len(b.answers) - 2 * len(rows),
        wilson(len(other), len(rows)),
        dict(Counter((x.shown, y.shown) for x, y in other).most_common()),
        sum(y > x for x, y in judged),
        sum(x > y for x, y in judged),
        len(judged),
        None if test is None else test.p_value,
        dict(Counter(x.group for x, _ in other).most_common()),
    )


def shown_flips(found: Sequence[Flips], most: int = 10) -> str:
    """Return a Markdown table of all pairs, and the groups that change most."""
    head = ["model", "from", "to", "rows", "changed", "became right", "became wrong", "McNemar p"]
    rows = [
        [
            entry.model,
            entry.before,
            entry.after,
            f"{entry.rows:,}",
            score_text(entry.changed.value, entry.changed.low, entry.changed.high),
            f"{entry.gained} of {entry.judged}",
            f"{entry.lost} of {entry.judged}",
            p_text(entry.p) or "-",
        ]
        for entry in found
    ]
    out = [pipe_table(head, rows, "lllrrrrr")]
    for entry in found:
        listed = ", ".join(f"{group} ({n})" for group, n in list(entry.groups.items())[:most])
        more = f", and {len(entry.groups) - most} more" if len(entry.groups) > most else ""
        out += ["", f"{entry.before} -> {entry.after}: " + (f"{listed}{more}" if listed else "no answer changes")]
    return "\n".join(out)
