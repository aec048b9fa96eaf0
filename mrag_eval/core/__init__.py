"""Records that rooms hand each other, failures among them; languages; numbers and tables as text."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.core._failures import (
        BEFORE,
        CUT_OFF,
        FATES,
        OUTCOMES,
        STAGES,
        Failure,
        ModelReply,
        Stage,
        TextKind,
        failed_in,
        way_to,
    )
    from mrag_eval.core._grounding import SUPPORT, Claim, ClaimVerdict, Grounding, Judgement, Span, Vote, why_undecided
    from mrag_eval.core._languages import (
        ANY_LANGUAGE,
        CORAL_POOL,
        CORAL_TIERS,
        NO_SPACES,
        RESOURCE_GROUPS,
        base_language,
        is_language,
        iso_639_3,
        language_name,
        language_scripts,
        matching_languages,
        named_language,
        normalize_language,
        same_language,
        suggestion,
    )
    from mrag_eval.core._numbers import SHARE, Scale, decimal, interval_text, p_text, points, rounded, score_text
    from mrag_eval.core._passages import (
        ANSWERABLE,
        CONTROL,
        KEPT_LANGS,
        UNSURE_LANGUAGE,
        GivenPassage,
        Hit,
        Passage,
        RagDoc,
        check_id,
        titled,
    )
    from mrag_eval.core._rankings import (
        Kept,
        Ranked,
        Reranking,
        Retrieved,
        Searched,
        document_of,
        is_relevant,
        ranking_dict,
    )
    from mrag_eval.core._scored import (
        PAGE,
        Labels,
        LabelSource,
        RowScores,
        Scored,
        Value,
        can_be_score,
        labelled_name,
        not_finite,
        plain_name,
    )
    from mrag_eval.core._table_text import Displayed, as_html, columns, pipe_table
    from mrag_eval.core._thinking import MARKS, Marks, split_thinking
    from mrag_eval.core._traces import CRITERIA, AgentUsage, CriticScores, Trace, TracedHit, TracedQuestion, TracedRound
    from mrag_eval.core._verdicts import (
        LABEL_SHARE,
        VERDICTS,
        VOTED,
        YES_NO,
        Tie,
        VerdictScale,
        VerdictValue,
        as_verdict,
        majority_of,
    )
else:
    __getattr__, __dir__ = lazy_door(__name__)
