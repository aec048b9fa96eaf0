"""Replies that decline to answer."""

from __future__ import annotations

from bisect import bisect_left

from mrag_eval.metrics._choice_mentions import read
from mrag_eval.metrics._choice_statements import SEVERAL, stated
from mrag_eval.metrics._choice_words import lexicon, normal

_LABELS = 8


def declines(text: str, lang: str | None = None) -> bool:
    """Return whether a text declines to answer, in words of its language or of English.

    A text that names two options before it declines to prefer one, or calls two right, does not: it gives two answers.

    Args:
        text: the model's answer.
        lang: its language (BCP 47); None for English.
    """
    folded = normal(text)
    found = lexicon(lang).spans(folded, "refuses")
    if not found:
        return False
    reply = read(text, _LABELS, (), lang)
    before = reply.mentions[: bisect_left([mention.start for mention in reply.mentions], found[0][0])]
    return len({mention.index for mention in before}) < 2 and stated(reply)[1] != SEVERAL
