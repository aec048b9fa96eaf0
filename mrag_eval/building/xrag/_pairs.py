"""Related articles in one language: the graph of articles and the entities of their titles (XRAG, Appendix B.2.1).

Two articles are related if their titles share at least ``shared`` entities and they were published at most ``max_days``
days apart. The graph is never built: an inverted index maps an entity to its articles, sorted by date, and a window of
days moves over each list. Two titles that share at least ``t`` entities share one outside the ``t - 1`` most frequent
of each. Searching only the lists of those others therefore gives the same result as searching all.
"""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace

from mrag_eval.building.xrag._xrag_records import Headline


@dataclass(frozen=True)
class Related:
    """Positions of two articles, the earlier one first, and their shared entities."""

    first: int
    second: int
    shared: tuple[str, ...]
    days: int


@dataclass(frozen=True)
class Found:
    """Result of the search.

    ``general`` counts entities in too many titles to link them. ``spare`` counts pairs that were left out because an
    article had enough.
    """

    pairs: list[Related]
    general: int
    spare: int


def related_pairs(
    articles: Sequence[Headline], *, shared: int = 2, max_days: int = 14, max_titles: int = 1000, per_article: int = 3
) -> Found:
    """Return pairs of articles whose titles share entities.

    An entity in more than ``max_titles`` titles counts as shared, but only for titles that also share a rarer one.
    Identical titles are reprints and do not form a pair. An article's pairs are ranked by the number of shared
    entities, then by time between them, then by date. Memory grows only with the articles and ``per_article``.
    """
    days = [dt.date.fromisoformat(article.date).toordinal() for article in articles]
    order = sorted(range(len(articles)), key=lambda i: (days[i], articles[i].id))
    entities_of = [set(article.entities or ()) for article in articles]
    frequency: Counter[str] = Counter(name for own in entities_of for name in own)
    numbers = {name: number for number, name in enumerate(sorted(frequency, key=lambda n: (frequency[n], n)))}
    names = list(numbers)
    # rarest first; an article with fewer than ``shared`` entities is in no pair
    sets = [array("i", sorted(numbers[name] for name in own)) for own in entities_of]
    general = sum(count > max_titles for count in frequency.values())
    leading = len(names) - general
    postings: dict[int, array[int]] = {}
    dates: dict[int, array[int]] = {}
    titles = [hash(article.title) for article in articles]
    best: list[list[tuple[int, int, int, int]]] = [[] for _ in articles]
    spare = 0
    for rank, current in enumerate(order):
        entities = sets[current]
        if len(entities) < shared:
            continue
        prefix = [e for e in entities[: len(entities) - shared + 1] if e < leading]
        seen: set[int] = set()
        for entity in prefix:
            there, when = postings.get(entity), dates.get(entity)
            if there is None or when is None:
                continue
            start = bisect_right(when, days[current] - max_days - 1)
            seen.update(there[start:])
        own = set(entities)
        for other in seen:
            count = sum(entity in own for entity in sets[other])
            if count < shared or titles[other] == titles[current]:
                continue
            gap = days[current] - days[other]
            # the worst pair of the heap comes first: fewest shared, farthest apart, latest
            spare += _offer(best[current], (count, -gap, -rank, other), per_article)
        for entity in prefix:
            postings.setdefault(entity, array("i")).append(current)
            dates.setdefault(entity, array("i")).append(days[current])
    # most shared first, then nearest in time, then earliest
    offers = sorted(
        (-count, -gap, -rank, other, current) for current, heap in enumerate(best) for count, gap, rank, other in heap
    )
    degree: Counter[int] = Counter()
    pairs = []
    for _, gap, _, other, current in offers:
        if degree[other] >= per_article or degree[current] >= per_article:
            spare += 1
            continue
        degree[other] += 1
        degree[current] += 1
        common = tuple(names[e] for e in sorted(set(sets[other]) & set(sets[current])))
        pairs.append(Related(other, current, common, gap))
    return Found(sorted(pairs, key=lambda pair: (pair.first, pair.second)), general, spare)


def _offer(heap: list[tuple[int, int, int, int]], pair: tuple[int, int, int, int], most: int) -> int:
    """Keep a pair if it is among the best; return 1 if a pair is removed."""
    if len(heap) < most:
        heappush(heap, pair)
        return 0
    if pair > heap[0]:
        heapreplace(heap, pair)
    return 1
