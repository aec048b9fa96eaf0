"""Claims of answers before a panel: what the passages shown say of each, and which passage decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrag_eval import models
from mrag_eval.config import JUDGES, GroundedByPanel, Judge, judges_of
from mrag_eval.core import SUPPORT, Claim, Scored, Span
from mrag_eval.judging._panel import Panel
from mrag_eval.judging._recount import Decided, Recount
from mrag_eval.judging._rubrics import Case, Rubric, support_rubric
from mrag_eval.scoring import PanelShare, asked_about, with_grounding


@dataclass
class _PanelChecker:
    """A panel that votes on claims: each is one request, whatever the other claims of its answer are.

    ``ledgers`` are the questions and the cost of each model so far.
    """

    panel: Panel
    rubric: Rubric[models.Verdict]
    name: str = "the panel"
    identity: Mapping[str, Any] = field(default_factory=dict)
    ledgers: Mapping[str, models.CallCounts] = field(default_factory=dict)

    def findings(self, asked: Sequence[models.Asked]) -> list[tuple[Claim, ...] | str]:
        cases = [_case(one, claim) for one in asked for claim in one.claims]
        found, self.ledgers = self.panel.votes(self.rubric, cases)
        votes = iter(found)
        return [
            tuple(Claim(claim.start, claim.end, None, 0.0, votes=next(votes)) for claim in one.claims) for one in asked
        ]


def cases_of(row: Scored) -> list[Case]:
    """Return what a panel was asked about each of the claims that a row has."""
    if row.grounding is None:
        return []
    asked = asked_about(row, row.grounding.lang, languages=True)
    return [_case(asked, claim) for claim in row.grounding.claims]


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
    checker = _PanelChecker(panel, claims_rubric(block))
    asked = with_grounding(rows, checker, use_cache=False, at_once=max(1, len(rows)), languages=True)
    out = Recount(block).of(rows, [Decided(claims=row.grounding) for row in asked])
    return out, PanelShare(panel.model_names, checker.ledgers, None, SUPPORT, panel.take())


def claims_by(panel: Panel, block: Judge) -> dict[str, Any]:
    """Return what decides the verdicts on claims: the judges, their prompt by its hash, and the rule of a tie."""
    judges, prompt = judges_of(panel.identities), claims_rubric(block).template.sha256
    return {JUDGES: judges, "prompt": prompt, "tie": block.tie}


def claims_rubric(block: Judge) -> Rubric[models.Verdict]:
    """Return the rubric of claims that a block names, or the package's."""
    return support_rubric(block.claims_prompt or GroundedByPanel().prompt)
