"""The normaliser ``unicode`` of answers: one form for spellings of the same, in every script, and no form for two
things that readers tell apart.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from mrag_eval.core import base_language
from mrag_eval.metrics._numbers import UNITS, numbers_apart, spaced_digits, units_joined
from mrag_eval.metrics._punctuation import Punctuation
from mrag_eval.text import fold, marks, one_spelling

# Part of what a number of this normaliser measures: raise it with any change of a rule. 2: numbers, units, signs that
# distinguish, spellings that an orthography leaves open.
UNICODE_VERSION = 2


# a sign between two numbers must not join them
_BETWEEN_WORDS = Punctuation(frozenset({"Sm", "^"}), UNITS)
_MARK = re.compile("[\u0300-\u036fๆໆ]")
_UNIT = re.compile(f"[{UNITS}]")
# Signs that make another name of a letter or number: C++, C#, A+, 18+; the sharp of music is written for #
_DISTINGUISHING = re.compile(r"((?<=[^\W_])[+#♯]+)")
_ARTICLES = re.compile(r"(?<!\w)(?:a|an|the)(?![\w+#])")
# Languages in which an apostrophe ends an article or preposition (l'Afrique, dell'arte) or begins the ending of a name
# (İstanbul'da).
_SEPARATING = ("fr", "it", "ca", "oc", "tr", "az")


def normalize_unicode(text: str, lang: str | None) -> str:
    """Return the form of a text in which answers in ``lang`` (BCP 47; None: unknown) are compared.

    See :func:`mrag_eval.metrics.normalize_answer`.
    """
    found = _once(text, lang)
    # a letter may meet a mark, another letter of its spelling, or a sign of repetition, that punctuation kept apart
    met = not text.isascii() and _kept_apart().search(text) is not None
    while met or _MARK.search(found) or not unicodedata.is_normalized("NFKC", found):
        again = _once(found, lang)
        if again == found:
            break
        found, met = again, False
    return found


@lru_cache(maxsize=1)
def _kept_apart() -> re.Pattern[str]:
    """Return what finds punctuation within a word, or in front of a mark."""
    part = rf"[\w{marks()}]"
    return re.compile(rf"{part}[^\w\s{marks()}]+{part}")


def _once(text: str, lang: str | None) -> str:
    base = None if lang is None else base_language(lang)
    folded = fold(spaced_digits(text), lang)
    pieces = numbers_apart(folded, lang)
    for at in range(0, len(pieces), 2):
        pieces[at] = _words(
            pieces[at], after_number=pieces[at - 1][-1:].isdigit() if at else False, separating=base in _SEPARATING
        )
    text = " ".join("".join(pieces).split())
    if _UNIT.search(text):
        text = units_joined(text)
    if base == "en":
        text = " ".join(_ARTICLES.sub(" ", text).split())
    return one_spelling(text, lang)


def _words(text: str, *, after_number: bool, separating: bool) -> str:
    """Return the text between two numbers without punctuation, with signs that distinguish what is before them."""
    if not text or text.isalnum():
        return text
    if separating:
        text = text.replace("'", " ")
    # the number before it counts as a letter
    parts = _DISTINGUISHING.split(f"0{text}" if after_number else text)
    parts[::2] = [part.translate(_BETWEEN_WORDS) for part in parts[::2]]
    parts[1::2] = [part.replace("♯", "#") for part in parts[1::2]]
    joined = "".join(parts)
    return joined[1:] if after_number else joined
