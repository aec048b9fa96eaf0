"""The values that a rule of a gate compares, turned so that a positive difference is a drop, and their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mrag_eval.report.comparison._compare import PairedRows, cell_of
from mrag_eval.report.comparison._gate_rules import Rule
from mrag_eval.report.files._scored_rows import ScoredRow
from mrag_eval.scoring import nearer_zero_is_better, scale_of

if TYPE_CHECKING:
    from mrag_eval.metrics import PairedCell

Values = Sequence[float | bool | None]


@dataclass(frozen=True)
class TestedDrop:
    """The cells by which a rule is tested, one or, for a distance from 0, one for each side of it.

    A value v of the metric counts in cell i as ``turned[i] * v``, plus a constant.
    """

    cells: tuple[PairedCell, ...]
    turned: tuple[float, ...]

    @property
    def filled(self) -> tuple[PairedCell, ...] | None:
        """Return the cells with the best value for rows that the baseline alone lacks, and the worst for the
        candidate's.

        None if there are no such rows; with a metric without a range, they cannot be filled, and the cells are empty.
        """
        lost = any((a is None) != (b is None) for a, b in zip(self.cells[0].first, self.cells[0].second, strict=True))
        return tuple(_filled(cell) for cell in self.cells) if lost else None


def _filled(cell: PairedCell) -> PairedCell:
    low, high = cell.bounds or (-math.inf, math.inf)
    if not math.isfinite(high - low):
        return replace(cell, first=[None] * len(cell.first), second=[None] * len(cell.second))
    both = [
        (high if a is None and b is not None else a, low if b is None and a is not None else b)
        for a, b in zip(cell.first, cell.second, strict=True)
    ]
    return replace(cell, first=[a for a, _ in both], second=[b for _, b in both])


def drop_of(rule: Rule, pair: PairedRows, limit: float) -> TestedDrop:
    """Return the cells of a rule on its rows."""
    cell = replace(cell_of(pair, rule.metric), margin=limit)
    if nearer_zero_is_better(rule.metric):
        known = [(a, b) for a, b in zip(cell.first, cell.second, strict=True) if a is not None and b is not None]
        side = -1.0 if sum(a for a, _ in known) < 0 else 1.0
        reach = _reach(rule.metric, pair)
        inside = all(abs(value) <= reach for both in known for value in both)
        # farther on the side of the baseline, or as far on the other
        cells = [
            replace(
                cell,
                first=_times(cell.first, -side),
                second=_times(cell.second, turn),
                bounds=(-reach, reach) if inside else None,
            )
            for turn in (-side, side)
        ]
        return TestedDrop(tuple(cells), (-side, side))
    return TestedDrop((_turned(cell) if rule.less_is_better else cell,), (-1.0 if rule.less_is_better else 1.0,))


def _reach(metric: str, pair: PairedRows) -> float:
    """Return the largest value of a territory in a delta of concurrence, infinite without a range.

    The values of Con - Non are those of T territories, of which C count for Con and D for Non: T / C or T / D at most.
    """
    if metric == "concurrence.delta_CS_difference":
        of_run = [
            [sum(name in row.values for row in run) for name in (metric, "concurrence.Con_CS", "concurrence.Non_CS")]
            for run in (pair.first, pair.second)
        ]
        return max(total / max(1, min(parts)) for total, *parts in of_run)
    low, high = scale_of(metric).bounds
    return max(abs(low), abs(high))


def unscored_of(rule: Rule, pair: PairedRows, limit: float) -> TestedDrop:
    """Return the cell of the rows that have the rule's metric: a drop is a rise in the share without it."""
    a, b = ([float(rule.metric in row.values) for row in run] for run in (pair.first, pair.second))
    cell = cell_of(pair, rule.metric)
    return TestedDrop((replace(cell, first=a, second=b, margin=limit, bounds=(0.0, 1.0)),), (-1.0,))


def _turned(cell: PairedCell) -> PairedCell:
    """Return the cell with values of which more is better, in the same range if it has two ends."""
    low, high = cell.bounds or (-math.inf, math.inf)
    if math.isfinite(low + high):
        first, second = ([None if v is None else low + high - v for v in run] for run in (cell.first, cell.second))
        return replace(cell, first=first, second=second)
    bounds = None if cell.bounds is None else (-high, -low)
    return replace(cell, first=_times(cell.first, -1.0), second=_times(cell.second, -1.0), bounds=bounds)


def _times(values: Values, factor: float) -> list[float | None]:
    return [None if value is None else factor * value for value in values]


def groups_of(rows: Sequence[ScoredRow]) -> list[str] | None:
    """Return the groups to resample; None if every row is its own group."""
    groups = [row.group for row in rows]
    return groups if len(set(groups)) < len(groups) else None


def units_word(groups: list[str] | None) -> str:
    """Return the name of what is independent."""
    return "rows" if groups is None else "groups of rows"


def no_rows(pair: str | None) -> str:
    return "no row to compare" if pair is None else f"no row has the languages {pair} (question->document)"
