"""Statements of an answer in a reply: sentences that announce it or call it right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from mrag_eval.metrics._choice_labels import Mention
from mrag_eval.metrics._choice_mentions import Reply

SEVERAL: Final = -1
# The most characters between an announcing word and what it announces, and the fewest between two answers.
_NEAR, _APART = 25, 5


def stated(reply: Reply) -> tuple[int, int | None]:
    """Return the position and the option of the last statement of an answer: "The answer is B", "B is correct"."""
    found = [(start, _statement(reply, start, end)) for start, end in reply.answers]
    found += [(start, _conclusion(reply, start, end)) for start, end in reply.concludes]
    said = sorted((at, index) for at, index in found if index is not None)
    last = reply.mentions[-1] if reply.mentions else None
    if (
        last is not None
        and last.label
        and not last.out
        and not last.joined
        and not last.beside
        and _after_colon(reply, last)
    ):
        return last.start, last.index
    final = {index for at, index in said if reply.sentence(at) == reply.sentence(said[-1][0])}
    if len({index for _, index in said}) > 2 or len(final) > 1:
        return said[-1][0], SEVERAL
    return said[-1] if said else (-1, None)


def _after_colon(reply: Reply, mention: Mention) -> bool:
    """Return whether a mention ends the reply behind a colon, whatever announces it."""
    before = reply.text[max(0, mention.start - 8) : mention.start].rstrip(" *_(\"'")
    return before.endswith(":") and not any(map(str.isalnum, reply.text[mention.end :]))


def _conclusion(reply: Reply, start: int, end: int) -> int | None:
    """Return the only label of a conclusion that ends on it: "so B", "therefore (C) porridge"."""
    clause = reply.clause(start)
    behind = [m for m in reply.around(start) if m.start >= end and m.label and not m.out]
    if not behind or reply.clause(behind[0].start) != clause or clause in reply.denied or behind[0].start - end > _NEAR:
        return None
    rest = reply.text[behind[0].end : behind[0].end + 12]
    ends = re.match(r"[\s*_)\]\"'»”]*-?(?:[^\W\d_]{1,5})?[\s*_)\]\"'»”]*(?:$|[.,;:!?\n。、，।።۔()])", rest) is not None
    return behind[0].index if ends and len({m.index for m in behind}) == 1 else None


def _statement(reply: Reply, start: int, end: int) -> int | None:
    """Return the option that a sentence with an announcing word states; several for two at once."""
    clause = reply.clause(start)
    around = reply.around(start)
    live = [mention for mention in around if not mention.out]
    labels = [m for m in live if m.label]
    here = [m for m in labels if reply.clause(m.start) == clause]
    for chosen in (here, labels if clause not in reply.denied else []):
        if len({m.index for m in chosen}) == 1:
            return SEVERAL if _with_another(reply, chosen[0], around) else chosen[0].index
    if here:
        behind = [m for m in here if m.start >= end]
        return behind[0].index if behind and behind[0].start - end <= _NEAR and _alone(behind) else SEVERAL
    if labels:
        return None
    texts = [m for m in live if end <= m.start <= end + _NEAR and reply.clause(m.start) == clause]
    if texts and not any(m.joined for m in live if m.start > texts[0].start):
        return texts[0].index
    return None


def _alone(mentions: Sequence[Mention]) -> bool:
    """Return whether the second of some mentions, if there is one, is apart from the first."""
    if len(mentions) < 2:
        return True
    first, second = mentions[:2]
    return not (second.joined or second.beside) and second.start - first.end > _APART


def _with_another(reply: Reply, mention: Mention, around: Sequence[Mention]) -> bool:
    """Return whether another option is proposed with a mention, or its letter may be a word: "Answer: A dog"."""
    at = around.index(mention)
    pairs = [(mention, around[at - 1])] if at else []
    pairs += [(around[at + 1], around[at + 1])] if at + 1 < len(around) else []
    if any(
        (second.joined or second.beside) and not other.out and other.index != mention.index for second, other in pairs
    ):
        return True
    word = re.search(r":[\s*_]*[AEO]\s+[a-z]", reply.text[max(0, mention.end - 6) : mention.end + 3])
    texts = {m.index for m in around if not m.label and reply.clause(m.start) == reply.clause(mention.start)}
    return word is not None and bool(texts - {mention.index})
