"""Judging: panels of models that vote on answers, contexts and passages."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.judging._answers import LanguageCheck, judged, language_check
    from mrag_eval.judging._claims import claims_by, claims_judged
    from mrag_eval.judging._kept_votes import sufficiency_judged, votes_again
    from mrag_eval.judging._panel import EXAMPLE, Panel, build_panel, kept_panel, named_judges
    from mrag_eval.judging._recount import Decided, Recount, case_of
    from mrag_eval.judging._rubrics import (
        Case,
        Rubric,
        relevance_rubric,
        sufficiency_rubric,
        support_rubric,
        verdict_rubric,
    )
    from mrag_eval.judging._stage import JudgingStage, prompt_texts, seat_texts
else:
    __getattr__, __dir__ = lazy_door(__name__)
