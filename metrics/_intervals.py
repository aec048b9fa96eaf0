"""Intervals for every kind of score: Wilson, bootstrap, jackknife over groups."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._clusters import Bounds, Means, cluster_limits
from mrag_eval.metrics._resampling import Array, Limits, Statistic
from mrag_eval.platform import OPTIONAL, MetricError, did_you_mean

T = TypeVar("T")
Kind = Literal["auto", "wilson", "bootstrap", "cluster"]
# with fewer units a bootstrap is too narrow for skewed scores: see benchmarks/coverage.py
_SMALL = 20
_JACKKNIFE = "jackknife over groups"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval.

    ``value`` is the plain statistic, never a resampled one; it is None if undefined, and ``reason`` gives the cause.
    ``low`` and ``high`` are None if there is no interval. ``n`` counts the scored rows, ``method`` names the interval.
    A ``reason`` with a value describes a peculiarity of the interval. If rows were resampled in groups, ``groups``
    counts them, and ``design_effect`` is the variance of the mean over that of independent rows (Kish 1965): the rows
    are worth ``n / design_effect`` independent ones.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    method: str = ""
    reason: str | None = field(default=None, metadata=OPTIONAL)
    groups: int | None = field(default=None, metadata=OPTIONAL)
    design_effect: float | None = field(default=None, metadata=OPTIONAL)

    def or_else(self, missing: T) -> float | T:
        """Return the value, or what a missing one becomes."""
        return missing if self.value is None else self.value

    def within(self, bounds: tuple[float, float] | None) -> Estimate:
        """Return the estimate with its limits clipped to the range ``bounds`` of the statistic; None: unchanged.

        A t interval from few units may exceed the range of a share; clipping does not change its coverage.
        """
        if bounds is None or self.low is None or self.high is None or bounds[0] <= self.low <= self.high <= bounds[1]:
            return self
        return replace(self, low=max(self.low, bounds[0]), high=min(self.high, bounds[1]))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form; ``reason``, ``groups`` and ``design_effect`` only if there are any."""
        # a run has thousands of these, and dataclasses.asdict copies every value
        entry = {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "method": self.method}
        rest = {"reason": self.reason, "groups": self.groups, "design_effect": self.design_effect}
        return entry | {name: value for name, value in rest.items() if value is not None}


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
    bounds: Bounds | None = None,
) -> Estimate:
    """Return the mean of ``values`` (N,) with a BCa bootstrap interval (Efron 1987), vectorised and seeded.

    ``expand`` widens the quantiles for few or skewed rows (Hesterberg 2015, section 4.3); without it the interval is
    that of scipy.stats.bootstrap. Fewer than 10 rows get a t interval. None entries are unscored and left out; ``n``
    counts the rest. ``bounds`` as in :func:`interval_for`; without it, equal values have no interval, and ``reason``
    states it. Raises MetricError on NaN.
    """
    scored, _ = scored_rows(values)
    sums = np.stack([scored, np.ones_like(scored)], axis=1)
    found = bootstrap_statistic(
        sums, _ratio, n=len(scored), confidence=confidence, n_resamples=n_resamples, seed=seed, expand=expand
    )
    return _kept_in_range(found, sums, bounds, confidence)


def cluster_interval(
    values: Sequence[float | None] | ArrayLike,
    groups: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    bounds: Bounds | None = None,
) -> Estimate:
    """Return the mean of ``values`` (N,) with an interval over whole ``groups`` (N,), not rows.

    For rows that are not independent: territories, questions asked in several languages. The value is the plain mean of
    the rows. The variance is a jackknife over groups, and the critical value allows for their number, their sizes and
    how few of them the spread comes from (:mod:`mrag_eval.metrics._clusters`). Equal values, and ``bounds``, as in
    :func:`interval_for`. One group: no interval. None entries are unscored and left out. Raises MetricError on NaN and
    on unequal lengths.
    """
    _resampling.check_settings(confidence, 1000)
    scored, kept = scored_rows(values)
    codes, n_groups = group_codes(groups, kept)
    if not len(scored):
        return undefined("no scored rows", _JACKKNIFE)
    rows = np.stack([scored, np.ones_like(scored)], axis=1)
    sums = _resampling.per_unit_sums(rows, codes, n_groups)
    parts, kept_range = Means.of(sums), bounds is not None and bool(np.isfinite(bounds).all())
    plain = Estimate(
        float(parts.mean[0]), n=len(scored), method=_JACKKNIFE, groups=n_groups, design_effect=design_effect(rows, sums)
    )
    if n_groups < 2:
        return replace(plain, reason="no interval from 1 cluster")
    if parts.variance[0] <= (1e-12 * max(1.0, abs(parts.mean[0]))) ** 2:
        found = replace(plain, reason="no interval: the clusters show no variation")
        return _of_equal(found, parts, bounds, confidence, "clusters") if bounds and kept_range else found
    low, high = cluster_limits(parts, bounds, confidence)
    method = f"{_JACKKNIFE}, {'Wilson' if kept_range else 't'}"
    return replace(plain, low=low, high=high, method=method).within(bounds)


def design_effect(rows: Array, sums: Array) -> float | None:
    """Return the variance of a mean over groups, divided by that over independent rows (Kish 1965).

    ``rows`` (N, 2) and ``sums`` (G, 2) hold values and counts. Both variances are unbiased for equal groups. None if
    the rows are all equal, or there is a single group.
    """
    if len(sums) < 2:
        return None
    by_row, by_group = (float(Means.of(part).variance[0]) * len(part) / (len(part) - 1) for part in (rows, sums))
    return by_group / by_row if by_row > 0 else None


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
    columns = zip(n, *(a.tolist() for a in found[:4]), strict=True)
    for count, value, low, high, missing in columns:
        if math.isnan(value):
            out.append(undefined("undefined on these rows (division by zero)", label, count))
            continue
        reason = None
        bounds: tuple[float | None, float | None] = (low, high)
        if missing > 0.05:
            bounds, reason = (None, None), f"no interval: undefined in {missing:.0%} of the resamples"
        elif math.isnan(low) or math.isnan(high):
            bounds, reason = (None, None), f"no interval from {n_units} {units[:-1] if n_units == 1 else units}"
        elif high - low <= 1e-12 * max(1.0, abs(value)):
            bounds, reason = (None, None), f"no interval: the {units} show no variation"
        out.append(Estimate(value, *bounds, count, label, reason))
    return out


def few_units(found: Estimate, units: int, name: str = "territories") -> Estimate:
    """Return the estimate without an interval, with the reason, if fewer than ten units were resampled.

    For statistics that are no means: t limits from so few units leave their range, and BCa limits are too narrow.
    """
    if units >= _resampling.FEW_UNITS or found.value is None or found.low is None:
        return found
    return replace(found, low=None, high=None, reason=f"no interval from {units} {name}, ten are needed")


def interval_for(
    values: Sequence[float | None] | ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    kind: Kind = "auto",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    bounds: Bounds | None = None,
) -> Estimate:
    """Return the mean of ``values`` (N,) with a suitable interval.

    ``auto``: with ``groups`` of more than one row a jackknife over groups (:func:`cluster_interval`); else Wilson for a
    share, whose values are all 0 or 1; else a BCa bootstrap. ``bounds`` is the range of the metric (0 to 1 for values
    of 0 and 1), which the limits keep: equal values get Wilson's interval over rows or groups
    (:mod:`mrag_eval.metrics._clusters`), fewer than 20 rows the wider of the two at each end, and all are clipped
    (:meth:`Estimate.within`). Equal values have no interval without it, and if it has an end at infinity. None entries
    are unscored and left out. Raises MetricError on NaN and on unequal lengths.
    """
    scored, kept = scored_rows(values)
    if kind == "auto":
        kind = "bootstrap"
        if groups is not None and group_codes(groups, kept)[1] < len(scored):
            kind = "cluster"
        elif bounds in (None, (0.0, 1.0)) and bool(np.isin(scored, (0.0, 1.0)).all()):
            kind = "wilson"
        if bounds is None and len(scored) and bool(np.isin(scored, (0.0, 1.0)).all()):
            bounds = (0.0, 1.0)
    if kind == "wilson":
        if not np.isin(scored, (0.0, 1.0)).all():
            raise MetricError("a Wilson interval needs values of 0 and 1", "use kind='bootstrap'")
        return wilson(int(scored.sum()), len(scored), confidence)
    if kind == "cluster":
        if groups is None:
            raise MetricError("an interval over groups needs groups")
        return cluster_interval(values, groups, confidence=confidence, bounds=bounds)
    if kind != "bootstrap":
        raise MetricError(f"unknown interval '{kind}'{did_you_mean(kind, ('auto', 'wilson', 'bootstrap', 'cluster'))}")
    return bootstrap_mean(scored, confidence=confidence, n_resamples=n_resamples, seed=seed, bounds=bounds)


def _kept_in_range(found: Estimate, sums: Array, bounds: Bounds | None, confidence: float) -> Estimate:
    """Return the estimate of a mean over rows with limits within ``bounds``; see :func:`interval_for`."""
    if bounds is None or found.value is None or len(sums) < 2 or not np.isfinite(bounds).all():
        return found.within(bounds)
    parts = Means.of(sums)
    if parts.variance[0] == 0:
        return _of_equal(found, parts, bounds, confidence, "rows")
    if len(sums) >= _SMALL:
        return found.within(bounds)
    low, high = (float(ends[0]) for ends in parts.limits(bounds, confidence))
    ends = [low if found.low is None else min(low, found.low), high if found.high is None else max(high, found.high)]
    return replace(found, low=ends[0], high=ends[1], method=f"{found.method} and Wilson").within(bounds)


def _of_equal(found: Estimate, parts: Means, bounds: Bounds, confidence: float, units: str) -> Estimate:
    """Return the mean of equal ``units`` with Wilson's interval for their number."""
    low, high = (float(ends[0]) for ends in parts.limits(bounds, confidence))
    method = "Wilson" if units == "rows" else "Wilson over clusters"
    method += "" if bounds == (0.0, 1.0) else f", range {bounds[0]:g} to {bounds[1]:g}"
    return replace(found, low=low, high=high, method=method, reason=f"all {units} are equal")


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


def _ratio(totals: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return totals[:, 0] / totals[:, 1]
