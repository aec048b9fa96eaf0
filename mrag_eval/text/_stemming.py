"""Stems of words, by the Snowball algorithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mrag_eval.core import base_language, is_language, missing_extra, normalize_language

Stem = Callable[[str], str]


def stemmer(lang: str) -> Stem | None:
    """Return the function that reduces a lower-case word to its stem; None if Snowball lacks the language.

    Raise MissingExtraError if the extra ``stem`` is not installed.
    """
    return _stemmer(_algorithms().get(base_language(lang)))


def stem_languages() -> tuple[str, ...]:
    """Return the languages that the installed Snowball has an algorithm for. Raise MissingExtraError without it."""
    return tuple(sorted(_algorithms()))


@cache
def _algorithms() -> dict[str, str]:
    try:
        import snowballstemmer
    except ImportError as error:
        raise missing_extra("stem", "snowballstemmer") from error
    # the others are older algorithms, such as Porter's
    found = {normalize_language(name): name for name in snowballstemmer.algorithms() if is_language(name)}
    return found | ({"nn": found["nb"]} if "nb" in found else {})


@cache
def _stemmer(algorithm: str | None) -> Stem | None:
    if algorithm is None:
        return None
    import snowballstemmer

    word: Stem = snowballstemmer.stemmer(algorithm).stemWord
    return word
