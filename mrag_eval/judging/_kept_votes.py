"""Votes read again from the judges' replies: those that this machine has kept, else those in the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.config import Judge
from mrag_eval.core import Judgement, Scored, Vote, failed_in, way_to
from mrag_eval.judging._claims import cases_of, claims_rubric
from mrag_eval.judging._panel import Panel, kept_panel, vote_of
from mrag_eval.judging._recount import NOTHING_SHOWN, Decided, Recount, case_of
from mrag_eval.judging._rubrics import Case, Rubric, sufficiency_rubric, verdict_rubric
from mrag_eval.models import NOT_KEPT, Answered, Reply, Verdict
from mrag_eval.platform import HIDDEN, ConfigError, MragError
from mrag_eval.scoring import PanelShare

# Row by row, votes by seat.
Votes = list[Mapping[str, Vote]]
# What a vote says of a reply that its words alone do not tell.
_CUT = "unreadable: it was cut off"


def votes_again(
    block: Judge, identities: Mapping[str, Any], rows: Sequence[Scored], answers: Votes, passages: Votes
) -> tuple[Votes, Votes, Votes] | None:
    """Return the votes on the answers of rows, on the passages shown, and on claims, as the rubrics here read replies.

    They are the replies in the cache of this machine, if its judges are those of the recorded ``identities``, else
    those of the recorded votes. Those that were cut off, or of which a secret is hidden, are left out. Votes on claims
    are those of the rows, named by claim and seat. None without the rubrics.
    """
    try:
        panel = kept_panel(block)
    except ConfigError:
        panel = None
    panel = panel if panel is not None and panel.identities == identities else None
    try:
        verdicts = verdict_rubric(block.prompt, block.reply, block.scale)
        contexts = [context_case(row, block.sufficiency.country) for row in rows]
        said = [row.grounding.claims if row.grounding is not None else () for row in rows]
        cases = [case for row in rows for case in cases_of(row)]
        again = iter(_read(panel, claims_rubric(block), cases, [claim.votes for claims in said for claim in claims]))
        return (
            _read(panel, verdicts, [case_of(row) for row in rows], answers),
            _read(panel, sufficiency_rubric(block.sufficiency.prompt), contexts, passages),
            [
                {f"{n}.votes.{seat}": vote for n, _ in enumerate(claims) for seat, vote in next(again).items()}
                for claims in said
            ],
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


_SHOWN = way_to("translation of documents")


def sufficiency_judged(rows: Sequence[Scored], panel: Panel, block: Judge) -> tuple[list[Scored], PanelShare]:
    """Return the rows with the panel's judgement of their passages, and one rank's share of the panel's table.

    The passages are those that go into the prompt, before any shortening. The panel sees neither the reference answers
    nor the model's (XRAG, Appendix A). An empty search result is insufficient, and no judge is asked. Nor is one about
    passages that a failed step left.
    """
    settings = block.sufficiency
    asked = [i for i, row in enumerate(rows) if failed_in(row.failures, _SHOWN) is None]
    cases = [context_case(rows[i], settings.country) for i in asked]
    votes, ledgers = panel.votes(sufficiency_rubric(settings.prompt), cases)
    said = dict(zip(asked, votes, strict=True))
    out = Recount(block).of(rows, [Decided(passages=said.get(i)) for i in range(len(rows))])
    return out, PanelShare(panel.model_names, ledgers, came_back=panel.take())


def context_case(row: Scored, country: str | None) -> Case | Judgement:
    """Return what the panel is asked about the passages shown, or the judgement of an empty search result."""
    if not row.passages:
        return NOTHING_SHOWN
    where = str(row.doc.extra.get("country") or country or "").replace("_", " ")
    return Case.of(row.doc, passages=row.passages, country=where)
