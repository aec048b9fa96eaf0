"""Votes read again from the judges' replies: those that this machine has kept, else those in the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.config import Judge
from mrag_eval.core import Judgement, Scored, Vote
from mrag_eval.judging._contexts import context_case
from mrag_eval.judging._panel import Panel, kept_panel, vote_of
from mrag_eval.judging._recount import case_of
from mrag_eval.judging._rubrics import Case, Rubric, sufficiency_rubric, verdict_rubric
from mrag_eval.models import NOT_KEPT, Answered, Reply, Verdict
from mrag_eval.platform import HIDDEN, ConfigError, MragError

# Row by row, votes by seat.
Votes = list[Mapping[str, Vote]]
# What a vote says of a reply that its words alone do not tell.
_CUT = "unreadable: it was cut off"


def votes_again(
    block: Judge, identities: Mapping[str, Any], rows: Sequence[Scored], answers: Votes, passages: Votes
) -> tuple[Votes, Votes] | None:
    """Return the votes on the answers of rows, and on the passages shown, as the rubrics here read their replies.

    They are the replies in the cache of this machine, if its judges are those of the recorded ``identities``, else
    those of the recorded votes. Those that were cut off, or of which a secret is hidden, are left out. None without the
    rubrics.
    """
    try:
        panel = kept_panel(block)
    except ConfigError:
        panel = None
    panel = panel if panel is not None and panel.identities == identities else None
    try:
        verdicts = verdict_rubric(block.prompt, block.reply, block.scale)
        contexts = [context_case(row, block.sufficiency.country) for row in rows]
        return (
            _read(panel, verdicts, [case_of(row) for row in rows], answers),
            _read(panel, sufficiency_rubric(block.sufficiency.prompt), contexts, passages),
        )
    except MragError:
        return None


def _read(panel: Panel | None, rubric: Rubric[Verdict], cases: Sequence[Case | Judgement], said: Votes) -> Votes:
    kept = [{} for _ in cases] if panel is None else panel.votes(rubric, cases)[0]
    out: Votes = []
    for case, votes, own in zip(cases, said, kept, strict=True):
        again: dict[str, Vote] = {}
        read = rubric.request(case)[1] if isinstance(case, Case) and votes else None
        for seat, vote in votes.items():
            if seat in own and own[seat].error != NOT_KEPT:
                again[seat] = own[seat]
            elif read is not None and vote.reply is not None and not str(vote.error).startswith(_CUT):
                found = read(vote.reply)
                fault = None if found.error is None else f"unreadable: {found.error}"
                again[seat] = vote_of(Answered(found.value, fault, (Reply(vote.reply),)))
        out.append({seat: vote for seat, vote in again.items() if HIDDEN not in (votes[seat].reply or "")})
    return out
