"""Rank ranges of several runs over the same rows: runs that a paired test does not separate share ranks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._family import holm
from mrag_eval.metrics._intervals import group_codes
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError

# Number of sign flips drawn at once: memory stays at some tens of megabytes.
_AT_ONCE = 500


@dataclass(frozen=True)
class PairedRanks:
    """Rank ranges of S runs: ``best`` and ``worst`` rank of each (S,), from 1, and the adjusted p-values of pairs (S,
    S).

    A p-value is None if two runs share no scored row, and on the diagonal.
    """

    best: tuple[int, ...]
    worst: tuple[int, ...]
    p_values: tuple[tuple[float | None, ...], ...]


def paired_ranks(
    values: Sequence[Sequence[float | None]] | ArrayLike,
    cells: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    alpha: float = 0.05,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> PairedRanks:
    """Return rank ranges of S runs by their macro means over ``cells`` (N,); ``values`` is (S, N), None or NaN:
    unscored.

    Every pair is tested by a permutation test: the two runs are swapped within a row (with ``groups`` (N,) within a
    group) at random, the statistic is the difference of macro means over the rows that both scored, and p = (1 + hits)
    / (1 + resamples) (Phipson & Smyth 2010). The p-values of all pairs are corrected by Holm. A run's best rank is 1 +
    the number of runs that are significantly better, its worst S - the number that are significantly worse. Raises
    MetricError on unequal lengths.
    """
    _resampling.check_settings(1 - alpha, n_resamples)
    table = np.array([[np.nan if v is None else v for v in run] for run in values], dtype=np.float64)  # type: ignore[union-attr]
    runs = len(table)
    if table.ndim != 2 or table.shape[1] != len(cells):
        raise MetricError(f"values of shape {table.shape} but {len(cells)} cells")
    pairs = list(combinations(range(runs), 2))
    everything = np.ones(len(cells), dtype=bool)
    strata = group_codes(cells, everything)[0]
    units, n_units = group_codes(groups if groups is not None else list(range(len(cells))), everything)
    sums = np.zeros((n_units, len(pairs)))
    tested = []
    for column, (a, b) in enumerate(pairs):
        change = table[a] - table[b]
        both = ~np.isnan(change)
        tested.append(bool(both.any()))
        if tested[-1]:
            counts = np.bincount(strata[both], minlength=int(strata.max()) + 1)
            weights = 1.0 / (counts[strata[both]] * (counts > 0).sum())
            sums[:, column] = np.bincount(units[both], weights=change[both] * weights, minlength=n_units)
    # a correction for many pairs requires p-values smaller than alpha over their number
    draws = max(n_resamples, int(2 * len(pairs) / alpha))
    found = _p_values(sums, draws, _resampling.generator(seed))
    adjusted = holm([p if test else None for p, test in zip(found, tested, strict=True)])
    better = np.zeros((runs, runs), dtype=bool)
    matrix: list[list[float | None]] = [[None] * runs for _ in range(runs)]
    for (a, b), p, total in zip(pairs, adjusted, sums.sum(axis=0), strict=True):
        matrix[a][b] = matrix[b][a] = p
        if p is not None and p < alpha:
            better[(a, b) if total > 0 else (b, a)] = True
    return PairedRanks(
        tuple(int(1 + n) for n in better.sum(axis=0)),
        tuple(int(runs - n) for n in better.sum(axis=1)),
        tuple(tuple(row) for row in matrix),
    )


def _p_values(sums: Array, n_resamples: int, rng: np.random.Generator) -> list[float]:
    """Return the two-sided p of each column's total when the rows' signs are flipped at random."""
    observed = np.abs(sums.sum(axis=0)) * (1 - 1e-9) - 1e-12
    hits = np.zeros(sums.shape[1], dtype=np.int64)
    sums = sums[np.abs(sums).sum(axis=1) > 0]
    done = 0
    while done < n_resamples:
        size = min(_AT_ONCE, n_resamples - done)
        signs = rng.integers(0, 2, size=(size, len(sums)), dtype=np.int8) * 2.0 - 1.0
        hits += (np.abs(signs @ sums) >= observed).sum(axis=0)
        done += size
    return [float(p) for p in (1 + hits) / (1 + n_resamples)]
