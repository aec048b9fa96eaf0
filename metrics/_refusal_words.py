"""Replies that decline to answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from mrag_eval.metrics._choice_mentions import Reply, read
from mrag_eval.metrics._choice_statements import SEVERAL, stated
from mrag_eval.metrics._choice_texts import plain_text
from mrag_eval.metrics._choice_words import inside, lexicon

_LABELS = 8


def declines(text: str, lang: str | None = None, options: Sequence[str] = ()) -> bool:
    """Return whether a text declines to answer, in words of its language or of English.

    A text that names two options before it says so weighs them up, and one that calls two right gives two answers:
    neither declines.

    Args:
        text: the model's answer.
        lang: its language (BCP 47); None for English.
        options: texts of the options; without them only labels are found.
    """
    prepared = unicodedata.normalize("NFKC", text).replace("’", "'")
    reply = read(prepared, len(options) or _LABELS, [plain_text(option) for option in options], lexicon(lang))
    return refuses(reply)


def refuses(reply: Reply) -> bool:
    """Return whether a reply declines to answer, as :func:`declines` has it."""
    named = [(mention.start, mention.end) for mention in reply.mentions]
    found = [span for span in reply.refusals if not inside(named, span[0])]
    if not found:
        return False
    before = {mention.index for mention in reply.mentions if mention.start < found[0][0]}
    return len(before) < 2 and stated(reply)[1] != SEVERAL
