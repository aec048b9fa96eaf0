"""Agreement between raters: Cohen's and Fleiss' kappa, Krippendorff's alpha, F1 against human labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._clusters import correlations, mover
from mrag_eval.metrics._intervals import Estimate, bootstrap_statistic, few_units, undefined, wilson
from mrag_eval.metrics._macro import stratified_bootstrap
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError

Label = Hashable


@dataclass(frozen=True)
class LabelF1:
    """Precision, recall and F1 of each label, their unweighted mean F1, and the number of rows compared.

    A precision is None if the label was never predicted, a recall if it never occurs in the human labels.
    """

    precision: Mapping[Label, float | None]
    recall: Mapping[Label, float | None]
    f1: Mapping[Label, Estimate]
    macro_f1: Estimate
    n: int


def cohen_kappa(
    first: Sequence[Label | None],
    second: Sequence[Label | None],
    *,
    groups: Sequence[Hashable] | None = None,
    order: Sequence[Label] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return Cohen's kappa (1960) of two raters' labels, both (N,): (p_o - p_e) / (1 - p_e), by scikit-learn.

    p_o is the share of equal labels, p_e the share expected from the raters' own label frequencies. With the ``order``
    of all labels, disagreement counts by the square of the distance of their places (Cohen 1968). Rows with None for
    either are left out; the interval resamples rows (or ``groups`` of rows), ten or more (BCa), and if all agree it is
    Wilson's of the observed agreement. Undefined if both raters use only one and the same label. Raises MetricError on
    unequal lengths.
    """
    if len(first) != len(second):
        raise MetricError(f"{len(first)} labels of one rater but {len(second)} of the other")
    kept = [i for i, pair in enumerate(zip(first, second, strict=True)) if None not in pair]
    pairs = [(first[i], second[i]) for i in kept]
    if not pairs:
        return undefined("no row with two labels", "BCa bootstrap")
    codes, size = _encode([label for pair in pairs for label in pair], order or ())
    if len(set(codes)) == 1:
        return undefined("both raters use one label throughout", "BCa bootstrap", len(pairs))
    from sklearn.metrics import cohen_kappa_score

    left, right = codes[::2], codes[1::2]
    cells, units = _summed(
        np.eye(size * size)[left * size + right], None if groups is None else [groups[i] for i in kept]
    )
    agree = np.eye(size) if order is None else 1 - _distances(size) ** 2 / (size - 1) ** 2
    statistic = partial(_kappa, agree)
    found = bootstrap_statistic(
        cells, statistic, n=len(pairs), units=units, confidence=confidence, n_resamples=n_resamples, seed=seed
    )
    expected = np.bincount(left, minlength=size) @ agree @ np.bincount(right, minlength=size) / len(pairs) ** 2
    weights = None if order is None else "quadratic"
    value = cohen_kappa_score(left, right, labels=None if order is None else range(size), weights=weights)
    return _bounded(replace(found, value=float(value)), float(expected), confidence, len(cells), units)


def pairwise_kappas(
    ratings: Mapping[str, Sequence[Label | None]],
    *,
    order: Sequence[Label] | None = None,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> dict[tuple[str, str], Estimate]:
    """Return :func:`cohen_kappa` of every pair of raters.

    ``ratings`` maps a rater's name to its labels (N,), None if missing.
    """
    rng = _resampling.generator(seed)
    return {
        (a, b): cohen_kappa(ratings[a], ratings[b], order=order, n_resamples=n_resamples, seed=rng)
        for a, b in combinations(ratings, 2)
    }


def fleiss_kappa(
    ratings: Sequence[Sequence[Label]],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return Fleiss' kappa (1971) of (N rows, m raters): (P - P_e) / (1 - P_e).

    P is the mean over rows of the share of agreeing pairs of raters, P_e the sum of the squared label frequencies. The
    interval is made as in :func:`cohen_kappa`. Undefined if only one label is used. Raises MetricError if rows differ
    in the number of ratings, have fewer than two, or contain None: :func:`krippendorff_alpha` accepts those.
    """
    if not ratings:
        return undefined("no rows", "BCa bootstrap")
    n_raters = len(ratings[0])
    for i, row in enumerate(ratings):
        if len(row) != n_raters or n_raters < 2 or any(label is None for label in row):
            raise MetricError(
                f"ratings[{i}]: Fleiss' kappa needs the same number of ratings, two or more, in every row",
                "use krippendorff_alpha where ratings are missing",
            )
    codes, size = _encode([label for row in ratings for label in row])
    if size == 1:
        return undefined("a single label is used throughout", "BCa bootstrap", len(ratings))
    counts = np.eye(size)[codes].reshape(len(ratings), n_raters, size).sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (n_raters * (n_raters - 1))
    sums, units = _summed(np.column_stack([counts, agreeing, np.ones(len(ratings))]), groups)
    found = bootstrap_statistic(
        sums, _fleiss, n=len(ratings), units=units, confidence=confidence, n_resamples=n_resamples, seed=seed
    )
    return _bounded(found, float(((counts.sum(axis=0) / counts.sum()) ** 2).sum()), confidence, len(sums), units)


def krippendorff_alpha(
    ratings: Sequence[Sequence[Label | None]],
    *,
    order: Sequence[Label] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return Krippendorff's alpha (2004) of (N rows, m raters), None if missing: 1 - D_o / D_e.

    Labels are nominal, or ordinal with the ``order`` of all of them: two labels are then as far apart as there are
    ratings between them. Rows with fewer than two ratings cannot be paired and are left out; ``n`` counts the rest; the
    interval is made as in :func:`cohen_kappa`. Undefined if only one label is used. Raises MetricError if rows differ
    in length.
    """
    if any(len(row) != len(ratings[0]) for row in ratings):
        raise MetricError("rows of unequal length: one entry per rater, None where missing")
    paired = [given for row in ratings if len(given := [label for label in row if label is not None]) > 1]
    if not paired:
        return undefined("no row with two ratings", "BCa bootstrap")
    codes, size = _encode([label for row in paired for label in row], order or ())
    if len(set(codes)) == 1:
        return undefined("a single label is used throughout", "BCa bootstrap", len(paired))
    rows = np.repeat(np.arange(len(paired)), [len(row) for row in paired])
    counts = np.zeros((len(paired), size))
    np.add.at(counts, (rows, codes), 1)
    # coincidences: every ordered pair of a row's ratings, weighted so that a rating counts once
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(size)
    cells = (pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(len(paired), -1)
    statistic = partial(_alpha, order is not None)
    found = bootstrap_statistic(
        cells, statistic, n=len(paired), confidence=confidence, n_resamples=n_resamples, seed=seed
    )
    used = counts.sum(axis=0)
    expected = float((used * (used - 1)).sum() / (used.sum() * (used.sum() - 1)))
    return _bounded(found, expected, confidence)


def balanced_accuracy(
    predicted: Sequence[Label | None],
    human: Sequence[Label | None],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Return the mean over the human labels of the share of their rows that are predicted so, both (N,).

    It is the macro mean of :func:`stratified_bootstrap`, with its interval; ``groups`` are rows that are not
    independent. Rows with None for either are left out. Undefined if people use only one label: then it would be the
    share of a single label. Raises MetricError on unequal lengths.
    """
    if len(predicted) != len(human) or (groups is not None and len(groups) != len(human)):
        raise MetricError(f"{len(predicted)} predicted labels but {len(human)} human ones", "give groups for each, too")
    kept = [i for i, pair in enumerate(zip(predicted, human, strict=True)) if None not in pair]
    if len({human[i] for i in kept}) < 2:
        reason = "people use one label throughout" if kept else "no row with two labels"
        return undefined(reason, "stratified score", len(kept))
    return stratified_bootstrap(
        [float(predicted[i] == human[i]) for i in kept],
        [human[i] for i in kept],
        groups=None if groups is None else [groups[i] for i in kept],
        confidence=confidence,
        seed=seed,
    )


def label_f1(
    predicted: Sequence[Label | None],
    human: Sequence[Label | None],
    *,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> LabelF1:
    """Return F1 = 2 tp / (2 tp + fp + fn) of each label against human labels, both (N,), and the mean over labels.

    Precision and recall by scikit-learn. Rows with None for either are left out. F1 has the limits of Wilson's interval
    of tp / (tp + fp + fn), of which it is a function; the mean has the wider of MOVER over those
    (:mod:`mrag_eval.metrics._clusters`) and, with ten rows or more, a BCa bootstrap over rows. Raises MetricError on
    unequal lengths, or if no row is left.
    """
    if len(predicted) != len(human):
        raise MetricError(f"{len(predicted)} predicted labels but {len(human)} human ones")
    pairs = [(a, b) for a, b in zip(predicted, human, strict=True) if a is not None and b is not None]
    if not pairs:
        raise MetricError("no row has both a predicted and a human label")
    from sklearn.metrics import precision_recall_fscore_support

    labels = list(dict.fromkeys(label for pair in pairs for label in pair))
    codes, size = _encode([label for pair in pairs for label in pair])
    left, right = codes[::2], codes[1::2]
    precision, recall, _, _ = precision_recall_fscore_support(
        right, left, labels=list(range(size)), average=None, zero_division=np.nan
    )
    cells = np.eye(size * size)[left * size + right]
    scores = [_f1(left == label, right == label, confidence) for label in range(size)]
    macro = bootstrap_statistic(
        cells, _macro_f1, n=len(pairs), confidence=confidence, n_resamples=n_resamples, seed=seed
    )
    # a label that is always right adds to the width, too, although resampling shows no spread in it
    low, value, high = (np.array([getattr(score, end) for score in scores]) for end in ("low", "value", "high"))
    without = _f1_scores(cells.sum(axis=0) - cells) if len(pairs) > 1 else np.tile(value, (1, 1))
    residuals = np.where(np.isnan(without), value, without) - value
    ends = mover(low, high, value, correlations(residuals, np.ones((size, size), dtype=bool)))
    if len(pairs) >= _resampling.FEW_UNITS and macro.low is not None and macro.high is not None:
        ends = min(ends[0], macro.low), max(ends[1], macro.high)
    macro = replace(macro, low=ends[0], high=ends[1], method="BCa bootstrap and MOVER", reason=None)
    return LabelF1(
        precision={label: _defined(value) for label, value in zip(labels, precision, strict=True)},
        recall={label: _defined(value) for label, value in zip(labels, recall, strict=True)},
        f1=dict(zip(labels, scores, strict=True)),
        macro_f1=macro.within((0.0, 1.0)),
        n=len(pairs),
    )


def _bounded(
    found: Estimate, expected: float, confidence: float, count: int | None = None, units: str = "rows"
) -> Estimate:
    """Return a chance-corrected agreement with limits between -1 and 1.

    Rows that all agree show no spread: the limit is that of Wilson's interval of the observed agreement, n of n, at the
    ``expected`` one. Otherwise fewer than ten rows have no interval. ``count`` is the number of resampled ``units``, by
    default that of the rows.
    """
    count = found.n if count is None else count
    if found.value is None or found.value < 1 - 1e-12:
        return few_units(found, count, units).within((-1.0, 1.0))
    agreement = wilson(count, count, confidence).low or 0.0
    low = (agreement - expected) / (1 - expected)
    return Estimate(found.value, max(-1.0, low), 1.0, found.n, "Wilson", "all rows agree")


def _f1(predicted: NDArray[np.bool_], human: NDArray[np.bool_], confidence: float) -> Estimate:
    """Return the F1 of one label. F1 = 2 J / (1 + J) of the share J = tp / (tp + fp + fn), whose Wilson limits it
    takes.
    """
    share = wilson(int((predicted & human).sum()), int((predicted | human).sum()), confidence)
    value, low, high = (2 * end / (1 + end) for end in (share.or_else(0.0), share.low or 0.0, share.high or 0.0))
    return Estimate(value, low, high, len(human), "Wilson")


def _summed(rows: Array, groups: Sequence[Hashable] | None) -> tuple[Array, Literal["rows", "clusters"]]:
    """Return the sums (G, m) of rows (N, m) by their ``groups`` (N,), and what is resampled."""
    if groups is None:
        return rows, "rows"
    places, count = _encode(groups)
    return np.eye(count)[places].T @ rows, "clusters"


def _encode(labels: Sequence[Label], order: Sequence[Label] = ()) -> tuple[NDArray[np.int64], int]:
    """Return the labels as numbers, those in ``order`` first, and how many labels there are."""
    seen: dict[Label, int] = {label: place for place, label in enumerate(order)}
    codes = np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)
    return codes, len(seen)


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _distances(size: int) -> Array:
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)


def _kappa(agree: Array, totals: Array) -> Array:
    """Map (B, L * L) counts of first x second labels to kappa (B,); ``agree`` (L, L) is how far two labels agree."""
    table = totals.reshape(-1, *agree.shape) / totals.sum(axis=1)[:, None, None]
    observed = (table * agree).sum(axis=(1, 2))
    expected = ((table.sum(axis=2) @ agree) * table.sum(axis=1)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan)


def _fleiss(totals: Array) -> Array:
    counts, agreeing, n = totals[:, :-2], totals[:, -2], totals[:, -1]
    expected = ((counts / counts.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected < 1 - 1e-12, (agreeing / n - expected) / (1 - expected), np.nan)


def _alpha(ordinal: bool, totals: Array) -> Array:
    """Map (B, L * L) coincidences to alpha (B,)."""
    size = round(totals.shape[1] ** 0.5)
    table = totals.reshape(-1, size, size)
    counts = table.sum(axis=2)
    n = counts.sum(axis=1)
    if ordinal:
        middles = counts.cumsum(axis=1) - counts / 2
        apart = (middles[:, :, None] - middles[:, None, :]) ** 2
    else:
        apart = np.broadcast_to(1 - np.eye(size), table.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = (table * apart).sum(axis=(1, 2)) / n
        expected = (counts[:, :, None] * counts[:, None, :] * apart).sum(axis=(1, 2)) / (n * (n - 1))
        return np.where(expected > 1e-12, 1 - observed / expected, np.nan)


def _f1_scores(totals: Array) -> Array:
    """Map (B, L * L) counts of predicted x human labels to the F1 (B, L) of each label, NaN where it is absent."""
    size = round(totals.shape[1] ** 0.5)
    table = totals.reshape(-1, size, size)
    hits = np.diagonal(table, axis1=1, axis2=2)
    both = table.sum(axis=1) + table.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(both > 0, 2 * hits / both, np.nan)


def _macro_f1(totals: Array) -> Array:
    """Map the same counts to the mean F1 (B,) of the labels present."""
    return np.asarray(np.nanmean(_f1_scores(totals), axis=1))
