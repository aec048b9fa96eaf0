"""Languages in which a metric gives a right answer less than its full score: a comparison never passes over them."""

from __future__ import annotations

from collections.abc import Sequence

from mrag_eval.core import points
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import CONTROLS, ControlRecord, ceilings, control_marks, scale_of


def limits_of(metric: str, *runs: Sequence[ScoredRow]) -> str | None:
    """Return the languages that the controls of a metric mark, in one line; None if they mark none.

    They are the task's, so that those of the first run with any are those of all.
    """
    marked = control_marks(_known(runs), metric)
    by_reason: dict[str, list[str]] = {}
    for language, why in marked.items():
        by_reason.setdefault(why, []).append(language or "no language")
    return "; ".join(f"{', '.join(codes)}: {why}" for why, codes in by_reason.items()) or None


def out_of_reach(metric: str, floor: float, rows: Sequence[ScoredRow]) -> str | None:
    """Return the languages whose ceiling is below the least score that a rule asks for; None if all reach it."""
    scale = scale_of(metric)
    low = {code: end for code, end in ceilings(_known([rows]), metric).items() if end[1] < floor}
    if not low:
        return None
    ends = ", ".join(f"{code} {points(value, scale=scale)}" for code, (_, value) in low.items())
    names = " or ".join(dict.fromkeys(CONTROLS[name] for name, _ in low.values()))
    return f"out of reach: {names} scores less than the floor in {ends}"


def _known(runs: Sequence[Sequence[ScoredRow]]) -> list[tuple[str, ControlRecord]]:
    found = ([(row.language, row.controls) for row in rows if row.controls is not None] for rows in runs)
    return next((own for own in found if own), [])
