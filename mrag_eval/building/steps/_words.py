"""Limits in words, in scripts with spaces and without; and how much of a text another one copies."""

from __future__ import annotations

import math
from functools import lru_cache

# Letters of scripts written without spaces to a word, about: "limit of 20 words" then means about as much text in
# Chinese as in English.
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
    """Words of a text in any script, rounded up over the text.

    Between spaces, every run of letters and digits in scripts that have spaces is one word (``Anna-Lena`` and ``12:30``
    too). Letters of scripts written without spaces count in proportion: 1.5 Han characters, 2 kana, or 4 Thai, Lao,
    Khmer or Burmese letters (marks aside) to a word.
    """
    spaced, unspaced = 0, 0.0
    for run in text.split():
        # words come back again and again, sentences without spaces do not
        inside, share = _remembered(run) if len(run) <= _SHORT else _counted(run)
        spaced += inside
        unspaced += share
    # 3 × 1/1.5 is a little more than 2 in floating point
    return spaced + math.ceil(unspaced - 1e-9)


def _counted(run: str) -> tuple[bool, float]:
    """Whether a run holds a letter or digit of a script with spaces, and its words in scripts without."""
    from mrag_eval.metrics import script

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
    """Share of the word n-grams of ``text`` that stand in ``source`` too: 1 is copied, 0 is wholly reworded.

    Words as in ``metrics.word_tokens`` with Unicode normalisation, a grapheme each in scripts without spaces; a text
    shorter than ``n`` words is taken as one gram.
    """
    from mrag_eval.metrics import word_tokens

    grams = _grams(word_tokens(text, normalize="unicode"), n)
    there = set(_grams(word_tokens(source, normalize="unicode"), min(n, len(grams[0]) if grams else n)))
    return sum(gram in there for gram in grams) / len(grams) if grams else 0.0


def _grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    if len(words) <= n:
        return [tuple(words)] if words else []
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
