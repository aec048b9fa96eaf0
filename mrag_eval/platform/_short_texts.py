"""What was found for the latest short texts, which several metrics ask for one after another."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TypeVar

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")

# How many texts, and the longest of them in code points: 25 MB at most.
LATEST, LONGEST = 2048, 2000


def kept_for_short_texts(find: Callable[[str, S], T]) -> Callable[[str, S], T]:
    """Return a function of a text and a setting that remembers its latest results, except those for long texts.

    A result must depend on both alone, and nobody may change it.
    """
    kept = lru_cache(LATEST)(find)

    def found(text: str, setting: S) -> T:
        return kept(text, setting) if len(text) <= LONGEST else find(text, setting)

    return found
