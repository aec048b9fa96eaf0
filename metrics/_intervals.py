"""Intervals for every kind of score: Wilson, bootstrap, cluster bootstrap, stratified bootstrap."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrag_eval.core import OPTIONAL, MetricError, did_you_mean
from mrag_eval.metrics import _resampling
from mrag_eval.metrics._resampling import Array, Limits, Statistic

Kind = Literal["auto", "wilson", "bootstrap", "cluster"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval.

    ``value`` is the plain statistic, never a resampled one; it is None if undefined, and ``reason`` gives the cause.
    ``low`` and ``high`` are None if there is no interval. ``n`` counts the scored rows, ``method`` names the interval.
    A ``reason`` with a value describes a peculiarity of the interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    method: str = ""
    reason: str | None = field(default=None, metadata=OPTIONAL)

    def within(self, bounds: tuple[float, float] | None) -> Estimate:
        """Return the estimate with its limits clipped to the range ``bounds`` of the statistic; None: unchanged.

        A t interval from few units may exceed the range of a share; clipping does not change its coverage.
        """
        if bounds is None or self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, bounds[0]), high=min(self.high, bounds[1]))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form; ``reason`` only if there is one."""
        # a run has thousands of these, and dataclasses.asdict copies every value
        entry = {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "method": self.method}
        return entry if self.reason is None else {**entry, "reason": self.reason}


def wilson(successes: int, n: int, confidence: float = 0.95) -> Estimate:
    """Return the share ``successes / n`` with its Wilson score interval (Wilson 1927).

    With p the share and z the normal quantile, (p + z² / 2n ± z √(p (1 - p) / n + z² / 4n²)) / (1 + z² / n). n = 0
    gives an undefined estimate. Raises MetricError unless 0 <= successes <= n, both whole numbers.
    """
    if successes != int(successes) or n != int(n) or not 0 <= successes <= n:
        raise MetricError(f"{successes} successes in {n} trials: whole numbers with 0 <= successes <= n are needed")
    _resampling.check_settings(confidence, 1000)
    if not n:
        return undefined("no scored rows", "Wilson")
    # scipy has all of this too, but takes longer to load than a small run takes to score
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    share = successes / n
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # at either end one limit is the share itself, which rounding would miss
    low = 0.0 if successes == 0 else (centre - reach) / (1 + z * z / n)
    high = 1.0 if successes == n else (centre + reach) / (1 + z * z / n)
    return Estimate(share, low, high, int(n), "Wilson")


def t_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the t interval of a mean over independent runs (n - 1 degrees of freedom); raise MetricError for fewer
    than two.
    """
    from scipy.stats import t

    n = len(values)
    if n < 2:
        raise MetricError(f"a t interval needs two values or more, got {n}")
    mean = sum(values) / n
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    half = float(t.ppf((1 + confidence) / 2, n - 1)) * deviation / math.sqrt(n)
    return mean - half, mean + half


def bootstrap_mean(
    values: Sequence[float | None] | ArrayLike,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    expand: bool = True,
) -> Estimate:
    """Return the mean of ``values`` (N,) with a BCa bootstrap interval (Efron 1987), vectorised and seeded.

    ``expand`` widens the quantiles for few or skewed rows (Hesterberg 2015, section 4.3); without it the interval is
    that of scipy.stats.bootstrap. Fewer than 10 rows get a t interval. None entries are unscored and left out; ``n``
    counts the rest. If all values are equal, the interval has no width, and ``reason`` states it. Raises MetricError on
    NaN.
    """
    scored, _ = scored_rows(values)
    sums = np.stack([scored, np.ones_like(scored)], axis=1)
    return bootstrap_statistic(
        sums, _ratio, n=len(scored), confidence=confidence, n_resamples=n_resamples, seed=seed, expand=expand
    )


def cluster_bootstrap(
    values: Sequence[float | None] | ArrayLike,
    groups: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return the mean of ``values`` (N,) with an interval that resamples whole ``groups`` (N,), not rows.

    For rows that are not independent: territories, questions asked in several languages. The value is the plain mean of
    the rows; a resample of groups is scored as the sum of its values over the number of its rows. 10 groups or more:
    BCa with quantiles widened for their number; fewer: the mean +- t times the jackknife standard error over groups.
    One group: no interval. None entries are unscored and left out. Raises MetricError on NaN and on unequal lengths.
    """
    scored, kept = scored_rows(values)
    codes, n_groups = group_codes(groups, kept)
    sums = _resampling.per_unit_sums(np.stack([scored, np.ones_like(scored)], axis=1), codes, n_groups)
    return bootstrap_statistic(
        sums, _ratio, n=len(scored), units="clusters", confidence=confidence, n_resamples=n_resamples, seed=seed
    )


def _cell_name(cell: Hashable) -> str:
    """Return the name of a cell, for a pair of languages ``ar->en``."""
    return "->".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)


def stratified_bootstrap(
    values: Sequence[float | None] | ArrayLike,
    cells: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return the macro mean, the unweighted mean over ``cells`` (N,) of each cell's mean, with a bootstrap interval.

    Rows are resampled within their cell, so that every resample has the same cells at the same size. With ``groups``
    (N,), whole groups are resampled; if a group spans several cells (one question asked in each language), resampling
    is over all groups at once. Rows that are all 0 or all 1 get the Wilson interval for the effective number of rows of
    the mean of cell means: K^2 / sum(1 / n_k) for K cells of n_k rows (or groups). None entries are unscored and left
    out; a cell without a scored row makes the macro mean undefined. Raises MetricError on NaN and on unequal lengths.
    """
    scored, kept = scored_rows(values)
    if len(cells) != len(kept):
        raise MetricError(f"{len(kept)} values but {len(cells)} cells")
    cell_codes, n_cells = group_codes(cells, np.ones(len(kept), dtype=bool))
    cell_codes = cell_codes[kept]
    if len(np.unique(cell_codes)) < n_cells:
        empty = sorted(map(_cell_name, {*cells} - {cells[int(row)] for row in np.flatnonzero(kept)}))
        return undefined(f"no scored row in cell {', '.join(empty)}", "stratified bootstrap", len(scored))
    if len(scored) and scored[0] in (0.0, 1.0) and bool((scored == scored[0]).all()):
        units = np.arange(len(scored)) if groups is None else group_codes(groups, kept)[0]
        return _constant_rows(float(scored[0]), len(scored), _effective_n(units, cell_codes), confidence)
    one_hot = np.zeros((len(scored), 2 * n_cells))
    rows = np.arange(len(scored))
    one_hot[rows, cell_codes] = scored
    one_hot[rows, n_cells + cell_codes] = 1.0
    strata: NDArray[np.int64] | None = cell_codes
    sums = one_hot
    if groups is not None:
        codes, n_groups = group_codes(groups, kept)
        sums = _resampling.per_unit_sums(one_hot, codes, n_groups)
        touched = sums[:, n_cells:] > 0
        strata = touched.argmax(axis=1) if (touched.sum(axis=1) == 1).all() else None
    found = bootstrap_statistic(
        sums,
        macro_mean,
        n=len(scored),
        units="rows" if groups is None else "clusters",
        label="stratified bootstrap" if groups is None else "stratified cluster bootstrap",
        strata=strata,
        confidence=confidence,
        n_resamples=n_resamples,
        seed=seed,
    )
    if found.reason is None and strata is not None and (np.bincount(strata, minlength=n_cells) == 1).any():
        return replace(found, reason="a cell with a single row or cluster adds nothing to the width of the interval")
    return found


def bootstrap_statistic(
    sums: Array,
    statistic: Statistic,
    *,
    n: int,
    units: Literal["rows", "clusters"] = "rows",
    label: str | None = None,
    strata: NDArray[np.int64] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    expand: bool = True,
) -> Estimate:
    """Return any statistic of column totals, with a bootstrap interval over the units.

    Args:
        sums: (G, m) column sums of each row or cluster.
        statistic: maps totals (B, m) to (B,), vectorised over resamples; NaN if undefined. It must be a function of
            ratios of the totals.
        n: the number of rows, for the record.
        units, label: the resampled unit, and the name of the method, for the record.
        strata: (G,) integers; resampling stays within a stratum.
    """
    _resampling.check_settings(confidence, n_resamples)
    label = label or ("BCa bootstrap" if units == "rows" else "cluster bootstrap")
    if not len(sums):
        return undefined("no scored rows", label)
    found = _resampling.limits(
        sums, statistic, strata=strata, confidence=confidence, n_resamples=n_resamples, seed=seed, expand=expand
    )
    return estimates(found, [n], label, len(sums), units)[0]


def estimates(found: Limits, n: Sequence[int], label: str, n_units: int, units: str) -> list[Estimate]:
    """Return one Estimate for each column of ``found``, with the reason for an undefined value or interval."""
    label = f"{label}, jackknife t" if found.method == "jackknife t" else label
    out = []
    for k, count in enumerate(n):
        value, low, high, missing = (float(a[k]) for a in (found.value, found.low, found.high, found.undefined))
        if np.isnan(value):
            out.append(undefined("undefined on these rows (division by zero)", label, count))
            continue
        reason = None
        bounds: tuple[float | None, float | None] = (low, high)
        if missing > 0.05:
            bounds, reason = (None, None), f"no interval: undefined in {missing:.0%} of the resamples"
        elif np.isnan(low) or np.isnan(high):
            bounds, reason = (None, None), f"no interval from {n_units} {units[:-1] if n_units == 1 else units}"
        elif high - low <= 1e-12 * max(1.0, abs(value)):
            bounds = (value, value)
            reason = f"the {units} show no variation: the interval has no width"
        out.append(Estimate(value, *bounds, count, label, reason))
    return out


def interval_for(
    values: Sequence[float | None] | ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    kind: Kind = "auto",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Return the mean of ``values`` (N,) with a suitable interval.

    ``auto``: with ``groups`` of more than one row a cluster bootstrap (Wilson over the groups if the rows are all 0 or
    all 1); else Wilson if every value is 0 or 1; else a BCa bootstrap. ``bounds`` is the range of the metric, to which
    the limits are clipped (:meth:`Estimate.within`). None entries are unscored and left out. Raises MetricError on NaN
    and on unequal lengths.
    """
    scored, kept = scored_rows(values)
    if kind == "auto":
        kind = "bootstrap"
        if groups is not None and (n_groups := group_codes(groups, kept)[1]) < len(scored):
            if len(scored) and scored[0] in (0.0, 1.0) and bool((scored == scored[0]).all()):
                return _constant_rows(float(scored[0]), len(scored), n_groups, confidence)
            kind = "cluster"
        elif bool(np.isin(scored, (0.0, 1.0)).all()):
            kind = "wilson"
    if kind == "wilson":
        if not np.isin(scored, (0.0, 1.0)).all():
            raise MetricError("a Wilson interval needs values of 0 and 1", "use kind='bootstrap'")
        return wilson(int(scored.sum()), len(scored), confidence)
    if kind == "cluster":
        if groups is None:
            raise MetricError("a cluster bootstrap needs groups")
        found = cluster_bootstrap(values, groups, confidence=confidence, n_resamples=n_resamples, seed=seed)
        return found.within(bounds)
    if kind != "bootstrap":
        raise MetricError(f"unknown interval '{kind}'{did_you_mean(kind, ('auto', 'wilson', 'bootstrap', 'cluster'))}")
    return bootstrap_mean(scored, confidence=confidence, n_resamples=n_resamples, seed=seed).within(bounds)


def _effective_n(units: NDArray[np.int64], cells: NDArray[np.int64]) -> int:
    """Return the number of independent units with the variance of the unweighted mean over cells, at most all units."""
    sizes = [len(np.unique(units[cells == cell])) for cell in np.unique(cells)]
    # 3 cells of 20 count as 60, not as the 59.999 of the rounded sum
    worth = int(len(sizes) ** 2 / sum(1 / size for size in sizes) + 1e-9)
    return max(1, min(len(np.unique(units)), worth))


def _constant_rows(value: float, n: int, n_groups: int, confidence: float) -> Estimate:
    """Return the estimate for rows that are all 0 or all 1: resampling shows no spread, yet they do not prove the
    share.

    It has the Wilson interval of as many independent rows as there are groups, since rows of a group may be copies of
    one another.
    """
    wide = wilson(int(value) * n_groups, n_groups, confidence)
    return Estimate(value, wide.low, wide.high, n, "Wilson over clusters", "all rows are equal")


def undefined(reason: str, method: str, n: int = 0) -> Estimate:
    """Return an estimate without a value."""
    return Estimate(None, None, None, n, method, reason)


def scored_rows(values: Sequence[float | None] | ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    """Return the values that are not None, and a mask of their rows (N,). Raises MetricError on NaN, infinity and
    text.
    """
    if isinstance(values, np.ndarray) and values.dtype != object:
        kept = np.ones(len(values), dtype=bool)
        scored = values.astype(np.float64)
    else:
        entries = list(values)  # type: ignore[arg-type]
        kept = np.array([entry is not None for entry in entries], dtype=bool)
        try:
            scored = np.array([entry for entry in entries if entry is not None], dtype=np.float64)
        except (TypeError, ValueError):
            raise MetricError("values hold something that is not a number") from None
    if scored.ndim != 1:
        raise MetricError(f"values have shape {scored.shape}, one number per row is needed")
    bad = np.flatnonzero(~np.isfinite(scored))
    if len(bad):
        row = int(np.flatnonzero(kept)[bad[0]])
        raise MetricError(f"values[{row}] is {scored[bad[0]]}", "an unscored row is None, never NaN")
    return scored, kept


def group_codes(groups: Sequence[Hashable], kept: NDArray[np.bool_]) -> tuple[NDArray[np.int64], int]:
    """Return integer codes from 0 of the kept rows' groups, and the number of groups."""
    if len(groups) != len(kept):
        raise MetricError(f"{len(kept)} values but {len(groups)} groups")
    seen: dict[Hashable, int] = {}
    codes = [seen.setdefault(group, len(seen)) for group, keep in zip(groups, kept, strict=True) if keep]
    return np.array(codes, dtype=np.int64), len(seen)


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


def _ratio(totals: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return totals[:, 0] / totals[:, 1]
