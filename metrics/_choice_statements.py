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
    found = ((start, _statement(reply, start, end)) for start, end in reply.answers)
    said = [(at, index) for at, index in found if index is not None]
    return said[-1] if said else (-1, None)


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
    return not second.joined and second.start - first.end > _APART


def _with_another(reply: Reply, mention: Mention, around: Sequence[Mention]) -> bool:
    """Return whether another option is proposed with a mention, or its letter may be a word: "Answer: A dog"."""
    at = around.index(mention)
    # a join connects the second of two mentions to the first
    pairs = [(mention, other) for other in around[max(0, at - 1) : at]]
    pairs += [(other, other) for other in around[at + 1 : at + 2]]
    if any(second.joined and not other.out and other.index != mention.index for second, other in pairs):
        return True
    return re.search(r":[\s*_]*[AEO]\s+[a-z]", reply.text[max(0, mention.end - 6) : mention.end + 3]) is not None
