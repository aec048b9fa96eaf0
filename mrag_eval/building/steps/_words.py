"""Word counts for scripts with and without spaces, and the share of a text that copies another."""

from __future__ import annotations

import math
from functools import lru_cache

# Approximate letters per word in scripts written without spaces, so that "limit of 20 words" means about as much text
# in Chinese as in English.
LETTERS_PER_WORD = {
    "Hani": 1.5,
    "Bopo": 1.5,
    "Hira": 2.0,
    "Kana": 2.0,
    "Thai": 4.0,
    "Laoo": 4.0,
    "Khmr": 4.0,
    "Mymr": 4.0,
}


def count_words(text: str) -> int:
    """Count the words of a text in any script, rounded up over the text.

    Between spaces, every run of letters and digits in scripts that have spaces is one word (``Anna-Lena`` and ``12:30``
    too). Letters of scripts written without spaces count in proportion: 1.5 Han characters, 2 kana, or 4 Thai, Lao,
    Khmer or Burmese letters (marks aside) per word.
    """
    spaced, unspaced = 0, 0.0
    for run in text.split():
        # words recur, sentences without spaces do not, so only words are worth caching
        inside, share = _remembered(run) if len(run) <= _SHORT else _counted(run)
        spaced += inside
        unspaced += share
    # 3 × 1/1.5 is slightly more than 2 in floating point
    return spaced + math.ceil(unspaced - 1e-9)


def _counted(run: str) -> tuple[bool, float]:
    """Return whether a run has a letter or digit of a script with spaces, and its word count in other scripts."""
    from mrag_eval.text import script

    inside, unspaced = False, 0.0
    for char in run:
        per_word = LETTERS_PER_WORD.get(script(char) or "")
        if per_word is not None:
            unspaced += 1 / per_word if char.isalpha() else 0.0
        elif char.isalnum():
            inside = True
    return inside, unspaced


_SHORT = 30
_remembered = lru_cache(maxsize=1 << 16)(_counted)


def copied_share(text: str, source: str, n: int = 4) -> float:
    """Return the share of the word n-grams of ``text`` that occur in ``source``: 1 is copied, 0 fully reworded.

    Words are those of ``metrics.word_tokens`` with Unicode normalisation, and single graphemes in scripts without
    spaces. A text shorter than ``n`` words counts as one gram.
    """
    from mrag_eval.metrics import word_tokens

    grams = _grams(word_tokens(text, normalize="unicode"), n)
    there = set(_grams(word_tokens(source, normalize="unicode"), min(n, len(grams[0]) if grams else n)))
    return sum(gram in there for gram in grams) / len(grams) if grams else 0.0


def _grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    if len(words) <= n:
        return [tuple(words)] if words else []
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
