"""Ranking measures: hit, recall, precision, MRR, NDCG and MAP, with one rule for ties and for missing queries."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mrag_eval.platform import MetricError, did_you_mean

Judgements = Mapping[str, int] | Collection[str]
Ranking = Mapping[str, float] | Sequence[str]

# measures that also exist without a cut-off
_WHOLE = ("mrr", "ndcg", "map")


class _Measure(NamedTuple):
    name: str
    family: str
    cutoff: int | None


class _Judged(NamedTuple):
    """One query's input to the measures: ranks of the relevant documents found, and the known relevant documents."""

    ranks: list[int]
    gains: list[int]
    n_relevant: int
    ideal: list[int]


def ranking_metrics(
    qrels: Mapping[str, Judgements],
    run: Mapping[str, Ranking],
    measures: Sequence[str] = ("hit@20", "ndcg@20", "mrr@20"),
    *,
    ndcg_pool: Mapping[str, Judgements] | None = None,
) -> dict[str, dict[str, float]]:
    """Score a run query by query; the values are trec_eval's, in 0..1.

    With r the ranks (from 1) of the relevant documents found and R the number of relevant documents known: hit@k is 1
    if some r <= k; recall@k is #(r <= k) / R; precision@k is #(r <= k) / k; mrr@k is 1 / min r, 0 beyond k; map@k is
    the sum of the precisions at each r <= k over R; ndcg@k is sum(gain / log2(r + 1)) over the same sum for the best
    possible order. mrr, ndcg and map also exist without a cut-off. A document is relevant at a grade of 1 or more; the
    grade is the gain.

    Documents are ordered before any measure as trec_eval orders them: by score, then id, both descending, so that a
    constant scorer gains nothing from the input order. (trec_eval compares scores in single precision.)

    Args:
        qrels: query id -> {document id: integer grade}, or a collection of the relevant document ids.
        run: query id -> {document id: score}, or document ids from best to worst.
        measures: names out of hit@k, recall@k, precision@k, mrr[@k], ndcg[@k], map[@k].
        ndcg_pool: further judgements for the ideal order of NDCG. By default only ``qrels`` are used: if a judge saw
            only the retrieved list, these are the relevant documents of that list. To compare several runs that were
            judged separately, pass the union, so that all share one ideal.

    Returns:
        One entry for every query with judgements, in the order of ``qrels``. A query that is absent from ``run``, or
            has no relevant document, scores 0 in every measure. A query without judgements (no entry or an empty one in
            ``qrels``) is left out, because it cannot be scored.

    Raises:
        MetricError: unknown measure, NaN or missing score, fractional grade, a document listed twice.
    """
    wanted = [_parse(name) for name in measures]
    judged = {query: entry for query, entry in qrels.items() if len(entry)}
    kernels = [(measure.name, _kernel(measure)) for measure in wanted]
    scores: dict[str, dict[str, float]] = {}
    for query, entry in judged.items():
        gains = _gains(query, entry)
        ranks = _relevant_ranks(query, run.get(query, ()), gains)
        pooled = gains if ndcg_pool is None else _pooled(gains, _gains(query, ndcg_pool.get(query, ())))
        facts = _Judged(list(ranks), list(ranks.values()), len(gains), sorted(pooled.values(), reverse=True))
        scores[query] = {name: kernel(facts) for name, kernel in kernels}
    return scores


def rank_documents(ranking: Ranking) -> list[str]:
    """Return document ids from best to worst: score, then id, both descending; a list of ids is unchanged."""
    if isinstance(ranking, Mapping):
        return sorted(ranking, key=lambda document: (ranking[document], document), reverse=True)
    return list(ranking)


def _parse(name: str) -> _Measure:
    family, at, cutoff = name.partition("@")
    if family not in _KERNELS:
        raise MetricError(f"unknown ranking measure '{name}'{did_you_mean(family, _KERNELS)}")
    if not at and family in _WHOLE:
        return _Measure(name, family, None)
    if not cutoff.isdecimal() or int(cutoff) < 1:
        raise MetricError(f"ranking measure '{name}' needs a cut-off of 1 or more", f"write {family}@20")
    return _Measure(name, family, int(cutoff))


def _gains(query: str, entry: Judgements) -> dict[str, int]:
    if not isinstance(entry, Mapping):
        if isinstance(entry, str):
            raise MetricError(f"qrels of query '{query}' are a string", "give a collection of document ids")
        return dict.fromkeys(entry, 1)
    gains = {document: grade for document, grade in entry.items() if not grade <= 0}
    for document, grade in gains.items():
        if grade != grade or grade != int(grade):
            raise MetricError(f"qrels of query '{query}': grade {grade} of '{document}' is not an integer")
    return gains


def _pooled(gains: dict[str, int], others: dict[str, int]) -> dict[str, int]:
    return gains | {document: max(grade, gains.get(document, 0)) for document, grade in others.items()}


def _relevant_ranks(query: str, ranking: Ranking, gains: dict[str, int]) -> dict[int, int]:
    """Return rank (from 1) -> gain of each relevant document found, ranks ascending."""
    if isinstance(ranking, Mapping):
        _check_scores(query, ranking)
        found = {document: ranking[document] for document in gains if document in ranking}
        if not found:
            return {}
        ordered = sorted(ranking.values())
        below = [bisect_right(ordered, score) for score in found.values()]
        if all(end - bisect_left(ordered, score) == 1 for end, score in zip(below, found.values(), strict=True)):
            ranked = zip((len(ordered) - end + 1 for end in below), map(gains.__getitem__, found), strict=True)
            return dict(sorted(ranked))
        ranking = rank_documents(ranking)
    else:
        _check_list(query, ranking)
    return {rank: gains[document] for rank, document in enumerate(ranking, 1) if document in gains}


def _check_scores(query: str, ranking: Mapping[str, float]) -> None:
    try:
        total = sum(ranking.values())
    except TypeError:
        raise MetricError(f"run of query '{query}' has a score that is not a number") from None
    # opposite infinities also add up to NaN, hence the second check
    if total != total and any(score != score for score in ranking.values()):
        document = next(document for document, score in ranking.items() if score != score)
        raise MetricError(f"run of query '{query}': the score of document '{document}' is NaN")


def _check_list(query: str, ranking: Sequence[str]) -> None:
    if isinstance(ranking, str):
        raise MetricError(f"run of query '{query}' is a string", "give document ids from best to worst")
    if len(set(ranking)) != len(ranking):
        raise MetricError(f"run of query '{query}' lists a document twice", "keep its best rank only")


def _kernel(measure: _Measure) -> Callable[[_Judged], float]:
    return partial(_KERNELS[measure.family], cutoff=math.inf if measure.cutoff is None else measure.cutoff)


def _hit(judged: _Judged, cutoff: float) -> float:
    return float(bool(judged.ranks) and judged.ranks[0] <= cutoff)


def _recall(judged: _Judged, cutoff: float) -> float:
    return bisect_right(judged.ranks, cutoff) / judged.n_relevant if judged.n_relevant else 0.0


def _precision(judged: _Judged, cutoff: float) -> float:
    return bisect_right(judged.ranks, cutoff) / cutoff


def _reciprocal_rank(judged: _Judged, cutoff: float) -> float:
    return 1 / judged.ranks[0] if judged.ranks and judged.ranks[0] <= cutoff else 0.0


def _average_precision(judged: _Judged, cutoff: float) -> float:
    if not judged.n_relevant:
        return 0.0
    return sum(i / rank for i, rank in enumerate(judged.ranks, 1) if rank <= cutoff) / judged.n_relevant


def _ndcg(judged: _Judged, cutoff: float) -> float:
    if not judged.ranks or judged.ranks[0] > cutoff:
        return 0.0
    ideal = _dcg(range(1, len(judged.ideal) + 1), judged.ideal, cutoff)
    return _dcg(judged.ranks, judged.gains, cutoff) / ideal


def _dcg(ranks: Iterable[int], gains: Iterable[int], cutoff: float) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in zip(ranks, gains, strict=True) if rank <= cutoff)


_KERNELS: dict[str, Callable[..., float]] = {
    "hit": _hit,
    "recall": _recall,
    "precision": _precision,
    "mrr": _reciprocal_rank,
    "ndcg": _ndcg,
    "map": _average_precision,
}


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
