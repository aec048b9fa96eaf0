"""A studentised bootstrap of many means at once: the units are resampled together for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics._resampling import Array, times_drawn

Codes = NDArray[np.int64]

# With more units, random blocks of them are resampled: the same variance at a bounded cost.
_BLOCKS = 5_000
# Entries of one matrix of weights.
_WEIGHTS = 4_000_000
# Resamples beyond a deviate that its p-value is counted from; with fewer it is extrapolated.
_TAIL = 10
_LEAST = 1e-300
_NORMAL = NormalDist()


@dataclass(frozen=True)
class JointBootstrap:
    """The means of K cells with their errors (K,), and the t of B resamples around them, (B, K).

    ``freedom`` is the number of units of each less 1. All t are on the scale of a normal deviate, by Wallace's
    approximation (1959) of the t distribution with these degrees of freedom. So a cell of few units, whose t spread
    wide, does not alone decide on the largest of all.
    """

    mean: Array
    error: Array
    freedom: Array
    resampled: Array

    @classmethod
    def of(
        cls, cells: Sequence[tuple[Codes, Array]], n_units: int, n_resamples: int, rng: np.random.Generator
    ) -> JointBootstrap:
        """Resample units, of which each cell has the codes and the values of its rows."""
        if n_units > 2 * _BLOCKS:
            block = rng.permutation(n_units) % _BLOCKS
            cells, n_units = [(block[codes], values) for codes, values in cells], _BLOCKS
        sums = np.stack([np.bincount(codes, values, n_units) for codes, values in cells], axis=1)
        sizes = np.stack([np.bincount(codes, minlength=n_units) for codes, _ in cells], axis=1).astype(np.float64)
        # of single rows, S N is S and N squared is N
        single = bool((sizes <= 1).all())
        parts = [sums, sizes, sums**2] if single else [sums, sizes, sums**2, sums * sizes, sizes**2]
        moments = np.concatenate(parts, axis=1)
        mean, error = _mean_and_error(moments.sum(axis=0)[None], len(cells))
        freedom = (sizes > 0).sum(axis=0) - 1.0
        resampled = np.empty((n_resamples, len(cells)))
        chunk = max(4, _WEIGHTS // max(n_units, moments.shape[1]))
        for start in range(0, n_resamples, chunk):
            weights = times_drawn(min(chunk, n_resamples - start), n_units, rng).astype(np.float64)
            means, errors = _mean_and_error(weights @ moments, len(cells))
            with np.errstate(divide="ignore", invalid="ignore"):
                t = (means - mean) / errors
            # a resample of equal units has no error: it is as extreme as can be, unless it equals the mean seen
            resampled[start : start + chunk] = _normal(np.where(np.isnan(t), 0.0, t), freedom)
        return cls(mean[0], error[0], freedom, resampled)

    def deviate(self, cell: int, margin: float) -> float:
        """Return how far the mean of a cell is above a margin, as a normal deviate."""
        t = (self.mean[cell] - margin) / self.error[cell]
        return float(_normal(np.array([t]), self.freedom[[cell]])[0])

    def bound(self, cell: int, deviate: float) -> float:
        """Return the margin that the mean of a cell is ``deviate`` above."""
        freedom = float(self.freedom[cell])
        scaled = deviate * (8 * freedom + 3) / (8 * freedom + 1)
        t = math.copysign(math.sqrt(freedom * math.expm1(min(scaled**2 / freedom, 700.0))), deviate)
        return float(self.mean[cell] - t * self.error[cell])


def _normal(t: Array, freedom: Array) -> Array:
    """Return Student's t as normal deviates: sqrt(df log(1 + t^2 / df)) (8 df + 1) / (8 df + 3) (Wallace 1959)."""
    z = np.sqrt(freedom * np.log1p(t * t / freedom)) * ((8 * freedom + 1) / (8 * freedom + 3))
    return np.asarray(np.copysign(z, t))


def _mean_and_error(totals: Array, cells: int) -> tuple[Array, Array]:
    """Return means and cluster-robust errors (B, K) from totals of S, N, S^2 and, unless rows are single, S N, N^2."""
    s, n, ss, *rest = (totals[:, i : i + cells] for i in range(0, totals.shape[1], cells))
    sn, nn = rest or (s, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = s / n
        return mean, np.sqrt(np.maximum(ss - 2 * mean * sn + mean**2 * nn, 0.0)) / n


def critical(largest: Array, size: Array, level: float) -> float:
    """Return the deviate that a cell has to pass at ``level``, from those of its resamples (B,).

    The larger of two: that passed by a share ``level`` of the deviates, which holds under skew, and that passed in
    either direction by twice this share (``size``, (B,)), which holds under heavy tails. Where that share is fewer than
    :data:`_TAIL` resamples, the deviate is that of a normal distribution with the scale of the last that are.
    """
    tail = _TAIL / (1 + len(largest))
    if level >= tail:
        return _passed(largest, size, level)
    end = _passed(largest, size, tail)
    return end * _NORMAL.inv_cdf(max(level, _LEAST)) / _NORMAL.inv_cdf(tail) if end > 0 else end


def _passed(largest: Array, size: Array, level: float) -> float:
    hits = int(level * (1 + len(largest)) * (1 + 1e-12)) - 1
    found = []
    for values, allowed in ((largest, hits), (size, 2 * hits)):
        at = len(values) - 1 - min(allowed, len(values) - 1)
        found.append(float(np.partition(values, at)[at]))
    return max(found)


def exceedance(deviate: float, largest: Array, size: Array) -> float:
    """Return the p-value of a deviate: the smallest level at which it is above :func:`critical`."""
    tail = _TAIL / (1 + len(largest))
    if deviate > (end := _passed(largest, size, tail)) > 0:
        return max(_NORMAL.cdf(deviate * _NORMAL.inv_cdf(tail) / end), _LEAST)
    hits = float((largest >= deviate).sum())
    hits = max(hits, math.ceil(float((size >= deviate).sum()) / 2))
    return min(1.0, (1 + hits) / (1 + len(largest)))
