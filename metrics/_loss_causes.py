"""Causes of a lost score: what changed between two runs of a row that got worse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Cause = Literal["retrieval", "reading", "language", "judging", "unknown"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
# What a metric judges: the passages found, the language of the answer, or the answer itself.
Subject = Literal["passages", "language", "answer"]


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """What is known of one row in one run; None where it is not known.

    Attributes:
        answer: the answer, to be compared as it stands.
        passages: the ids of the passages in the prompt, in order; empty without any.
        shown: a relevant passage is among them.
        right_language: the answer is in the language asked for.
    """

    answer: str | None = None
    passages: tuple[str, ...] | None = None
    shown: bool | None = None
    right_language: bool | None = None


def cause_of_loss(
    before: RowEvidence, after: RowEvidence, *, subject: Subject = "answer", judged: bool = False
) -> Cause:
    """Return why a row scores worse than before: the first of these rules that holds.

    1. ``judging``: a ``judged`` metric, and the same answer (for a metric of passages: the same passages).
    2. ``unknown``: the same answer by a metric that is not judged; or a judged metric, and one of the answers (one
       list of passages) is not known, since it may be the same.
    3. ``retrieval``: a metric of passages; or a relevant passage was shown before, and none is now.
    4. ``language``: the answer is in a wrong language now, and was not before.
    5. ``reading``: a relevant passage is shown now; or the same passages are shown in the same order.
    6. ``unknown``: the rest, as other passages are shown, and it is not known of both runs whether one is relevant,
       or none was.

    For a metric of the language of answers, 4 comes before 3. The rules follow the order of the pipeline, like the
    stages of :func:`~mrag_eval.metrics.error_attribution`, but compare two runs: a right answer has no stage there.
    """
    same_passages = before.passages is not None and before.passages == after.passages
    if subject == "passages" and judged:
        known = before.passages is not None and after.passages is not None
        return "unknown" if not known else "judging" if same_passages else "retrieval"
    if subject == "passages":
        return "retrieval"
    known = before.answer is not None and after.answer is not None
    if known and before.answer == after.answer:
        return "judging" if judged else "unknown"
    if judged and not known:
        return "unknown"
    other_language = after.right_language is False and before.right_language is not False
    if other_language and subject == "language":
        return "language"
    if before.shown and after.shown is False:
        return "retrieval"
    if other_language:
        return "language"
    return "reading" if after.shown or same_passages else "unknown"
