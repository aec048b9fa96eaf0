"""What was found for the latest short texts, which several metrics ask for one after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# How many texts, and the longest of them in code points: 25 MB at most.
LATEST, LONGEST = 2048, 2000


def kept_for_short_texts(find: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Return a function of a text that remembers its latest results, except those for long texts.

    The result must depend on the arguments alone, and not be changed by who gets it.
    """
    kept = lru_cache(LATEST)(find)

    @wraps(find)
    def found(text: str, *args: P.args, **kwargs: P.kwargs) -> T:
        return kept(text, *args, **kwargs) if len(text) <= LONGEST else find(text, *args, **kwargs)

    return found
