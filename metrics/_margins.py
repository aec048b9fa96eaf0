"""One-sided paired tests against a margin: is the difference of two runs larger than that?"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics._resampling import FEW_UNITS, Array
from mrag_eval.metrics._significance import PairedTest, Values, paired_permutation, paired_rows, studentised

Codes = NDArray[np.int64]


def paired_margin(
    first: Values,
    second: Values,
    margin: float = 0.0,
    *,
    groups: Sequence[Hashable] | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Run a one-sided test that the mean of first - second, both (N,) and paired by row, is above ``margin``.

    Before - after with the largest allowed drop as margin shows a drop that is larger. After - before with the negative
    of that drop shows that the drop is smaller (non-inferiority).

    - Values of 0 and 1: McNemar's exact test, one-sided; with a margin, the score test of Tango (1998).
    - Other values without a margin: the permutation test.
    - Groups (N,), or other values with a margin: the studentised bootstrap of groups or rows (Cameron, Gelbach & Miller
      2008). With fewer than ten of these, or if all differ by the same amount: the permutation test of first - second -
      margin by whole groups.

    p is never 0, and None with fewer than two groups or rows. Rows with None for either are left out. Raises
    MetricError on NaN.
    """
    a, b, codes = paired_rows(first, second, groups)
    units = len(a) if codes is None else len(np.unique(codes))
    difference = float((a - b).mean()) if len(a) else None
    if units < 2:
        return PairedTest(None, difference, len(a), 0, "none", "fewer than two independent rows")
    if codes is None and np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        p, method = _of_shares(int((a > b).sum()), int((a < b).sum()), len(a), margin)
    elif codes is None and margin == 0:
        p, method = _permuted(a - b, None, n_resamples, seed)
    else:
        p, method = _studentised(a - b - margin, np.arange(len(a)) if codes is None else codes, n_resamples, seed)
    return PairedTest(max(p, sys.float_info.min), difference, len(a), int((a != b).sum()), method)


def _of_shares(gained: int, lost: int, n: int, margin: float) -> tuple[float, str]:
    """Return p that (gained - lost) / n is above the margin, for rows of 0 and 1.

    With a margin d: z = (b - c - n d) / sqrt(n (2 q + d (1 - d))), where b rows gained, c lost, and q is the most
    likely share of losses if the difference is d: the larger root of 2 n q^2 + ((2 n - b + c) d - b - c) q = c d (1 -
    d) (Tango 1998, Statistics in Medicine 17, 891-908).
    """
    from scipy.stats import binomtest, norm

    if margin == 0:
        p = float(binomtest(gained, gained + lost, alternative="greater").pvalue) if gained + lost else 1.0
        return p, "McNemar exact, one-sided"
    if abs(margin) >= 1:
        return float(margin > 0), "no share differs by more than 1"
    linear = (2 * n - gained + lost) * margin - gained - lost
    root = math.sqrt(linear**2 + 8 * n * lost * margin * (1 - margin))
    losses = (root - linear) / (4 * n)
    error = math.sqrt(n * (2 * losses + margin * (1 - margin)))
    return float(norm.sf((gained - lost - n * margin) / error)), "Tango's score test"


def _permuted(differences: Array, codes: Codes | None, n_resamples: int, seed: int) -> tuple[float, str]:
    """Return p that the mean difference is above 0: half the two-sided p of flipped signs on that side."""
    groups = None if codes is None else codes.tolist()
    zeros = [0.0] * len(differences)
    found = paired_permutation(differences.tolist(), zeros, groups=groups, n_resamples=n_resamples, seed=seed)
    two_sided = 1.0 if found.p_value is None else found.p_value
    above = float(differences.mean())
    p = two_sided / 2 if above > 0 else 1 - two_sided / 2 if above < 0 else 1.0
    return p, f"{found.method}, one-sided"


def _studentised(differences: Array, codes: Codes, n_resamples: int, seed: int) -> tuple[float, str]:
    """Return p that the mean difference is above 0, by the t of resampled groups around the observed mean.

    The larger of two: the share of resamples whose t is as large, which holds under skew, and half the share whose t is
    as far from 0, which holds under heavy tails.
    """
    found = studentised(differences, codes, n_resamples, seed) if len(np.unique(codes)) >= FEW_UNITS else None
    if found is None:
        return _permuted(differences, codes, n_resamples, seed)
    observed, t = found
    hits = float((t >= observed - 1e-12 * abs(observed)).sum())
    if observed > 0:
        hits = max(hits, float((np.abs(t) >= observed * (1 - 1e-12)).sum()) / 2)
    return (1 + hits) / (1 + n_resamples), "studentised bootstrap, one-sided"
