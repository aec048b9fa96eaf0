"""A judge's rate corrected by a labelled sample: prediction-powered inference, and Rogan and Gladen's estimator.

Both estimates are smooth functions of means, so that one linearised variance serves them: every row has an influence on
the estimate, and the squares of the groups' sums of influences add up (Taylor linearisation; Wolter 2007, chapter 6).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrag_eval.metrics import _resampling
from mrag_eval.metrics._intervals import Estimate, group_codes, undefined, wilson
from mrag_eval.metrics._resampling import Array
from mrag_eval.platform import MetricError

# with fewer labelled rows (or groups) the intervals miss the true rate too often: see benchmarks/coverage.py
FEW_LABELS = 20
# ... and with fewer of either kind, correct or incorrect
FEW_OF_A_KIND = 5
# ... or of the largest stratum, which most of the variance comes from: three cover .98 if strata are alike, .79 if not
FEW_OF_LARGEST = 5
# ... or of one that holds more than half of the rows: what the others vary says too little of it
FEW_OF_MOST = 10
# ... or with fewer degrees of freedom in all strata together
FEW_FREE = 10
# Degrees of freedom that each stratum borrows from the pooled variance. Three labels that agree do not show that all
# do, and a variance that is pooled altogether is too small if the largest stratum varies most.
_BORROWED = 3
# Variance by label that a stratum's labels may not have shown, as one disagreement among them. A judge that errs
# rarely, to one side or in one stratum alone, shows too little of it: a quarter of this covers .82 to .88.
_UNSEEN = 1.0
_ALL = 1e9
PPI, ROGAN_GLADEN = "PPI++", "Rogan-Gladen"


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A judge's rate corrected by ``labelled`` rows.

    ``prediction_powered`` has the power ``tuning`` (lambda): 0 ignores the verdicts, 1 is the estimate without tuning.
    ``sensitivity`` and ``specificity`` are the judge's, on the labelled rows as they were drawn.
    """

    prediction_powered: Estimate
    tuning: float | None
    rogan_gladen: Estimate
    sensitivity: Estimate
    specificity: Estimate
    labelled: int


class _Mean(NamedTuple):
    """The weighted mean over strata, and the influence of each group on it by stratum, (S, G)."""

    value: float
    influence: Array


@dataclass(frozen=True, slots=True)
class _Design:
    """Strata and groups of the rows as codes from 0, and each stratum's share of the rows and name."""

    strata: NDArray[np.int64]
    groups: NDArray[np.int64]
    shares: Array
    names: tuple[Hashable, ...]

    def mean(self, values: Array, rows: NDArray[np.bool_]) -> _Mean:
        """Return the mean of ``values`` (N,) over ``rows``, in which every stratum has its share of all rows.

        G / (G - 1) for the G groups of a stratum makes its variance unbiased. A stratum with a single group has none.
        """
        value, influence = 0.0, np.zeros((len(self.shares), int(self.groups.max()) + 1))
        for stratum, share in enumerate(self.shares):
            here = rows & (self.strata == stratum)
            if not here.any():
                continue
            mean = float(values[here].mean())
            value += share * mean
            count = len(np.unique(self.groups[here]))
            scale = share / int(here.sum()) * np.sqrt(count / (count - 1)) if count > 1 else 0.0
            influence[stratum] = np.bincount(
                self.groups[here], scale * (values[here] - mean), minlength=influence.shape[1]
            )
        return _Mean(value, influence)

    def counts(self, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the number of groups among ``rows`` in each stratum."""
        return np.array([len(np.unique(self.groups[rows & (self.strata == s)])) for s in range(len(self.shares))])

    def spread(
        self, labelled: Array, rest: Array, known: NDArray[np.bool_], borrowed: float = _BORROWED
    ) -> tuple[float, float]:
        """Return the variance of an estimate, and its degrees of freedom.

        A stratum's variance by label is that of its own labels, with G - 1 degrees of freedom for G groups, and the
        variance pooled over strata with those that are ``borrowed``. Of several strata, each has a little more for
        errors that its labels have not shown. Satterthwaite's degrees of freedom, at most groups minus strata.

        Args:
            labelled: (S, G) influence of the ``known`` rows, by stratum and group.
            rest: (G,) influence of other rows.
        """
        free, rows = self.counts(known) - 1, np.bincount(self.strata[known], minlength=len(self.shares))
        most = int(free.sum())
        own = (labelled**2).sum(axis=1)
        by_label = own * rows / self.shares**2
        if borrowed < _ALL and len(rows) > 1:
            by_label = by_label + _UNSEEN / rows
        pooled = float(free @ by_label) / max(most, 1)
        variance = self.shares**2 / rows * (borrowed * pooled + free * by_label) / (borrowed + free)
        both = labelled.sum(axis=0) + rest
        total = float(both @ both + (variance - own).sum())
        uncertain = float((variance**2 / np.clip(free + borrowed, None, max(most, 1))).sum())
        return max(total, 0.0), min(total**2 / uncertain, most) if uncertain > 0 else most


def corrected_rate(
    verdicts: Sequence[float],
    labels: Sequence[float | None],
    *,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    tuning: float | None = None,
    confidence: float = 0.95,
) -> CorrectedRate:
    """Return the rate of 1 among people's labels that all rows would have, from a judge's verdicts and some labels.

    With y the labels of n rows, f the verdicts on them and F those on the N rows without a label:

    - Prediction-powered (Angelopoulos et al. 2023): mean(y) - l (mean(f) - mean(F)). The power tuning l (PPI++,
      Angelopoulos, Duchi and Zrnic 2023) minimises the estimated variance: for single rows, cov(y, f) / n over
      var(f) / n + var(F) / N, clipped to 0 to 1.
    - Rogan and Gladen (1978): (q + specificity - 1) / (sensitivity + specificity - 1), with q the rate of verdicts.

    Both have a t interval. Few labels in a stratum say little of its variance, so that of all strata helps
    (:meth:`_Design.spread`). Labelled rows must be a random draw within each stratum.

    Args:
        verdicts: (N,) 0 or 1.
        labels: (N,) 0 or 1, None for a row without a label.
        strata: (N,) what the draw was stratified by; every stratum counts by its share of all rows.
        groups: (N,) rows that are not independent share a group; squares are summed over groups.
        tuning: fixes l; 1 is prediction-powered inference without tuning, 0 the mean of the labels alone.

    Raises MetricError for other values than 0 and 1, and for unequal lengths.
    """
    _resampling.check_settings(confidence, 1000)
    f, known = np.array(verdicts, dtype=np.float64), np.array([label is not None for label in labels], dtype=bool)
    y = np.array([0.0 if label is None else float(label) for label in labels])
    if len(f) != len(y):
        raise MetricError(f"{len(f)} verdicts but {len(y)} labels")
    if not np.isin(f, (0.0, 1.0)).all() or not np.isin(y, (0.0, 1.0)).all():
        raise MetricError("verdicts and labels must be 0 or 1", "leave out rows without a verdict; None is no label")
    n = int(known.sum())
    sensitivity, specificity = (_agreeing(f, y, known, wanted, confidence) for wanted in (1.0, 0.0))
    every = np.ones(len(f), dtype=bool)
    names = list(strata) if strata is not None else [0] * len(f)
    codes = group_codes(names, every)[0]
    units = group_codes(groups if groups is not None else range(len(f)), every)[0]
    design = _Design(codes, units, np.bincount(codes) / max(len(codes), 1), tuple(dict.fromkeys(names)))
    drawn = design.counts(known)
    if not drawn.all() or not len(drawn):
        reason = "no label" if n == 0 else f"no label in {(drawn == 0).sum()} of {len(drawn)} languages"
        powered, gladen = undefined(reason, PPI, n), undefined(reason, ROGAN_GLADEN, n)
        return CorrectedRate(powered, None, gladen, sensitivity, specificity, n)
    powered, used = _prediction_powered(f, y, known, design, tuning, confidence)
    gladen = _rogan_gladen(f, y, known, design, confidence)
    return CorrectedRate(powered, used, gladen, sensitivity, specificity, n)


def _prediction_powered(
    f: Array, y: Array, known: NDArray[np.bool_], design: _Design, tuning: float | None, confidence: float
) -> tuple[Estimate, float]:
    # in a stratum in which every row has a label, verdicts add nothing
    open_strata = np.array([bool((~known & (design.strata == s)).any()) for s in range(len(design.shares))])
    proxy = np.where(open_strata[design.strata], f, 0.0)
    people, there, elsewhere = design.mean(y, known), design.mean(proxy, known), design.mean(proxy, ~known)
    rest = elsewhere.influence.sum(axis=0)
    if tuning is None:
        # a parabola in l; its minimum would follow the few labels of a stratum, so the variance is that of all of them
        ends = [(people.influence - power * there.influence, power * rest) for power in (0.0, 0.5, 1.0)]
        none, half, all_ = (design.spread(*parts, known, _ALL)[0] for parts in ends)
        bend = 2 * (none + all_ - 2 * half)
        tuning = float(np.clip(0.5 - (all_ - none) / (2 * bend), 0.0, 1.0)) if bend > 1e-15 else 0.0
    value = people.value - tuning * (there.value - elsewhere.value)
    labelled = people.influence - tuning * there.influence
    return _t_estimate(value, labelled, tuning * rest, y, known, design, confidence, PPI), tuning


def _rogan_gladen(f: Array, y: Array, known: NDArray[np.bool_], design: _Design, confidence: float) -> Estimate:
    n = int(known.sum())
    correct = design.mean(y, known).value
    if not 0 < correct < 1:
        which = "incorrect" if correct else "correct"
        return undefined(f"no labelled row is {which}", ROGAN_GLADEN, n)
    sensitivity = design.mean(y * f, known).value / correct
    specificity = design.mean((1 - y) * (1 - f), known).value / (1 - correct)
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return undefined("the judge is no better than chance on the labelled rows", ROGAN_GLADEN, n)
    rate = design.mean(f, np.ones(len(f), dtype=bool))
    value = (rate.value + specificity - 1) / youden
    errors = (1 - value) * (1 - y) * (1 - f - specificity) / (1 - correct) - value * y * (f - sensitivity) / correct
    labelled, rest = design.mean(errors, known).influence / youden, rate.influence.sum(axis=0) / youden
    return _t_estimate(value, labelled, rest, y, known, design, confidence, ROGAN_GLADEN)


def _t_estimate(
    value: float,
    labelled: Array,
    rest: Array,
    y: Array,
    known: NDArray[np.bool_],
    design: _Design,
    confidence: float,
    method: str,
) -> Estimate:
    """Return the value, clipped to 0 to 1, with its t interval or the reason why it has none."""
    from scipy.special import stdtrit

    n, shown = int(known.sum()), min(max(value, 0.0), 1.0)
    reason = _too_few(y, known, design)
    if reason is not None:
        return Estimate(shown, None, None, n, method, f"no interval: {reason}")
    variance, freedom = design.spread(labelled, rest, known)
    margin = float(stdtrit(freedom, 0.5 + confidence / 2) * np.sqrt(variance))
    return Estimate(shown, value - margin, value + margin, n, method).within((0.0, 1.0))


def _too_few(y: Array, known: NDArray[np.bool_], design: _Design) -> str | None:
    """Return why the labels are too few for an interval; None if they are enough."""
    drawn, units = design.counts(known), len(np.unique(design.groups[known]))
    single = units == int(known.sum())
    if units < FEW_LABELS:
        return f"{units} {'labelled rows' if single else 'groups of labelled rows'}, {FEW_LABELS} are needed"
    largest = int(design.shares.argmax())
    needed = FEW_OF_MOST if design.shares[largest] > 0.5 else FEW_OF_LARGEST
    if drawn[largest] < needed:
        what = "labelled rows" if single else "groups of labelled rows"
        share = f"{design.shares[largest]:.0%} of the rows"
        return f"{drawn[largest]} {what} in {design.names[largest]} ({share}), {needed} are needed"
    if (free := int((drawn - 1).sum())) < FEW_FREE:
        return f"{free + len(drawn)} labels in {len(drawn)} languages, {FEW_FREE + len(drawn)} are needed"
    for kind, name in ((1.0, "correct"), (0.0, "incorrect")):
        count = len(np.unique(design.groups[known & (y == kind)]))
        if count < FEW_OF_A_KIND:
            return f"{count} labelled {name}, {FEW_OF_A_KIND} are needed"
    return None


def _agreeing(f: Array, y: Array, known: NDArray[np.bool_], wanted: float, confidence: float) -> Estimate:
    """Return the share of rows labelled ``wanted`` on which the judge agrees."""
    rows = known & (y == wanted)
    if not rows.any():
        return undefined(f"no labelled row is {'correct' if wanted else 'incorrect'}", "Wilson")
    return wilson(int((f[rows] == wanted).sum()), int(rows.sum()), confidence)
