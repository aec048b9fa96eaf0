"""Answers that change from one mode, or one run, to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from mrag_eval.config import DECIDING
from mrag_eval.core import p_text, pipe_table, score_text
from mrag_eval.metrics import Estimate
from mrag_eval.platform import DataError
from mrag_eval.report.files._answers import AnswerSheet, read_answers
from mrag_eval.report.files._leaves import labelled
from mrag_eval.report.files._systems import apart_from_mode


@dataclass(frozen=True)
class Flips:
    """Two answer sheets, paired by row. ``changed`` is the share of changed answers, with its interval.

    ``transitions``: (answer before, after) -> number of rows, for rows that differ. ``gained`` rows were wrong and
    became right, ``lost`` rows the reverse. ``p`` tests these two: an exact test, or, if several rows belong to one
    group (a territory, the versions of a question), the bootstrap over ``units`` groups. ``test`` names it; ``p`` is
    None if no row's correctness is known. ``groups`` are the territories (or questions) with a changed answer, in
    descending order of changes. ``parts``: task -> how many of its rows were run, if not all. ``failed`` counts rows
    without an answer, in either sheet, by reason. ``differs``: setting -> both values, of what else than the mode was
    not the same.
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
    test: str
    units: int
    groups: dict[str, int]
    parts: dict[str, str]
    failed: dict[str, int]
    differs: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values; a transition is ``before -> after``."""
        transitions = {f"{a} -> {b}": n for (a, b), n in self.transitions.items()}
        return {**vars(self), "changed": self.changed.as_dict(), "transitions": transitions}


def flips(paths: Sequence[Path]) -> list[Flips]:
    """Return the flips of every two tasks of one model and benchmark that share rows, the one without retrieval first.

    Raises DataError if no two tasks share a row.
    """
    sheets = read_answers(paths)
    rows = {id(sheet): {given.row for given in sheet.answers} for sheet in sheets}
    alike = ((a, b) for a, b in combinations(sheets, 2) if (a.model, a.benchmark) == (b.model, b.benchmark))
    pairs = [(a, b) for a, b in alike if not rows[id(a)].isdisjoint(rows[id(b)])]
    if not pairs:
        raise DataError("no two tasks of one model answer the same questions", "name the samples of two modes or more")
    return [_flips(a, b) for a, b in pairs]


def _flips(a: AnswerSheet, b: AnswerSheet) -> Flips:
    from mrag_eval.metrics import PairedCell, interval_for, paired_tests

    later = {given.row: given for given in b.answers}
    rows = [(given, later[given.row]) for given in a.answers if given.row in later]
    other = [(x, y) for x, y in rows if x.key != y.key]
    judged = [(x, y) for x, y in rows if x.correct is not None and y.correct is not None]
    right = [y.correct for _, y in judged], [x.correct for x, _ in judged]
    units = [x.group for x, _ in rows]
    groups = units if len({*units}) < len(units) else None
    test = paired_tests([PairedCell(*right, [x.group for x, _ in judged])])[0]
    return Flips(
        a.model,
        a.task,
        b.task,
        len(rows),
        len(a.answers) + len(b.answers) - 2 * len(rows),
        interval_for([float(x.key != y.key) for x, y in rows], groups=groups),
        dict(Counter((x.shown, y.shown) for x, y in other).most_common()),
        sum(bool(after) and not before for after, before in zip(*right, strict=True)),
        sum(bool(before) and not after for after, before in zip(*right, strict=True)),
        len(judged),
        test.p_value,
        test.method,
        len({*units}),
        dict(Counter(x.group for x, _ in other).most_common()),
        {sheet.task: sheet.part for sheet in (a, b) if sheet.part},
        dict(Counter(a.failed) + Counter(b.failed)),
        {} if a.measured is b.measured is None else apart_from_mode(a.measured, b.measured, DECIDING),
    )


def shown_flips(found: Sequence[Flips], most: int = 10) -> str:
    """Return a Markdown table of all pairs, and the groups that change most."""
    head = ["model", "from", "to", "rows", "changed", "became right", "became wrong", "p", "test"]
    rows = [
        [
            entry.model,
            *(labelled(task, entry.parts.get(task)) for task in (entry.before, entry.after)),
            f"{entry.rows:,}" + (f" in {entry.units:,} groups" if entry.units < entry.rows else ""),
            score_text(entry.changed.value, entry.changed.low, entry.changed.high),
            f"{entry.gained} of {entry.judged}",
            f"{entry.lost} of {entry.judged}",
            p_text(entry.p) or "-",
            "" if entry.p is None else entry.test,
        ]
        for entry in found
    ]
    out = [pipe_table(head, rows, "lllrrrrrl")]
    for entry in found:
        listed = ", ".join(f"{group} ({n})" for group, n in list(entry.groups.items())[:most])
        more = f", and {len(entry.groups) - most} more" if len(entry.groups) > most else ""
        out += ["", f"{entry.before} -> {entry.after}: " + (f"{listed}{more}" if listed else "no answer changes")]
        left = [f"{n:,} without an answer ({why})" for why, n in entry.failed.items()]
        left += [f"{entry.unpaired:,} answered in one of them alone"] if entry.unpaired else []
        out += [f"  left out: {', '.join(left)}"] if left else []
        out += [f"  differ in {key}: {values}" for key, values in entry.differs.items()]
    return "\n".join(out)
