"""Votes read again from the judges' replies that this machine has kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mrag_eval.config import Judge
from mrag_eval.core import Judgement, Scored, Vote
from mrag_eval.judging._contexts import context_case
from mrag_eval.judging._panel import Panel, kept_panel
from mrag_eval.judging._recount import case_of
from mrag_eval.judging._rubrics import Case, Rubric, sufficiency_rubric, verdict_rubric
from mrag_eval.models import NOT_KEPT, Verdict
from mrag_eval.platform import MragError

# Row by row, the votes of the seats whose replies are kept.
Kept = list[Mapping[str, Vote]]


def kept_votes(block: Judge, identities: Mapping[str, Any], rows: Sequence[Scored]) -> tuple[Kept, Kept] | None:
    """Return the votes on the answers of rows, and on the passages shown.

    None unless the judges of this machine are those of the recorded ``identities``.
    """
    try:
        panel = kept_panel(block)
        if panel is None or panel.identities != identities:
            return None
        country = block.sufficiency.country
        answers = _votes(panel, verdict_rubric(block.prompt, block.reply, block.scale), map(case_of, rows))
        cases = [context_case(row, country) for row in rows]
        return answers, _votes(panel, sufficiency_rubric(block.sufficiency.prompt), cases)
    except MragError:
        return None


def _votes(panel: Panel, rubric: Rubric[Verdict], cases: Iterable[Case | Judgement]) -> Kept:
    found, _ = panel.votes(rubric, list(cases))
    return [{seat: vote for seat, vote in votes.items() if vote.error != NOT_KEPT} for votes in found]
