"""Paired tests of two runs over the same rows, and corrections for many tests."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import MetricError
from mrag_eval.metrics import _resampling
from mrag_eval.metrics._bounded import Bounds
from mrag_eval.metrics._intervals import Estimate, Kind, group_codes, interval_for, scored_rows
from mrag_eval.metrics._resampling import Array

Values = Sequence[float | bool | None]

_EXACT_FLIPS = 20


@dataclass(frozen=True)
class PairedTest:
    """A test that two runs over the same rows differ, two-sided unless its function says otherwise.

    ``difference`` is the plain mean of first - second. ``n`` counts the rows scored in both runs, ``n_differing`` those
    (or the clusters) where the runs differ. ``p_value`` is None if no test is possible; ``reason`` gives the cause.
    """

    p_value: float | None
    difference: float | None
    n: int
    n_differing: int
    method: str
    reason: str | None = None


def mcnemar_exact(first: Values, second: Values) -> PairedTest:
    """Run McNemar's exact test on two runs' 0/1 values, both (N,), paired by row (McNemar 1947; binomial form).

    Among the rows where the runs differ, equal numbers are expected in favour of either; p is the binomial probability
    of a split at least as uneven, two-sided, by scipy. Rows that agree are uninformative, so p = 1 without a differing
    row. Rows with None for either are left out. Raises MetricError on unequal lengths and values other than 0 and 1.
    """
    from scipy.stats import binomtest

    a, b, _ = paired_rows(first, second)
    if not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        raise MetricError("McNemar's test needs values of 0 and 1", "use paired_permutation for scores")
    if not len(a):
        return _no_test("McNemar exact")
    wins, losses = int((a > b).sum()), int((a < b).sum())
    # thousands of flips one way are beyond the smallest float, but not impossible
    p = max(float(binomtest(wins, wins + losses).pvalue), sys.float_info.min) if wins + losses else 1.0
    return PairedTest(p, float((a - b).mean()), len(a), wins + losses, "McNemar exact")


def paired_permutation(
    first: Values,
    second: Values,
    *,
    groups: Sequence[Hashable] | None = None,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> PairedTest:
    """Run a permutation test on the mean difference of two runs' values, both (N,), by flipping the runs within a row.

    Exact over all 2^k flips for k <= 20 rows that differ; else ``n_resamples`` random flips, p = (1 + hits) / (1 +
    resamples) (Phipson & Smyth 2010). With ``groups`` (N,), whole groups flip. Rows with None for either are left out.
    Raises MetricError on unequal lengths and NaN.
    """
    _resampling.check_settings(0.95, n_resamples)
    a, b, codes = paired_rows(first, second, groups)
    if not len(a):
        return _no_test("paired permutation")
    differences = a - b
    sums: Array = differences if codes is None else np.bincount(codes, weights=differences).astype(np.float64)
    sums = sums[np.abs(sums) > 1e-12 * max(1.0, float(np.abs(sums).max()))]
    observed = abs(float(sums.sum())) * (1 - 1e-12) - 1e-15
    if len(sums) <= _EXACT_FLIPS:
        totals = np.zeros(1)
        for value in sums:
            totals = np.concatenate([totals + value, totals - value])
        p, method = float((np.abs(totals) >= observed).mean()), "paired permutation, exact"
    else:
        hits = int((np.abs(_random_flips(sums, n_resamples, _resampling.generator(seed))) >= observed).sum())
        p, method = (1 + hits) / (1 + n_resamples), "paired permutation"
    return PairedTest(p, float(differences.mean()), len(a), len(sums), method)


def paired_cluster_bootstrap(
    first: Values,
    second: Values,
    groups: Sequence[Hashable],
    *,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> PairedTest:
    """Run a studentised bootstrap test on the mean difference of two runs, resampling groups (N,) of rows.

    The t statistic is the difference over its cluster-robust standard error. p is the share of resamples whose t,
    centred at the observed difference, is at least as far from 0, counted as (1 + hits) / (1 + resamples) (Cameron,
    Gelbach & Miller 2008). With fewer than ten clusters it is unreliable, and ``reason`` states it. Rows with None for
    either are left out. Raises MetricError on unequal lengths and NaN.
    """
    _resampling.check_settings(0.95, n_resamples)
    a, b, codes = paired_rows(first, second, groups)
    method = "paired cluster bootstrap"
    if not len(a) or codes is None:
        return _no_test(method)
    n_groups = int(codes.max()) + 1
    differences = a - b
    differing = int((np.abs(np.bincount(codes, weights=differences)) > 1e-12).sum())
    mean = float(differences.mean())
    if n_groups < 2:
        return PairedTest(None, mean, len(a), differing, method, "one cluster: nothing to compare with")
    found = studentised(differences, codes, n_resamples, seed)
    if found is None:
        # a t statistic would be infinite: the flips of whole clusters still give 2 of 2^G
        flipped = paired_permutation(first, second, groups=groups, n_resamples=n_resamples, seed=seed)
        reason = "every cluster differs by the same amount" if differing else None
        return PairedTest(flipped.p_value, mean, len(a), differing, f"{flipped.method}, by clusters", reason)
    observed, t = found
    hits = int((np.abs(t) >= abs(observed) * (1 - 1e-12)).sum())
    reason = f"only {n_groups} clusters" if n_groups < _resampling.FEW_UNITS else None
    return PairedTest((1 + hits) / (1 + n_resamples), mean, len(a), differing, method, reason)


def studentised(
    differences: Array, codes: NDArray[np.int64], n_resamples: int, seed: int | np.random.Generator
) -> tuple[float, Array] | None:
    """Return the t of the mean difference, and those (B,) of resampled groups around it; None if all groups are alike.

    The error is the cluster-robust one without its factor G / (G - 1), which is the same in every resample.
    """
    sums, sizes = np.bincount(codes, weights=differences), np.bincount(codes).astype(np.float64)
    moments = np.column_stack([sums, sizes, sums**2, sums * sizes, sizes**2])
    mean, error = (float(x[0]) for x in _mean_and_error(moments.sum(axis=0)[None]))
    if error < 1e-12:
        return None
    totals = _resampling.resampled_totals(moments, n_resamples, _resampling.generator(seed))
    means, errors = _mean_and_error(totals)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (means - mean) / errors
    # a resample of equal groups has no error: it is as extreme as can be, unless it equals the observed mean
    return mean / error, np.where(np.isnan(t), 0.0, t)


def paired_difference(
    first: Values,
    second: Values,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    bounds: Bounds | None = None,
) -> Estimate:
    """Return the mean of first - second over rows scored in both runs, with an interval over rows or ``groups``.

    Pairing removes the variation that the runs share (hard and easy questions) from the interval. ``bounds`` is the
    range of the differences, -1 to 1 for shares: with it, rows that all changed alike, or not at all, get the interval
    of so few rows (:func:`~mrag_eval.metrics.interval_for`), without it none. Rows with None for either are left out.
    Raises MetricError on unequal lengths and NaN.
    """
    a, b, codes = paired_rows(first, second, groups)
    kind: Kind = "bootstrap" if codes is None else "cluster"
    grouped = None if codes is None else codes.tolist()
    return interval_for(
        a - b, groups=grouped, kind=kind, confidence=confidence, n_resamples=n_resamples, seed=seed, bounds=bounds
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's step-down adjusted p-values (1979), in the given order: they bound the chance of any false finding.

    The i-th smallest of m is multiplied by m - i + 1, made monotone and capped at 1. None (not tested) remains None and
    does not count into m. Raises MetricError for a value outside 0..1.
    """
    tested, kept = _p_values(p_values)
    order = np.argsort(tested, kind="stable")
    stepped = np.maximum.accumulate(tested[order] * np.arange(len(tested), 0, -1))
    adjusted = np.empty(len(tested))
    adjusted[order] = np.minimum(stepped, 1.0)
    return _with_untested(adjusted, kept)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Benjamini-Hochberg adjusted p-values (1995), by scipy: they bound the expected share of false findings.

    None (not tested) remains None and does not count. Raises MetricError for a value outside 0..1.
    """
    from scipy.stats import false_discovery_control

    tested, kept = _p_values(p_values)
    return _with_untested(false_discovery_control(tested) if len(tested) else tested, kept)


def paired_rows(
    first: Values, second: Values, groups: Sequence[Hashable] | None = None
) -> tuple[Array, Array, NDArray[np.int64] | None]:
    """Return the values of the rows that both runs scored, and the codes of their groups, if there are any."""
    if len(first) != len(second):
        raise MetricError(f"{len(first)} values of one run but {len(second)} of the other", "pair the runs by row id")
    a, kept_a = scored_rows(first)
    b, kept_b = scored_rows(second)
    both = kept_a & kept_b
    codes = None if groups is None else group_codes(groups, both)[0]
    return a[both[kept_a]], b[both[kept_b]], codes


def _random_flips(sums: Array, n_resamples: int, rng: np.random.Generator) -> Array:
    """Return (B,) sums under random signs.

    Equal sizes flip together: the number that stays positive is binomial.
    """
    sizes, counts = np.unique(np.abs(sums), return_counts=True)
    if len(sizes) <= len(sums) // 3:
        positive = rng.binomial(counts, 0.5, size=(n_resamples, len(sizes)))
        return np.asarray((2 * positive - counts) @ sizes)
    totals = np.empty(n_resamples)
    chunk = max(1, 2_000_000 // len(sums))
    for start in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - start)
        bits = np.unpackbits(
            rng.integers(0, 256, size=(size, -(-len(sums) // 8)), dtype=np.uint8), axis=1, count=len(sums)
        )
        totals[start : start + size] = 2 * (bits @ sums) - sums.sum()
    return totals


def _mean_and_error(moments: Array) -> tuple[Array, Array]:
    """Return means and standard errors from (B, 5) totals of S, N, S^2, S N, N^2 over groups."""
    s, n, ss, sn, nn = moments.T
    mean = s / n
    return mean, np.sqrt(np.maximum(ss - 2 * mean * sn + mean**2 * nn, 0.0)) / n


def _p_values(p_values: Sequence[float | None]) -> tuple[Array, Any]:
    tested, kept = scored_rows(p_values)
    if ((tested < 0) | (tested > 1)).any():
        raise MetricError("a p-value is outside 0..1")
    return tested, kept


def _with_untested(adjusted: Array, kept: Any) -> list[float | None]:
    values = iter(adjusted.tolist())
    return [next(values) if keep else None for keep in kept]


def _no_test(method: str) -> PairedTest:
    return PairedTest(None, None, 0, 0, method, "no row is scored in both runs")
