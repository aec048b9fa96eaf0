"""Removal of near-duplicate questions."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from mrag_eval.building.steps._records import Settle, dropped, kept
from mrag_eval.building.xrag._xrag_records import LinkedQuestion


def drop_alike(items: Sequence[LinkedQuestion], threshold: float, settle: Settle) -> None:
    """Drop every question whose set of words is similar to that of an earlier one of its setting and language.

    Similar means a Jaccard similarity (shared words by all words) of at least ``threshold``, on normalised words in any
    script. Only the rarest words of a question are looked up: two similar sets share one of the first ``n - ⌈t·n⌉ +
    1``.
    """
    from mrag_eval.metrics import word_tokens

    sets = [frozenset(word_tokens(item.question, normalize="unicode", lang="en")) for item in items]
    frequency = Counter(word for words in sets for word in words)
    kept_by: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for position, (item, words) in enumerate(zip(items, sets, strict=True)):
        if not words:
            settle(item.id, dropped("empty question"))
            continue
        ranked = sorted(words, key=lambda word: (frequency[word], word))
        prefix = ranked[: len(ranked) - math.ceil(threshold * len(ranked) - 1e-9) + 1]
        near = {other for word in prefix for other in kept_by[item.setting, item.lang, word]}
        like = next((n for n in sorted(near) if len(words & sets[n]) >= threshold * len(words | sets[n]) - 1e-9), None)
        if like is not None:
            settle(item.id, dropped("like another question", items[like].id))
            continue
        for word in prefix:
            kept_by[item.setting, item.lang, word].append(position)
        settle(item.id, kept(item))
