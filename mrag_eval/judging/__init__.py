"""Judging: panels of models that vote on answers, contexts and passages."""

from mrag_eval.judging._answers import judged, language_check
from mrag_eval.judging._contexts import sufficiency_judged
from mrag_eval.judging._panel import EXAMPLE, Panel, build_panel, named_judges
from mrag_eval.judging._recount import Recount, Votes
from mrag_eval.judging._rubrics import Case, Rubric, verdict_rubric
from mrag_eval.judging._stage import Verdicts

__all__ = [
    "EXAMPLE",
    "Case",
    "Panel",
    "Recount",
    "Rubric",
    "Verdicts",
    "Votes",
    "build_panel",
    "judged",
    "language_check",
    "named_judges",
    "sufficiency_judged",
    "verdict_rubric",
]
