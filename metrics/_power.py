"""Power of paired comparisons, and the smallest difference a given number of rows can show."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mrag_eval.core import MetricError


@dataclass(frozen=True)
class DetectableEffect:
    """The smallest true difference a paired comparison finds with probability ``power`` at level ``alpha``."""

    value: float | None
    n: int
    alpha: float
    power: float
    reason: str | None = None


def paired_power(
    effect: float,
    n: int,
    *,
    discordance: float | None = None,
    sd: float | None = None,
    alpha: float = 0.05,
    design_effect: float = 1.0,
) -> float:
    """Probability that a two-sided paired test at level ``alpha`` finds a true difference ``effect`` in n rows.

    0/1 values: give ``discordance``, the share of rows where the runs differ; the normal approximation to McNemar's
    test (Connor 1987), power = Phi((|d| sqrt(n) - z sqrt(D)) / sqrt(D - d^2)). Scores: give ``sd``, the standard
    deviation of the rows' differences; power = Phi(|d| sqrt(n) / sd - z), with t quantiles in place of z.
    ``design_effect`` divides n for clustered rows (1 + (rows a cluster - 1) x intraclass correlation).

    Raises MetricError unless exactly one of the two is given and 0 < |effect| <= discordance <= 1, or sd > 0.
    """
    from scipy import special

    size = _effective_size(n, alpha, design_effect, discordance, sd)
    d = abs(effect)
    if discordance is None:
        assert sd is not None
        return float(special.ndtr(d * math.sqrt(size) / sd + special.stdtrit(max(1.0, size - 1), alpha / 2)))
    if not 0 < d <= discordance:
        raise MetricError(f"a difference of {effect} is impossible where {discordance:.3g} of the rows differ")
    spread = discordance - d * d
    shifted = d * math.sqrt(size) + special.ndtri(alpha / 2) * math.sqrt(discordance)
    return float(special.ndtr(shifted / math.sqrt(spread))) if spread > 0 else float(shifted > 0)


def minimum_detectable_effect(
    n: int,
    *,
    discordance: float | None = None,
    sd: float | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    design_effect: float = 1.0,
) -> DetectableEffect:
    """The smallest difference that n paired rows show with probability ``power``: :func:`paired_power` solved for it.

    Same arguments. With ``discordance`` D the difference cannot exceed D: where even that is not found with this
    power, the value is None, with a reason.
    """
    if not 0 < power < 1:
        raise MetricError(f"power {power} is not between 0 and 1")
    from scipy.optimize import brentq

    size = _effective_size(n, alpha, design_effect, discordance, sd)

    def missing(effect: float) -> float:
        return paired_power(effect, n, discordance=discordance, sd=sd, alpha=alpha, design_effect=design_effect) - power

    if discordance is not None:
        if missing(discordance) < 0:
            reason = f"no difference up to {discordance:.3g}, the share of rows that differ, would be found in {n} rows"
            return DetectableEffect(None, n, alpha, power, reason)
        top = discordance
    else:
        assert sd is not None
        top = sd
        while missing(top) < 0:
            top *= 2
    floor = top * 1e-9
    value = floor if missing(floor) > 0 else float(brentq(missing, floor, top, xtol=1e-12 * max(1.0, top)))
    return DetectableEffect(value, n, alpha, power, None if size >= 10 else "so few rows that it is a rough guide only")


def _effective_size(n: int, alpha: float, design_effect: float, discordance: float | None, sd: float | None) -> float:
    if (discordance is None) == (sd is None):
        raise MetricError("give either discordance (0/1 values) or sd (scores)")
    if n < 2 or not 0 < alpha < 1 or not design_effect > 0:
        raise MetricError(
            f"n = {n}, alpha = {alpha}, design effect = {design_effect}: n >= 2, 0 < alpha < 1, effect > 0"
        )
    if (discordance is not None and not 0 < discordance <= 1) or (sd is not None and not 0 < sd < math.inf):
        raise MetricError(
            f"discordance = {discordance}, sd = {sd}: a share above 0, or a positive deviation, is needed"
        )
    return n / design_effect
