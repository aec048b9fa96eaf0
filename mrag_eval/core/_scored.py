"""Input and result of scoring one row."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mrag_eval.core._failures import Failure
from mrag_eval.core._grounding import Grounding
from mrag_eval.core._judgements import Judgement
from mrag_eval.core._labels import Labels
from mrag_eval.core._passages import Hit, RagDoc
from mrag_eval.core._rankings import Ranked, Reranking

Value = float | str  # a score, or the reason for its absence


def can_be_score(value: float) -> bool:
    """Return whether a number is finite, also in percent."""
    try:
        return math.isfinite(100.0 * value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def not_finite(value: float) -> str:
    """Return the reason for the absence of a score that was computed as ``nan``, infinite or too large for percent."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"the score is {value}, which is not a finite number"
    return "the score is too large to be one"


@dataclass(frozen=True, slots=True)
class Scored:
    """Input to the metrics for one row: the question, the parsed answer, and the ranking (empty without a search).

    ``passages`` are those in the prompt.
    ``tagged`` and ``declined`` as in :class:`~mrag_eval.scoring.Answer`. ``judgement`` is the panel's, None without a
    panel; ``in_language`` is the result of the judge block's language check, None without one, and ``detected`` the
    language that the check found, None also for an answer without letters. ``labels`` mark the relevant passages of the
    ranking; with None the document's own ``relevant_ids`` do. ``reranked`` is the result of the second stage, None
    without one. ``form`` is the position of the answer in the reply (the ``prompt`` block's ``answer``).
    ``sufficiency`` is the panel's judgement of the passages shown, None if it was not requested. ``translated`` is the
    answer in the language of the reference answers, ``untranslated`` the reason for its absence; both are None if
    translation was not requested. ``failures`` are those of all stages so far, in the order of the pipeline.
    ``grounding`` are the answer's claims beside the passages, None if no classifier read them.
    ``elsewhere`` are the quotes that passages of other rows hold; with None, the rows that are scored together are all
    there are. ``cut_off`` is whether the reply ended at its length.
    """

    doc: RagDoc
    answer: str
    ranking: tuple[Ranked, ...] = ()
    tagged: bool | None = None
    declined: bool | None = None
    judgement: Judgement | None = None
    in_language: Value | None = None
    detected: str | None = None
    labels: Labels | None = None
    reranked: Reranking | None = None
    form: str = "plain"
    sufficiency: Judgement | None = None
    translated: str | None = None
    untranslated: str | None = None
    failures: tuple[Failure, ...] = ()
    passages: tuple[Hit, ...] = ()
    elsewhere: frozenset[str] | None = None
    grounding: Grounding | None = None
    cut_off: bool = False


@dataclass
class RowScores:
    """Scores of one row: a float for each scored metric, else an entry in ``unscored`` with the reason."""

    values: dict[str, float] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)
