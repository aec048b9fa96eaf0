"""Replies that decline to answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from mrag_eval.metrics._choice_labels import Mention
from mrag_eval.metrics._choice_sentences import SEVERAL, Reply
from mrag_eval.metrics._choice_texts import plain_text
from mrag_eval.metrics._choice_words import Lexicon, fold, inside, lexicon

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
    words = lexicon(lang)
    reply = Reply(prepared, len(options) or _LABELS, [plain_text(option) for option in options], words)
    said = reply.stated()[1]
    mentions = [mention for sentence in reply.sentences() for mention in sentence.mentions]
    return said != SEVERAL and refuses(fold(prepared), mentions, words)


def refuses(folded: str, mentions: Sequence[Mention], words: Lexicon) -> bool:
    """Return whether a reply declines to answer, as :func:`declines` has it."""
    named = [(mention.start, mention.end) for mention in mentions]
    found = [start for start, _ in words.spans(folded)["refuses"] if not inside(named, start)]
    return bool(found) and len({mention.index for mention in mentions if mention.start < found[0]}) < 2
