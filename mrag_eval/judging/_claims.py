"""Claims of answers before a panel: what the passages shown say of each, and which passage decides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mrag_eval import models
from mrag_eval.config import JUDGES, GroundedByPanel, Judge, judges_of
from mrag_eval.core import SUPPORT, Claim, ClaimVerdict, Grounding, Hit, Scored, Span, Tie, Vote
from mrag_eval.judging._panel import Panel
from mrag_eval.judging._rubrics import Case, Rubric, support_rubric
from mrag_eval.scoring import PanelShare, placed, with_grounding


@dataclass
class _PanelChecker:
    """A panel as a checker of claims: each is one request, whatever the other claims of its answer are.

    ``ledgers`` are the questions and the cost of each model so far.
    """

    panel: Panel
    rubric: Rubric[models.Verdict]
    tie: Tie
    name: str = "the panel"
    identity: Mapping[str, Any] = field(default_factory=dict)
    ledgers: Mapping[str, models.Ledger] = field(default_factory=dict)

    def findings(self, asked: Sequence[models.Asked]) -> list[tuple[Claim, ...] | str]:
        cases = [_case(one, claim) for one in asked for claim in one.claims]
        judgements, self.ledgers = self.panel.judge(self.rubric, cases, scale=SUPPORT)
        votes = iter([judgement.votes for judgement in judgements])
        return [tuple(voted_claim(claim, next(votes), self.tie) for claim in one.claims) for one in asked]


def _case(asked: models.Asked, claim: Span) -> Case:
    shown = tuple(
        {"text": text, "lang": lang, "title": "", "date": ""}
        for text, lang in zip(asked.passages, asked.langs, strict=True)
    )
    text = asked.answer[claim.start : claim.end]
    return Case("", asked.question, asked.lang, (), asked.answer, shown, claim=text)


def claims_judged(rows: Sequence[Scored], panel: Panel, block: Judge) -> tuple[list[Scored], PanelShare]:
    """Return the rows with the panel's verdicts on the claims of their answers, and one rank's share of its table.

    The claims of all rows are asked about at once. Replies are kept as every reply of a model is.
    """
    checker = _PanelChecker(panel, _rubric(block), block.tie)
    out = with_grounding(rows, checker, use_cache=False, at_once=max(1, len(rows)), languages=True)
    return out, PanelShare(panel.model_names, checker.ledgers, scale=SUPPORT)


def claims_by(panel: Panel, block: Judge) -> dict[str, Any]:
    """Return what decides the verdicts on claims: the judges, their prompt by its hash, and the rule of a tie."""
    judges, prompt = judges_of(panel.identities), _rubric(block).template.sha256
    return {JUDGES: judges, "prompt": prompt, "tie": block.tie}


def _rubric(block: Judge) -> Rubric[models.Verdict]:
    return support_rubric(block.claims_prompt or GroundedByPanel().prompt)


def voted_claim(claim: Span, votes: Mapping[str, Vote], tie: Tie) -> Claim:
    """Return a claim with the verdict of these votes, counted as labels are.

    On a tie it is not found, or it has no verdict, by ``tie``. Of the passages that the votes for the verdict name, the
    most frequent counts, the first of several.
    """
    verdict, outcome = SUPPORT.vote([vote.verdict for vote in votes.values()])
    if outcome == "tie" and tie == "incorrect":
        verdict = "not_found"
    named = Counter(v.passage for v in votes.values() if v.verdict == verdict and v.passage is not None)
    passage = min(named, key=lambda number: (-named[number], number), default=None)
    cast_votes = [vote.verdict for vote in votes.values() if vote.verdict is not None]
    support = cast_votes.count("supported") / len(cast_votes) if cast_votes else 0.0
    unsupported = () if verdict in (None, "supported") else (Span(claim.start, claim.end),)
    found = cast(ClaimVerdict | None, verdict)
    return Claim(claim.start, claim.end, found, support, passage, unsupported=unsupported, votes=votes)


def recounted(grounding: Grounding, tie: Tie, shown: Sequence[Hit]) -> Grounding:
    """Return the claims of an answer with the verdicts that their recorded votes make, and the passages they name.

    Votes for passages that were not ``shown`` do not count. Claims without votes keep their verdict.
    """
    claims = (
        voted_claim(one, {seat: _as_read(vote, len(shown)) for seat, vote in one.votes.items()}, tie)
        if one.votes
        else one
        for one in grounding.claims
    )
    return placed(replace(grounding, claims=tuple(claims)), shown)


def _as_read(vote: Vote, shown: int) -> Vote:
    """Return a recorded vote as a reply with its verdict and passage is read."""
    if vote.verdict in (None, "not_found"):
        return replace(vote, passage=None)
    named = vote.passage is not None and 0 < vote.passage <= shown
    return vote if named else Vote(None, vote.justification, "unreadable")
