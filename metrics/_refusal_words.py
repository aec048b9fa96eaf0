"""Replies that decline to answer."""

from __future__ import annotations

import re

from mrag_eval.metrics._choice_words import alternatives, nfkc, words_of

_REFUSAL = re.compile(alternatives(words_of("refuses")), re.IGNORECASE)


def declines(text: str) -> bool:
    """Return whether a text holds words that decline to choose, in one of the languages that are known."""
    return _REFUSAL.search(nfkc(text).replace("’", "'")) is not None
