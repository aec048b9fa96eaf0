"""Input and result of scoring one row, with the labels that documents have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mrag_eval.core._failures import Failure
from mrag_eval.core._grounding import Grounding, Judgement
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


# The key of a row's extra facts that names the page, by document id, on which its answer is found.
PAGE = "page"
LabelSource = Literal["judge", "proxy", "translated", "page"]
# Endings of the names of measures, by the source of their labels.
_SUFFIXES: Mapping[LabelSource | None, str] = {
    "proxy": "_proxy",
    "translated": "_proxy_translated",
    "page": "_proxy_page",
}


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of one row. ``judged`` are the ids examined, ``relevant`` those of them that answer the question.

    ``fault`` is the reason for missing labels. ``votes`` holds the reply of each seat of a panel: passage numbers from
    1, or the reason of an abstention.
    """

    by: LabelSource
    judged: tuple[str, ...] = ()
    relevant: frozenset[str] = frozenset()
    fault: str | None = None
    votes: Mapping[str, tuple[int, ...] | str] = field(default_factory=dict)

    @property
    def grades(self) -> dict[str, int]:
        """Return graded judgements for the ranking measures: 1 or 0 for every examined id."""
        return {passage: int(passage in self.relevant) for passage in self.judged}


def plain_name(metric: str) -> str:
    """Return the name of a measure without the mark of its labels."""
    return metric.partition("_proxy")[0]


def labelled_name(metric: str, by: LabelSource | None) -> str:
    """Return the name of a ranking measure, marked if its labels are not a panel's."""
    return metric + _SUFFIXES.get(by, "")
