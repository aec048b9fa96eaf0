"""Means over cells such as languages: the macro mean, the worst cell, and intervals that hold for all cells at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrag_eval.core import MetricError
from mrag_eval.metrics import _resampling
from mrag_eval.metrics._bounded import Bounds, Means, check_range, mover
from mrag_eval.metrics._intervals import (
    Estimate,
    bootstrap_statistic,
    group_codes,
    interval_for,
    scored_rows,
    undefined,
)
from mrag_eval.metrics._resampling import Array


def stratified_bootstrap(
    values: Sequence[float | None] | ArrayLike,
    cells: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    bounds: Bounds | None = (0.0, 1.0),
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return the macro mean, the unweighted mean over ``cells`` (N,) of each cell's mean, with an interval.

    The interval is the wider, at each end, of two. (1) A bootstrap: rows are resampled within their cell, so that every
    resample has the same cells at the same size. With ``groups`` (N,), whole groups are resampled; if a group spans
    several cells (one question asked in each language), resampling is over all groups at once. (2) MOVER (Zou & Donner
    2008) over the cells' own Wilson limits (:mod:`mrag_eval.metrics._bounded`), within ``bounds``, the range of the
    values: a small cell whose rows are all right adds to the width, although resampling shows no spread in it. Without
    ``bounds`` only (1) is possible, and a cell without variation leaves no interval.

    A cell of one row (or group) shows nothing of its spread: no interval. None entries are unscored and left out; a
    cell without a scored row makes the macro mean undefined. Raises MetricError on NaN, on unequal lengths and on
    values outside ``bounds``.
    """
    label = "stratified bootstrap" if groups is None else "stratified cluster bootstrap"
    label = label if bounds is None else f"{label} and MOVER"
    scored, kept = scored_rows(values)
    check_range(scored, bounds)
    if len(cells) != len(kept):
        raise MetricError(f"{len(kept)} values but {len(cells)} cells")
    codes, n_cells = group_codes(cells, np.ones(len(kept), dtype=bool))
    codes = codes[kept]
    names = list(dict.fromkeys(cells))
    if len(np.unique(codes)) < n_cells:
        empty = sorted({_cell_name(cell) for cell in names} - {_cell_name(names[code]) for code in np.unique(codes)})
        return undefined(f"no scored row in cell {', '.join(empty)}", label, len(scored))
    one_hot = np.zeros((len(scored), 2 * n_cells))
    rows = np.arange(len(scored))
    one_hot[rows, codes] = scored
    one_hot[rows, n_cells + codes] = 1.0
    sums = one_hot
    strata: NDArray[np.int64] | None = codes
    if groups is not None:
        sums = _resampling.per_unit_sums(one_hot, *group_codes(groups, kept))
        touched = sums[:, n_cells:] > 0
        strata = touched.argmax(axis=1) if (touched.sum(axis=1) == 1).all() else None
    found = bootstrap_statistic(
        sums,
        macro_mean,
        n=len(scored),
        units="rows" if groups is None else "clusters",
        label=label,
        strata=strata,
        confidence=confidence,
        n_resamples=n_resamples,
        seed=seed,
    )
    if found.value is None:
        return found
    parts = Means.of(sums)
    lone = np.flatnonzero((sums[:, n_cells:] > 0).sum(axis=0) == 1)
    if len(lone):
        unit = "row" if groups is None else "group"
        shown = ", ".join(_cell_name(names[cell]) for cell in lone[:3]) + (", …" if len(lone) > 3 else "")
        return replace(found, low=None, high=None, reason=f"no interval: a single {unit} in cell {shown}")
    if bounds is None:
        if (parts.variance == 0).any():
            still = _cell_name(names[int(np.flatnonzero(parts.variance == 0)[0])])
            return replace(found, low=None, high=None, reason=f"no interval: no variation in cell {still}")
        return found
    limits = parts.limits(bounds, confidence)
    low, high = mover(*limits, parts.mean, np.eye(n_cells) if strata is not None else parts.correlation())
    ends = [low if found.low is None else min(low, found.low), high if found.high is None else max(high, found.high)]
    return replace(found, low=ends[0], high=ends[1], reason=None).within(bounds)


@dataclass(frozen=True)
class WorstCell:
    """The cell with the lowest mean. ``score`` is that mean, and its interval is for the lowest true mean of all cells.

    ``cells`` are all cells' means with simultaneous intervals: with the given confidence all of them hold at once.
    """

    cell: Hashable
    score: Estimate
    cells: Mapping[Hashable, Estimate]


def worst_cell(
    values: Sequence[float | None],
    cells: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    bounds: Bounds = (0.0, 1.0),
    lower_is_better: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> WorstCell:
    """Return the worst of the ``cells`` (N,), such as languages, by the mean of its ``values`` (N,).

    Every cell gets :func:`~mrag_eval.metrics.interval_for` at confidence c^(1 / K) for K cells (Sidak 1967), so that
    all K intervals hold at once with confidence c. Then the lowest true mean is between the lowest lower limit and the
    lowest upper one: unlike the interval of the cell that happens to come last, this one allows for its selection.
    None entries are unscored and left out; cells without a scored row are undefined and cannot be the worst. Raises
    MetricError as there, and if no row is scored.
    """
    places: dict[Hashable, list[int]] = {}
    for i, cell in enumerate(cells):
        places.setdefault(cell, []).append(i)
    if len(values) != len(cells):
        raise MetricError(f"{len(values)} values but {len(cells)} cells")
    rng = _resampling.generator(seed)
    found = {
        cell: interval_for(
            [values[i] for i in chosen],
            groups=None if groups is None else [groups[i] for i in chosen],
            bounds=bounds,
            confidence=confidence ** (1 / len(places)),
            n_resamples=n_resamples,
            seed=rng,
        )
        for cell, chosen in places.items()
    }
    scored = {cell: each for cell, each in found.items() if each.value is not None}
    if not scored:
        raise MetricError("no row is scored, so no cell is the worst")
    pick = max if lower_is_better else min
    worst = pick(scored, key=lambda cell: float(scored[cell].value or 0.0))
    known = [each for each in scored.values() if each.low is not None and each.high is not None]
    score = replace(scored[worst], method=f"simultaneous over {len(scored)}: {scored[worst].method}")
    if len(known) < len(scored):
        return WorstCell(worst, replace(score, low=None, high=None, reason="a cell has no interval"), found)
    low, high = pick(each.low or 0.0 for each in known), pick(each.high or 0.0 for each in known)
    return WorstCell(worst, replace(score, low=low, high=high), found)


def unscored_range(
    values: Sequence[float | None], cells: Sequence[Hashable], bounds: Bounds = (0.0, 1.0)
) -> tuple[float, float]:
    """Return the macro mean of ``values`` (N,) over ``cells`` (N,) if all unscored rows had the worst or best score.

    These are Manski's bounds (1989) for missing outcomes: they assume nothing about why a row has no score. Raises
    MetricError on unequal lengths and without rows.
    """
    if len(values) != len(cells) or not len(values):
        raise MetricError(f"{len(values)} values and {len(cells)} cells", "give both, one of each for every row")
    codes, n_cells = group_codes(cells, np.ones(len(cells), dtype=bool))
    one_hot = np.eye(n_cells)[codes]
    sizes = one_hot.sum(axis=0)
    ends = (np.array([end if value is None else value for value in values], dtype=np.float64) for end in bounds)
    low, high = (float((one_hot.T @ filled / sizes).mean()) for filled in ends)
    return low, high


def macro_mean(totals: Array) -> Array:
    """Return the mean over cells of value total / count total.

    ``totals`` (B, 2C) has C value columns, then C count columns. A resample without a row of some cell averages over
    the cells it has.
    """
    n_cells = totals.shape[1] // 2
    with np.errstate(divide="ignore", invalid="ignore"):
        means = totals[:, :n_cells] / totals[:, n_cells:]
    present = totals[:, n_cells:] > 0
    return np.asarray(np.where(present, means, 0.0).sum(axis=1) / present.sum(axis=1))


def _cell_name(cell: Hashable) -> str:
    """Return the name of a cell, for a pair of languages ``ar->en``."""
    return "->".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)
