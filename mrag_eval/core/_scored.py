"""What is scored of a row, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mrag_eval.core._judgements import Judgement
from mrag_eval.core._labels import Labels
from mrag_eval.core._passages import RagDoc
from mrag_eval.core._rankings import Ranked, Reranking

Value = float | str  # a score, or the reason why there is none


@dataclass(frozen=True, slots=True)
class Scored:
    """What is scored of one row: the question, the answer read off the reply, the ranking (empty without a search).

    ``tagged`` and ``declined`` as in :class:`~mrag_eval.scoring.Answer`. ``judgement`` is the panel's, None without a
    panel; ``in_language`` what the judge block's language check found, None without one. ``labels`` say which passages
    of the ranking are relevant; None where the document's own ``relevant_ids`` do. ``reranked`` is what the second
    stage made of the ranking, None without one. ``form`` is where the answer stands in the reply (the ``prompt``
    block's ``answer``). ``sufficiency`` is the panel's word on the passages shown, None where it was not asked for.
    ``translated`` is the answer in the language of the reference answers, ``untranslated`` why there is none; both None
    where that was not asked for.
    """

    doc: RagDoc
    answer: str
    ranking: tuple[Ranked, ...] = ()
    tagged: bool | None = None
    declined: bool = False
    judgement: Judgement | None = None
    in_language: Value | None = None
    labels: Labels | None = None
    reranked: Reranking | None = None
    form: str = "plain"
    sufficiency: Judgement | None = None
    translated: str | None = None
    untranslated: str | None = None


@dataclass
class RowScores:
    """Per-row outcome: a float where scored, else an entry in ``unscored`` with the reason."""

    values: dict[str, float] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)
