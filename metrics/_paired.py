"""Paired tests of many cells as one family: drops beyond a margin, with the bounds that the same tests imply."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._clusters import Bounds, check_range
from mrag_eval.metrics._family import (
    Correction,
    PairedMeans,
    Place,
    ResampledCell,
    Signs,
    Test,
    able,
    decided,
    graphical,
    hierarchy,
    needed,
    possible,
)
from mrag_eval.metrics._intervals import scored_rows
from mrag_eval.metrics._joint_bootstrap import JointBootstrap
from mrag_eval.metrics._paired_shares import BoundedMean, PairedShares
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError

Values = Sequence[float | bool | None]
_UNTESTABLE = "fewer than two independent rows"
# With fewer units that differ from the most common difference, resamples say too little of the spread.
FEW_DIFFERING = 10


@dataclass(frozen=True)
class PairedCell:
    """Two runs' values of the same rows, (N,) each, as one cell of a family of tests; None: unscored.

    Rows of one of the ``units`` (N,), such as the versions of a question, are not independent. A unit with rows in
    several cells of a family is resampled with all of them. None: each row is a unit of its own, also among cells.
    ``bounds`` is the range of the values. The test is whether the mean of first - second is above ``margin``. ``place``
    is that of the test in a hierarchy; None: it is one of its own.
    """

    first: Values
    second: Values
    units: Sequence[Hashable] | None = None
    margin: float = 0.0
    bounds: Bounds | None = (0.0, 1.0)
    place: Place | None = None


@dataclass(frozen=True)
class _CellTest:
    """What every test of a cell says; ``reason`` says why there is none.

    ``detectable`` is the smallest difference beyond the margin that these units show with 80% power by this test, None
    if none is sure to be shown.
    """

    difference: float | None
    n: int
    units: int
    method: str
    p_value: float | None = None
    p_adjusted: float | None = None
    detectable: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class MarginTest(_CellTest):
    """One cell's test that the mean of first - second, ``difference``, is above its margin.

    ``p_value`` is of this test alone, ``p_adjusted`` after the correction for all. ``lower`` is the one-sided bound of
    the difference at the level of the decision, so that ``shown`` is true if and only if it is above the margin.
    ``upper`` is the one-sided bound on the other side, at the level of the family. A cell in which not even the worst
    second run would be shown to be worse is not ``possible``; it is left out of the family, and ``needed`` is about the
    number of units with which it would be, if there is one. Where units that the sample may lack alone keep a drop from
    being shown, ``enough`` is about the number of them that would show it. ``reason`` says why there is no test.
    """

    lower: float | None = None
    upper: float | None = None
    shown: bool = False
    possible: bool = True
    needed: int | None = None
    enough: int | None = None


@dataclass(frozen=True)
class PairedTest(_CellTest):
    """A two-sided test that two runs differ, with the interval of the mean of first - second that it implies.

    0 is outside ``low`` to ``high`` if and only if ``p_value`` is at most 1 less the confidence. ``p_adjusted`` is
    corrected for all cells of the family. Both are None if no test is possible, and ``reason`` says why. A pair of
    languages whose units would not be shown to differ if all did is not ``possible``, and left out of the family.
    """

    possible: bool = True
    low: float | None = None
    high: float | None = None


class _Rows(NamedTuple):
    """The rows of a cell: their differences, their units by codes over the whole family, and the largest difference."""

    drops: Array
    units: NDArray[np.int64]
    binary: bool
    reach: float

    def by_unit(self) -> tuple[Array, Array]:
        """Return sums and numbers of rows of the units, (G,) each."""
        _, codes = np.unique(self.units, return_inverse=True)
        sums: Array = np.bincount(codes, self.drops).astype(np.float64)
        return sums, np.bincount(codes).astype(np.float64)


def margin_tests(
    cells: Sequence[PairedCell],
    *,
    alpha: float = 0.05,
    correction: Correction = "holm",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> list[MarginTest]:
    """Test for each cell whether the mean of first - second is above its margin, one-sided, as one family.

    The test of a cell:

    - Values of 0 and 1, each row a unit, and units in which every row that differs loses or gains the whole range with
      all others of its unit: the exact unconditional test of two paired shares.
    - Other values and units: at nine tenths of the level the studentised bootstrap of the units, if ten or more differ
      from the most common difference. At the last tenth, and alone if fewer do, betting on bounded values
      (Waudby-Smith & Ramdas 2024), which needs no variation.
    - Values without a range of which fewer than ten units differ: a sign test.

    ``holm`` bounds the chance of any false rejection by ``alpha``: by the :func:`hierarchy` of the cells' places, and
    Holm's procedure (1979) among those without one. ``bh`` bounds the share of false rejections (Benjamini & Hochberg
    1995). ``none`` tests each cell at ``alpha``.

    A cell that could not be rejected whatever the second run had is left out first (Tarone 1990): this depends on the
    first run and the margin alone. Raises MetricError on unequal lengths, NaN and values out of bounds.
    """
    _resampling.check_settings(1 - alpha, n_resamples)
    rows, worst = _rows_of(cells), _rows_of(cells, worst=True)
    tests = _tests(rows, n_resamples, seed)
    margins, places = [cell.margin for cell in cells], _places(cells)
    at_worst = {i: test for i, test in enumerate(_tests(worst, n_resamples, seed)) if test is not None}
    known = {i: test for i, test in at_worst.items() if _worst(cells[i]) is not None}
    always = {i: None for i, test in enumerate(tests) if test is not None and i not in known}
    kept, level = possible({**known, **always}, margins, places, correction, alpha)
    family = {i: test for i, test in enumerate(tests) if test is not None and i in kept}
    found_in_family = decided(
        list(family.values()), [margins[i] for i in family], [places[i] for i in family], correction, alpha
    )
    outcomes = dict(zip(family, found_in_family, strict=True))
    out = []
    for i, (row, test) in enumerate(zip(rows, tests, strict=True)):
        found = MarginTest(_mean(row), len(row.drops), len(np.unique(row.units)), test.method if test else "none")
        if test is None:
            out.append(replace(found, reason=_UNTESTABLE))
            continue
        found = replace(found, p_value=test.p_value(margins[i]), upper=test.upper(alpha, margins[i]))
        if i in outcomes:
            p_adjusted, own, lower = outcomes[i]
            smallest = _finite(test.detectable(own, margins[i]))
            found = replace(found, p_adjusted=p_adjusted, lower=lower, shown=lower > margins[i], detectable=smallest)
            if isinstance(test, PairedMeans) and not found.shown:
                found = replace(found, enough=test.enough(own, margins[i]))
        else:
            enough = needed(known[i], margins[i], level, len(np.unique(worst[i].units)))
            found = replace(found, lower=test.lower(level, margins[i]), possible=False, needed=enough)
        out.append(found)
    return out


def _places(cells: Sequence[PairedCell]) -> list[Place]:
    return [Place(i) if cell.place is None else cell.place for i, cell in enumerate(cells)]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def paired_tests(
    cells: Sequence[PairedCell], *, confidence: float = 0.95, n_resamples: int = 10_000, seed: int = 0
) -> list[PairedTest]:
    """Test for each cell whether the mean of first - second is other than 0, two-sided; margins do not count.

    The tests are those of :func:`margin_tests` in both directions, each at half the level, and so is the correction of
    the two-sided p-values. Raises MetricError as there.
    """
    _resampling.check_settings(confidence, n_resamples)
    rows = _rows_of(cells)
    tests = _tests(rows, n_resamples, seed)
    level, places = 1 - confidence, _places(cells)
    p_values = {
        i: min(1.0, 2 * min(test.p_value(0.0), test.mirrored.p_value(0.0)))
        for i, test in enumerate(tests)
        if test is not None
    }
    units = {i: len(np.unique(rows[i].units)) for i in p_values}
    least = {i: 2 * _least(n) if places[i].level == "pair" else 0.0 for i, n in units.items()}
    possible_ones, _ = able(least, places, level)
    kept = {i: p for i, p in p_values.items() if i in possible_ones}
    adjusted, _ = graphical(list(kept.values()), *hierarchy([places[i] for i in kept]), level)
    corrected = dict(zip(kept, adjusted, strict=True))
    out = []
    for i, (row, test) in enumerate(zip(rows, tests, strict=True)):
        found = PairedTest(_mean(row), len(row.drops), len(np.unique(row.units)), test.method if test else "none")
        if test is None:
            out.append(replace(found, reason=_UNTESTABLE, possible=places[i].level != "pair"))
            continue
        low, high = test.lower(level / 2, 0.0), -test.mirrored.lower(level / 2, 0.0)
        smallest = _finite(min(one.detectable(level / 2, 0.0) for one in (test, test.mirrored)))
        found = replace(found, p_value=p_values[i], low=low, high=high, detectable=smallest)
        both = max(p_values[i], corrected[i]) if i in corrected else None
        out.append(replace(found, p_adjusted=both, possible=i in corrected))
    return out


@cache
def _least(units: int) -> float:
    """Return the p-value of so many units if all of them fall."""
    return PairedShares(units, units, 0).p_value(0.0)


def _rows_of(cells: Sequence[PairedCell], *, worst: bool = False) -> list[_Rows]:
    """Return the rows that both runs scored; with ``worst`` those of the first run beside the worst second run."""
    codes: dict[Hashable, int] = {}
    out = []
    for at, cell in enumerate(cells):
        first, in_first = scored_rows(cell.first)
        second, in_second = scored_rows(cell.second)
        if len(in_first) != len(in_second):
            raise MetricError(
                f"{len(in_first)} values of one run but {len(in_second)} of the other", "pair the runs by row id"
            )
        check_range(first, cell.bounds)
        check_range(second, cell.bounds)
        both = in_first & in_second
        a, b = first[both[in_first]], second[both[in_second]]
        lowest = _worst(cell)
        if worst and lowest is not None:
            both, a, b = in_first, first, np.full(len(first), lowest)
        names = [(at, i) for i in range(len(both))] if cell.units is None else cell.units
        if len(names) != len(both):
            raise MetricError(f"{len(both)} values but {len(names)} units")
        units = [codes.setdefault(name, len(codes)) for name, keep in zip(names, both, strict=True) if keep]
        single = len(set(units)) == len(units)
        reach = math.inf if cell.bounds is None else cell.bounds[1] - cell.bounds[0]
        binary = single and bool(np.isin(np.concatenate([a, b]), (0.0, 1.0)).all())
        out.append(_Rows(a - b, np.array(units, dtype=np.int64), binary, reach))
    return out


def _worst(cell: PairedCell) -> float | None:
    """Return the worst value of the second run; None if the metric has no end there."""
    return None if cell.bounds is None or not math.isfinite(cell.bounds[0]) else cell.bounds[0]


def _tests(rows: Sequence[_Rows], n_resamples: int, seed: int) -> list[Test | None]:
    """Return the test of each cell, None where no test is possible."""
    found: list[Test | None] = []
    bounded: dict[int, BoundedMean | None] = {}
    spread: list[int] = []
    for i, row in enumerate(rows):
        sums, sizes = row.by_unit() if len(row.drops) else (np.zeros(0), np.zeros(0))
        found.append(None)
        if len(sums) < 2:
            continue
        if row.binary:
            found[i] = PairedShares(len(sums), int((row.drops > 0).sum()), int((row.drops < 0).sum()))
            continue
        if row.reach == 1 and _whole_units(row.drops, sums, sizes):
            # units of unequal size count by their rows, as parts of the largest
            n, lost, gained = (float(part.sum() / sizes.max()) for part in (sizes, sums[sums > 0], -sums[sums < 0]))
            found[i] = PairedShares(round(n), round(lost), round(gained))
            continue
        bounded[i] = BoundedMean(sums, sizes, row.reach) if math.isfinite(row.reach) else None
        if _differing(sums / sizes) >= FEW_DIFFERING:
            spread.append(i)
    cells: dict[int, ResampledCell] = {}
    if spread:
        _, codes = np.unique(np.concatenate([rows[i].units for i in spread]), return_inverse=True)
        ends = np.cumsum([len(rows[i].units) for i in spread])
        parts = [(part, rows[i].drops) for i, part in zip(spread, np.split(codes, ends[:-1]), strict=True)]
        joint = JointBootstrap.of(parts, int(codes.max()) + 1, n_resamples, _resampling.generator(seed))
        cells = {i: ResampledCell(joint, at) for at, i in enumerate(spread)}
    for i, bets in bounded.items():
        some = i in cells or bets is not None
        found[i] = PairedMeans(cells.get(i), bets) if some else Signs(np.divide(*rows[i].by_unit()))
    return found


def _whole_units(drops: Array, sums: Array, sizes: Array) -> bool:
    """Return whether each row lost or gained everything or nothing, and with it all rows of its unit."""
    size = np.abs(drops)
    ends = bool(np.isin(size, (0.0, 1.0)).all()) and bool(np.isin(np.abs(sums) / sizes, (0.0, 1.0)).all())
    # losses and gains in a unit would cancel each other
    return ends and size.sum() == np.abs(sums).sum()


def _differing(means: Array) -> int:
    """Return the number of units whose mean is not the most common one."""
    return len(means) - int(np.unique(np.round(means, 9), return_counts=True)[1].max())


def _mean(row: _Rows) -> float | None:
    return float(row.drops.mean()) if len(row.drops) else None
