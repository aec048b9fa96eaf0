"""What a ranking in random order scores on average, in closed form."""

from __future__ import annotations

import math

from mrag_eval.platform import MetricError, did_you_mean

_MEASURES = ("hit", "recall", "precision", "mrr", "ndcg", "map")


def random_ranking(measure: str, k: int, items: int, relevant: int, known: int | None = None) -> float:
    """Return the mean of a ranking measure over all orders of N ``items``, of which r are ``relevant``.

    With R the relevant ones that are ``known``, among them some that are not ranked: hit@k is 1 - C(N - r, k) / C(N,
    k); recall@k is r k / (N R); precision@k is r / N; mrr@k is the sum of P(the first is at i) / i; ndcg@k is r / N
    times the discounts of k places over those of min(R, k); map@k is the sum of r / N (1 + (i - 1) (r - 1) / (N - 1)) /
    i over R. Of fewer than k items, all are ranked.

    Args:
        measure: hit, recall, precision, mrr, ndcg or map.
        k: the depth, 1 or more.
        items: N, 1 or more.
        relevant: r, from 0 to N.
        known: R, at least r and 1; by default r.

    Raises:
        MetricError: for another measure, and for numbers outside these ranges.
    """
    if measure not in _MEASURES:
        raise MetricError(f"unknown ranking measure '{measure}'{did_you_mean(measure, _MEASURES)}")
    total = relevant if known is None else known
    if k < 1 or items < 1 or not 0 <= relevant <= items or total < max(relevant, 1):
        raise MetricError(f"no ranking: k {k}, {items} items, {relevant} relevant, {total} known")
    depth, share = min(k, items), relevant / items
    places = range(1, depth + 1)
    if measure == "recall":
        return share * depth / total
    if measure == "precision":
        return share * depth / k
    if measure == "ndcg":
        return share * _discounts(depth) / _discounts(min(total, k))
    if measure == "map":
        # of two relevant items, the other is equally likely to be at each of the places left
        spread = (relevant - 1) / (items - 1) if items > 1 else 0.0
        return sum(share * (1 + (i - 1) * spread) / i for i in places) / total
    missed, reciprocal = 1.0, 0.0
    for i in places:
        here = min(1.0, relevant / (items - i + 1))
        reciprocal += missed * here / i
        missed *= 1 - here
    return reciprocal if measure == "mrr" else 1 - missed


def _discounts(places: int) -> float:
    return sum(1 / math.log2(i + 1) for i in range(1, places + 1))
