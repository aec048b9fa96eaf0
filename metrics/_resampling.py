"""Bootstrap kernel: resampled totals of per-unit sums, and BCa or t limits from them.

Every statistic of this package with a bootstrap interval is a function of column totals over units (a unit is a row, or
a cluster of rows): a mean is total value / total count, a macro mean averages such ratios over cells. One resample is
then a vector of unit weights, and all resamples together are one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.platform import MetricError

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]  # (B, m) totals -> (B,) or (B, K) values, NaN if undefined

# with fewer units the bootstrap distribution is too coarse for BCa: see benchmarks/coverage.py
FEW_UNITS = 10
# Multiplications of one matrix product. OpenBLAS shares more among threads, which take longer to wait for each other
# than to multiply; and the resampled indices fit in the processor's cache.
_PRODUCT = 250_000
_BLOCKS = 5_000
# with this many distinct units or more, drawing each is cheaper than drawing their counts
_MANY_DISTINCT = 250


class Limits(NamedTuple):
    """Arrays of shape (K,): the plain statistic, its limits, and the share of resamples where it was undefined."""

    value: Array
    low: Array
    high: Array
    undefined: Array
    method: str


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return the generator itself, or a new one from an integer seed."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)


def check_settings(confidence: float, n_resamples: int) -> None:
    """Raise MetricError for a confidence outside (0, 1) or fewer than 100 resamples."""
    if not 0 < confidence < 1:
        raise MetricError(f"confidence {confidence} is not between 0 and 1", "write 0.95 for 95 %")
    if n_resamples < 100:
        raise MetricError(f"{n_resamples} resamples are too few for an interval", "use 1000 or more")


def per_unit_sums(columns: Array, groups: NDArray[np.int64], n_groups: int) -> Array:
    """Return column sums (n_groups, m) of rows (n, m) by integer group code."""
    n_columns = columns.shape[1]
    # row after row, as a loop would add them: another order could tell equal units apart
    cells = groups[:, None] * n_columns + np.arange(n_columns)
    sums = np.bincount(cells.ravel(), weights=columns.ravel(), minlength=n_groups * n_columns)
    return np.asarray(sums, dtype=np.float64).reshape(n_groups, n_columns)


def limits(
    sums: Array,
    statistic: Statistic,
    *,
    strata: NDArray[np.int64] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    expand: bool = True,
) -> Limits:
    """Return limits of a statistic of column totals, resampling units with replacement (within each stratum).

    10 units or more: BCa (Efron 1987), the acceleration from the leave-one-out values. ``expand`` widens the nominal
    quantile from z to sqrt(G / (G - 1)) t(df), which corrects the narrowness of the bootstrap for few or skewed units
    (Hesterberg 2015, section 4.3); df is Satterthwaite's for the variance of the influence values, min(G - 1, 2 G /
    (kurtosis - 1)) without strata. Fewer units: the statistic +- t(df) jackknife standard errors.

    Args:
        sums: (G, m) column sums of each unit.
        statistic: maps totals (B, m) to (B,) or (B, K); NaN if undefined. Must not depend on the scale of the totals (a
            ratio, not a sum): very many units are resampled in blocks.
        strata: (G,) integer stratum of each unit; resampling keeps the number of units in each.
    """
    from scipy import special

    value = _matrix(statistic(sums.sum(axis=0, keepdims=True)))[0]
    parts = [sums] if strata is None else [sums[strata == s] for s in np.unique(strata)]
    rng = generator(seed)
    parts = [_blocks(part, rng) if len(part) > 2 * _BLOCKS and _distinct(part) is None else part for part in parts]
    freedom = sum(len(part) - 1 for part in parts)
    if freedom < 1:
        return Limits(value, np.full_like(value, np.nan), np.full_like(value, np.nan), np.zeros_like(value), "none")
    influence = _jackknife(parts, np.asarray(sum(part.sum(axis=0) for part in parts)), statistic)
    spread = _Spread.of(influence)
    quantile = (1 - confidence) / 2
    t = special.stdtrit(spread.freedom, quantile)
    if freedom + len(parts) < FEW_UNITS:
        margin = -t * np.sqrt(spread.variance)
        return Limits(value, value - margin, value + margin, np.zeros_like(value), "jackknife t")
    totals = np.asarray(sum(resampled_totals(part, n_resamples, rng) for part in parts))
    replicates = _matrix(statistic(totals))
    z = np.sqrt(spread.inflation) * t if expand else np.full_like(value, special.ndtri(quantile))
    low, high = _bca(value, replicates, spread.acceleration, z)
    return Limits(value, low, high, np.isnan(replicates).mean(axis=0), "BCa bootstrap")


def resampled_totals(sums: Array, n_resamples: int, rng: np.random.Generator) -> Array:
    """Return (B, m) column totals of B resamples of the G rows of ``sums``; memory is bounded by chunking."""
    n_units = len(sums)
    used = np.flatnonzero(sums.any(axis=0))
    if len(used) < sums.shape[1]:
        # a stratum has values in few of the columns
        totals = np.zeros((n_resamples, sums.shape[1]))
        totals[:, used] = resampled_totals(sums[:, used], n_resamples, rng) if len(used) else 0.0
        return totals
    found = _distinct(sums)
    # equal units are exchangeable: the number of draws of each distinct one is multinomial, and far cheaper
    units, counts = (sums, None) if found is None else found
    # a statistic reads column by column
    totals = np.empty((n_resamples, sums.shape[1]), order="F")
    chunk = max(4, _PRODUCT // units.size)
    for start in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - start)
        drawn = (
            times_drawn(size, n_units, rng) if counts is None else rng.multinomial(n_units, counts / n_units, size=size)
        )
        totals[start : start + size] = drawn.astype(np.float64) @ units
    return totals


def times_drawn(size: int, n_units: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return how often each unit is drawn in each of ``size`` resamples of all units, (size, n_units)."""
    drawn = rng.integers(0, n_units, size=(size, n_units))
    drawn += np.arange(size)[:, None] * n_units
    return np.bincount(drawn.ravel(), minlength=size * n_units).reshape(size, n_units)


def _distinct(sums: Array) -> tuple[Array, NDArray[np.int64]] | None:
    """Return the distinct units and their counts, or None if they are too many to save time."""
    # a random projection separates units in one column, which sorts many times faster than rows do
    keys = sums @ np.random.default_rng(0).random(sums.shape[1])
    enough = min(_MANY_DISTINCT, len(sums) // 3)
    if len(np.unique(keys[:2000])) > enough:
        return None
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return (sums[first], counts) if len(first) <= enough else None


def _blocks(sums: Array, rng: np.random.Generator) -> Array:
    """Return the units summed in random blocks of near-equal size: the same variance at a bounded cost."""
    order = rng.permutation(len(sums))
    starts = np.linspace(0, len(sums), _BLOCKS, endpoint=False).astype(np.int64)
    return np.asarray(np.add.reduceat(sums[order], starts, axis=0))


def _jackknife(parts: list[Array], total: Array, statistic: Statistic) -> list[Array]:
    """Return, per stratum, the influence of each unit, (G_s, K): (G_s - 1) (mean of the leave-one-out values - its
    own).
    """
    influence = []
    for part in parts:
        left_out = _matrix(statistic(total - part))
        influence.append((len(part) - 1) * (left_out.mean(axis=0) - left_out))
    return influence


class _Spread(NamedTuple):
    """Moments of the influence values, each (K,)."""

    variance: Array
    inflation: Array  # jackknife variance over the bootstrap's
    freedom: Array
    acceleration: Array

    @classmethod
    def of(cls, influence: list[Array]) -> _Spread:
        shape = influence[0].shape[1]
        # fourth powers of small numbers underflow, so everything is computed in units of the largest influence
        scale = np.max([np.abs(u).max(axis=0) for u in influence], axis=0)
        unit = np.where(scale > 0, scale, 1.0)
        plain, unbiased, uncertainty, cubes = (np.zeros(shape) for _ in range(4))
        with np.errstate(divide="ignore", invalid="ignore"):
            for u in (part / unit for part in influence if len(part) > 1):
                size = len(u)
                # not u**4: a general power takes twenty times as long
                square = u * u
                second = square.mean(axis=0)
                kurtosis = np.where(second > 0, (square * square).mean(axis=0) / second**2, 1.0)
                plain += second / size
                unbiased += second / (size - 1)
                uncertainty += (second / size) ** 2 * np.maximum((kurtosis - 1) / size, 2 / (size - 1))
                cubes += (square * u).mean(axis=0) / size**2
            # undefined without one of the units, so there are no limits
            spread = (plain > 0) | np.isnan(plain)
            return cls(
                variance=unbiased * scale**2,
                inflation=np.where(spread, unbiased / plain, 1.0),
                freedom=np.where(spread, np.maximum(1.0, 2 * plain**2 / uncertainty), 1.0),
                acceleration=np.where(spread, cubes / (6 * plain**1.5), 0.0),
            )


def _bca(value: Array, replicates: Array, acceleration: Array, z: Array) -> tuple[Array, Array]:
    from scipy import special

    low, high = np.full_like(value, np.nan), np.full_like(value, np.nan)
    # undefined resamples sort to the end of their column
    columns = np.array(replicates.T, order="C")
    columns.sort(axis=1)
    counts = np.array([column.searchsorted(np.nan) for column in columns], dtype=np.int64)
    known = np.flatnonzero(np.isfinite(value) & np.isfinite(z) & (counts > 0))
    if not len(known):
        return low, high
    value, acceleration, z, columns = (a[known] for a in (value, acceleration, z, columns))
    counts = counts[known]
    # rounding of the matrix product must not decide between "below" and "equal"
    nearness = 1e-12 * np.maximum(1.0, np.abs(value))
    bounds = zip(columns, value - nearness, value + nearness, strict=True)
    below, within = np.array([column.searchsorted(ends) for column, *ends in bounds]).T / counts
    bias = special.ndtri(np.clip((below + within) / 2, 1 / (2 * counts), 1 - 1 / (2 * counts)))
    for limit, quantile in ((low, z), (high, -z)):
        shifted = bias + quantile
        # beyond the pole of the formula the quantile is the outermost one
        tilt = np.maximum(1 - acceleration * shifted, 1e-6)
        limit[known] = _quantiles(columns, counts, special.ndtr(bias + shifted / tilt))
    return low, high


def _quantiles(columns: Array, counts: NDArray[np.int64], levels: Array) -> Array:
    """Return quantile ``levels[k]`` of the first ``counts[k]`` values of ascending row k, interpolated as numpy
    does.
    """
    position = levels * (counts - 1)
    at = np.floor(position).astype(np.int64)
    rows = np.arange(len(columns))
    first, second = columns[rows, at], columns[rows, np.minimum(at + 1, counts - 1)]
    share, step = position - at, second - first
    return np.where(share < 0.5, first + step * share, second - step * (1 - share))


def _matrix(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values
