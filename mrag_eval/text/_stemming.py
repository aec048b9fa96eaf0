"""Stems of words, by the Snowball algorithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mrag_eval.core import base_language, is_language, normalize_language

# Languages in which stems find the paragraphs of XQuAD's questions at higher places: the interval of the difference in
# MRR is above 0 (benchmarks/lexical_languages.py). Others that Snowball knows were not measured.
# Each with the name of its algorithm.
_MEASURED = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "hi": "hindi",
    "ru": "russian",
    "tr": "turkish",
}
STEMMED = tuple(_MEASURED)

Stem = Callable[[str], str]


def stemmer(lang: str) -> Stem | None:
    """Return the function that reduces a lower-case word to its stem; None if Snowball lacks the language."""
    base = base_language(lang)
    return _stemmer(_MEASURED.get(base) or _algorithms().get(base))


@cache
def _algorithms() -> dict[str, str]:
    import snowballstemmer

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
