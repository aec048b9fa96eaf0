"""Vectors of recent queries: the modes of a suite ask the same questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

V = TypeVar("V")
_SIZE = 16_384
_MEMO: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def remembered(encoder: Any, texts: Sequence[str], encode: Callable[[list[str]], Iterable[V]]) -> list[V]:
    """Return a vector for each text; ``encode`` gets each new one once. Recent ones are kept within the process."""
    try:
        memo: dict[str, V] = _MEMO.setdefault(encoder, {})
    except TypeError:  # a caller's object that cannot be hashed or weakly referenced
        memo = {}
    known = {text: memo[text] for text in texts if text in memo}
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if new:
        known |= dict(zip(new, encode(new), strict=True))
    for text in new:
        if len(memo) >= _SIZE:
            del memo[next(iter(memo))]
        memo[text] = known[text]
    return [known[text] for text in texts]
