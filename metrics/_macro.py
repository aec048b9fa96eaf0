"""Means over cells such as languages: the macro mean, the worst cell, and intervals that hold for all cells at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._clusters import (
    Bounds,
    Means,
    check_range,
    critical_value,
    jackknife_variance,
    mean_score_limits,
    worth,
)
from mrag_eval.metrics._intervals import (
    Estimate,
    bootstrap_statistic,
    group_codes,
    scored_rows,
    undefined,
)
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError


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

    Of values within ``bounds``, their range, it is a score interval (:func:`~mrag_eval.metrics._clusters.
    mean_score_limits`): Wilson's, if there is one cell of 0 and 1. A cell counts as the number of independent values of
    0 and 1 that would have its variance, that of a jackknife; a cell whose rows are all equal as its rows. With
    ``groups`` (N,), rows that are not independent, the jackknife leaves out whole groups; if a group spans several
    cells (one question asked in each language), their correlation is that of the groups. Values other than 0 and 1, and
    groups, have the quantile of t with Satterthwaite's degrees of freedom.

    Without ``bounds`` it is a bootstrap: rows, or groups, are resampled within their cell, or over all cells at once if
    groups span them. A cell without variation leaves no interval.

    A cell of one row (or group) shows nothing of its spread: no interval. None entries are unscored and left out; a
    cell without a scored row makes the macro mean undefined. Raises MetricError on NaN, on unequal lengths and on
    values outside ``bounds``.
    """
    bounds = bounds if bounds is None or np.isfinite(bounds).all() else None
    label = f"stratified {'' if groups is None else 'cluster '}{'bootstrap' if bounds is None else 'score'}"
    scored, kept = scored_rows(values)
    check_range(scored, bounds)
    if len(cells) != len(kept):
        raise MetricError(f"{len(kept)} values but {len(cells)} cells")
    _resampling.check_settings(confidence, n_resamples)
    if not len(kept):
        return undefined("no scored rows", label)
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
    parts = Means.of(sums)
    lone = np.flatnonzero((sums[:, n_cells:] > 0).sum(axis=0) == 1)
    if len(lone):
        unit = "row" if groups is None else "group"
        shown = ", ".join(_cell_name(names[cell]) for cell in lone[:3]) + (", …" if len(lone) > 3 else "")
        mean = float(parts.mean.mean())
        return Estimate(mean, n=len(scored), method=label, reason=f"no interval: a single {unit} in cell {shown}")
    if bounds is not None:
        correlation = np.eye(n_cells) if strata is not None else parts.correlation()
        shares = groups is None and bool(np.isin((scored - bounds[0]) / (bounds[1] - bounds[0]), (0.0, 1.0)).all())
        low, high = _score_limits(parts, bounds, correlation, confidence, shares=shares)
        return Estimate(float(parts.mean.mean()), low, high, len(scored), label)
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
    if (parts.variance == 0).any() and found.value is not None:
        still = _cell_name(names[int(np.flatnonzero(parts.variance == 0)[0])])
        return replace(found, low=None, high=None, reason=f"no interval: no variation in cell {still}")
    return found


def _score_limits(
    parts: Means, bounds: Bounds, correlation: Array, confidence: float, *, shares: bool
) -> tuple[float, float]:
    """Return the limits of the mean of the cells; ``shares`` says that all values are single rows at an end."""
    span = bounds[1] - bounds[0]
    share, rows = np.clip((parts.mean - bounds[0]) / span, 0.0, 1.0), parts.sizes.sum(axis=0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    if shares:
        low, high = mean_score_limits(share, rows, rows, correlation, z)
    else:
        known = parts.variance > 0
        variance = np.where(known, jackknife_variance(parts), 0.0)
        value = np.where(
            known, worth(parts.mean, np.where(known, variance, 1.0), bounds), _of_equal(share, parts.units, z)
        )
        z = _quantile(parts, variance, correlation, confidence) if known.any() else z
        low, high = mean_score_limits(share, value, np.full(len(share), np.inf), correlation, z)
    return bounds[0] + span * low, bounds[0] + span * high


def _of_equal(share: Array, units: Array, z: float) -> Array:
    """Return the worth (2, K), from below and above, of cells of equal values whose limits are Wilson's for no spread.

    From below those of n values at s are s n / (n + z²), the same as of n (n (1 - s) + z²) / (s z²) values of 0 and 1.
    """
    ends = np.maximum(np.stack([share, 1 - share]), 1e-9)
    return np.asarray(units * (units * (1 - ends) + z * z) / (ends * z * z))


def _quantile(parts: Means, variance: Array, correlation: Array, confidence: float) -> float:
    """Return the t quantile of the sum of cells with these variances, from those of the cells that vary.

    Satterthwaite's degrees of freedom if the cells are independent; else none are gained by their number.
    """
    from scipy.special import stdtridf, stdtrit

    level = 0.5 + confidence / 2
    known = np.flatnonzero(variance > 0)
    weight = variance[known] / variance.sum()
    each = np.array([critical_value(parts.sizes[:, k], parts.residuals[:, k], confidence) for k in known])
    if not np.array_equal(correlation, np.eye(len(correlation))):
        return float(np.sqrt(weight @ each**2))
    freedom = np.minimum(stdtridf(level, each), 1e9)
    return float(stdtrit(1 / (weight**2 / freedom).sum(), level))


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
