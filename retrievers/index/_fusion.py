"""Merging ranked lists: by score, reciprocal rank, quota per language, or score normalised per language."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mrag_eval.core import Hit
from mrag_eval.platform import ConfigError, content_key
from mrag_eval.retrievers.shards._ordering import place_among_equals

# Moments of a language count this many values of the mean of all beside its own: those of a few say little.
SHRINKAGE = 3


def query_turn(text: str, seed: int = 0) -> int:
    """Return the number that decides the order of languages among equals for a query: a hash of seed and text."""
    return int(content_key(seed, text)[:16], 16)


def _key(hit: Hit) -> tuple[float, str]:
    return (-hit.score, hit.id)


def _best(hits: Iterable[Hit], k: int, turn: int | None = None) -> list[Hit]:
    """Return the ``k`` best hits by score, ranked from 1.

    Ties: with a ``turn``, by a hash of turn and language; then by passage id.
    """
    found = list(hits)
    places = {lang: 0 if turn is None else place_among_equals(lang, turn) for lang in {hit.lang for hit in found}}
    found.sort(key=lambda hit: (-hit.score, places[hit.lang], hit.id))
    return [replace(hit, rank=rank) for rank, hit in enumerate(found[:k], start=1)]


def _check_k(k: int) -> None:
    if k < 1:
        raise ConfigError(f"k is {k}, it must be at least 1", "e.g. k=5")


def merge_by_score(lists: Iterable[Sequence[Hit]], k: int, turn: int | None = None) -> list[Hit]:
    """Return the ``k`` best hits of all lists by score; a passage in several lists counts once, with its best score.

    Ties: score descending, then passage id ascending; with a ``turn`` (:func:`query_turn`) by language before the id,
    in an order that is another for each turn and favours none, nor one of any two. Ranks are renumbered from 1. Only
    meaningful where scores are comparable: inner products of one embedder are, lexical scores of separate indexes are
    not.
    """
    _check_k(k)
    best: dict[str, Hit] = {}
    for hits in lists:
        for hit in hits:
            held = best.get(hit.id)
            if held is None or hit.score > held.score:
                best[hit.id] = hit
    return _best(best.values(), k, turn)


def reciprocal_rank_fusion(lists: Iterable[Sequence[Hit]], k: int, c: int = 60, turn: int | None = None) -> list[Hit]:
    """Return the ``k`` best hits by the sum over the lists of ``1 / (c + rank)``, which becomes the score.

    The rank of a hit is its position in the list, from 1 (``Hit.rank`` is ignored); a passage that is twice in a list
    counts at its better position. Ties as in :func:`merge_by_score`; lists of different languages tie at every rank,
    so without a ``turn`` the same language would lead for every query. Source: Cormack, Clarke and Buettcher,
    Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods (SIGIR 2009), c = 60.
    """
    _check_k(k)
    first: dict[str, Hit] = {}
    parts: dict[str, list[float]] = {}
    for hits in lists:
        placed: set[str] = set()
        for rank, hit in enumerate(hits, start=1):
            if hit.id in placed:
                continue
            placed.add(hit.id)
            first.setdefault(hit.id, hit)
            parts.setdefault(hit.id, []).append(1.0 / (c + rank))
    # fsum: the same parts give the same sum whatever the order of the lists
    fused = [replace(hit, score=math.fsum(parts[identifier])) for identifier, hit in first.items()]
    return _best(fused, k, turn)


def merge_by_quota(
    lists_by_language: Mapping[str, Sequence[Hit]], quotas: Mapping[str, int], k: int, turn: int | None = None
) -> list[Hit]:
    """Return ``quotas[language]`` hits from each language's list, ``k`` in total.

    Places that a language cannot fill, or that ``quotas`` leaves open, go to the other languages one at a time, in
    rounds, largest quota first; ties of quotas and of scores as in :func:`merge_by_score`. Quota lists have no single
    ranking, so rank measures over them are undefined. Raises ConfigError for a negative quota or quotas that add up to
    more than ``k``.
    """
    _check_k(k)
    negative = sorted(language for language, quota in quotas.items() if quota < 0)
    if negative:
        raise ConfigError(
            f"quota of '{negative[0]}' is {quotas[negative[0]]}, it must not be negative", "give 0 or more"
        )
    total = sum(quotas.values())
    if total > k:
        raise ConfigError(f"quotas add up to {total}, more than k = {k}", "equal_quotas(languages, k) divides k")
    place = {lang: 0 if turn is None else place_among_equals(lang, turn) for lang in lists_by_language}
    languages = sorted(lists_by_language, key=lambda language: (-quotas.get(language, 0), place[language], language))
    waiting = {language: sorted(lists_by_language[language], key=_key) for language in languages}
    places = dict.fromkeys(languages, 0)
    chosen: dict[str, Hit] = {}

    def take(language: str) -> bool:
        queue = waiting[language]
        while places[language] < len(queue):
            hit = queue[places[language]]
            places[language] += 1
            held = chosen.get(hit.id)
            if held is None:
                chosen[hit.id] = hit
                return True
            if hit.score > held.score:
                chosen[hit.id] = hit
        return False

    for language in languages:
        for _ in range(quotas.get(language, 0)):
            if not take(language):
                break
    while len(chosen) < k:
        filled = False
        for language in languages:
            if len(chosen) < k and take(language):
                filled = True
        if not filled:
            break
    return _best(chosen.values(), k, turn)


def equal_quotas(languages: Iterable[str], k: int, seed: int = 0) -> dict[str, int]:
    """Return ``k`` places divided equally; the remainder goes to languages in order of code, starting at ``seed``.

    ``equal_quotas(["en", "ar"], 5) == {"ar": 3, "en": 2}``. Use a different seed for every query: with
    one seed and fewer places than languages, some languages would never be shown.
    """
    return share_quotas(dict.fromkeys(languages, 1), k, seed)


def share_quotas(counts: Mapping[str, int], k: int, seed: int = 0) -> dict[str, int]:
    """Return ``k`` places divided in proportion to ``counts`` (of a language's documents or passages).

    Every language gets the floor of its exact share; the places left over go to the largest remainders, ties in
    order of language code, starting at ``seed``. ``share_quotas({"ar": 75, "en": 25}, 20) == {"ar": 15, "en": 5}``.
    Integer arithmetic, so exact. Raises ConfigError without a language or a positive count.
    """
    _check_k(k)
    total = sum(counts.values())
    if total <= 0 or min(counts.values()) < 0:
        raise ConfigError(
            f"quotas need languages with counts of zero or more, got {dict(counts)}", "give a count for every language"
        )
    order = sorted(counts)
    first = seed % len(order)
    quotas = {language: k * counts[language] // total for language in order}
    left_over = k - sum(quotas.values())
    # a stable sort: equal remainders stay in the turned order
    by_remainder = sorted(order[first:] + order[:first], key=lambda language: -(k * counts[language] % total))
    for language in by_remainder[:left_over]:
        quotas[language] += 1
    return quotas


def merge_by_zscore(lists_by_language: Mapping[str, Sequence[Hit]], k: int, turn: int | None = None) -> list[Hit]:
    """Return the ``k`` best hits by their z-score within their language: ``z = (score - mean) / deviation``.

    Mean and variance are those of the given list, so lists should be deeper than ``k``, shrunk towards the mean of all
    hits and the variance within all lists: a list of n hits weighs ``n / (n + 3)``. z becomes the score. Ties as in
    :func:`merge_by_score`. Source: the normalisation to zero mean and unit variance of Montague and Aslam, Relevance
    score normalization for metasearch (CIKM 2001), here per language; the shrinkage is ours.
    """
    _check_k(k)
    every = [hit.score for hits in lists_by_language.values() for hit in hits]
    if not every:
        return []
    center = math.fsum(every) / len(every)

    def squares(hits: Sequence[Hit]) -> tuple[float, float]:
        """Return the mean of a list, and the sum of squares around it."""
        mean = math.fsum(hit.score for hit in hits) / len(hits)
        return mean, math.fsum((hit.score - mean) ** 2 for hit in hits)

    # within the lists: the distance of their means from each other is no deviation in any of them
    within = math.fsum(squares(hits)[1] for hits in lists_by_language.values() if hits) / len(every)

    def zscores(_: str, hits: Sequence[Hit]) -> list[float]:
        own, square = squares(hits)
        n = len(hits) + SHRINKAGE
        mean = (len(hits) * own + SHRINKAGE * center) / n
        variance = (square + SHRINKAGE * within) / n
        # a rounding error of equal scores is not a deviation
        deviation = math.sqrt(variance) if variance > (1e-12 * max(abs(mean), 1e-12)) ** 2 else 0.0
        return [(hit.score - mean) / deviation if deviation else 0.0 for hit in hits]

    return _normalised(lists_by_language, k, zscores, turn)


def merge_by_turns(rankings: Sequence[Sequence[Hit]], k: int, turn: int | None = None) -> list[Hit]:
    """Return ``k`` hits: the first place of the first ranking, then a place of each of the others in turn.

    The first ranking holds every hit. Each of the others gives its best one that is not taken yet; one that has none
    left is passed over. The hits are ordered by their score in the first ranking, ties as in :func:`merge_by_score`: a
    set, which has no single ranking, as with quotas.
    """
    _check_k(k)
    first, *others = rankings
    held = {hit.id: hit for hit in first}
    chosen = {hit.id: hit for hit in first[:1]}
    waiting = [iter(ranking) for ranking in others or [first]]
    while waiting and len(chosen) < k:
        ranking = waiting.pop(0)
        found = next((hit.id for hit in ranking if hit.id in held and hit.id not in chosen), None)
        if found is not None:
            chosen[found] = held[found]
            waiting.append(ranking)
    return _best(chosen.values(), k, turn)


def merge_by_rank_share(
    lists_by_language: Mapping[str, Sequence[Hit]], counts: Mapping[str, int], k: int, turn: int | None = None
) -> list[Hit]:
    """Return the ``k`` best hits by the share of their language ranked below them: ``1 - (rank - 1/2) / passages``.

    ``counts`` holds the passages of each language. A language with three times the passages gets three times the
    places, as in :func:`share_quotas`, but in one ranking. The share becomes the score. Ties as in
    :func:`merge_by_score`; languages of the same size tie at every rank. Raises
    ConfigError for a language without a count, or with fewer passages than hits.
    """
    _check_k(k)
    for language, hits in lists_by_language.items():
        if counts.get(language, 0) < len(hits):
            raise ConfigError(
                f"'{language}' has {len(hits)} hits of {counts.get(language, 0)} passages",
                "give the number of passages of every language",
            )

    def shares(language: str, hits: Sequence[Hit]) -> list[float]:
        return [1.0 - (rank - 0.5) / counts[language] for rank in range(1, len(hits) + 1)]

    return _normalised(lists_by_language, k, shares, turn)


def _normalised(
    lists_by_language: Mapping[str, Sequence[Hit]],
    k: int,
    scores: Callable[[str, Sequence[Hit]], list[float]],
    turn: int | None,
) -> list[Hit]:
    lists = []
    for language, hits in lists_by_language.items():
        if hits:
            ordered = sorted(hits, key=_key)
            new = scores(language, ordered)
            lists.append([replace(hit, score=score) for hit, score in zip(ordered, new, strict=True)])
    return merge_by_score(lists, k, turn)
