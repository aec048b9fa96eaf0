"""Scoring: values for each row from replies and rankings, and a summary of rows with intervals."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.scoring._agents_table import loop_line
    from mrag_eval.scoring._answers import Answer, option_texts, parse_answer, reference_of
    from mrag_eval.scoring._control_kinds import CONTROLS, KINDS
    from mrag_eval.scoring._control_table import ceilings, control_marks, control_table, marked_by_controls
    from mrag_eval.scoring._failure_table import (
        bounds_with,
        failed_for_good,
        failure_line,
        lost_headline,
        tell_failures,
        unfound_line,
        vote_lines,
    )
    from mrag_eval.scoring._grounding import EVIDENCE, asked_about, context_pair, placed, with_grounding
    from mrag_eval.scoring._kernel import (
        Given,
        Missing,
        Read,
        Rules,
        read,
        records,
        row_record,
        row_scores,
        with_claims,
    )
    from mrag_eval.scoring._metrics import (
        METRICS,
        better_side,
        control_of,
        direction_lines,
        measured_on,
        more_is_better,
        nearer_zero_is_better,
        needs_of,
        read_by_words,
        scale_of,
        score_rows,
        support_by,
        value_names,
        words_of,
    )
    from mrag_eval.scoring._own_metrics import METRIC_NAMES, is_loaded, metric, tell_metrics
    from mrag_eval.scoring._panel_table import HumanAgreement, HumanLabel, against_human, panel_line, panel_of
    from mrag_eval.scoring._ranking import judged_ids, published_name
    from mrag_eval.scoring._reasons import (
        BY_RULE,
        DECLINED,
        EMPTY,
        NO_ANSWERS,
        NO_CORRECT,
        NOT_IN_LOG,
        OF_ANOTHER_RATE,
        UNDEFINED,
    )
    from mrag_eval.scoring._relevance_table import label_line
    from mrag_eval.scoring._reply_values import LanguageRule
    from mrag_eval.scoring._resamples import RESAMPLES
    from mrag_eval.scoring._row_records import (
        AnswerRecord,
        CitedAnswer,
        ControlRecord,
        JudgedRecord,
        LabellingShare,
        LabelRecord,
        PanelShare,
        PromptCounts,
        RowRecord,
        TerritoryAnswer,
        TerritoryQuestion,
        in_common,
        right_language,
        stage_of,
        sufficiency_record,
    )
    from mrag_eval.scoring._score_records import (
        MOST_FAILED,
        MOST_FAILED_IN_LANGUAGE,
        CitationTable,
        LabelTable,
        LanguageTable,
        LoopTable,
        MetricControls,
        MetricScore,
        PanelTable,
        TaskScores,
    )
    from mrag_eval.scoring._summary import halved_metrics, summarize, unscored_lines
    from mrag_eval.scoring._support_agreement import LabelledAnswer, LabelledSentence, SupportAgreement, against_labels
    from mrag_eval.scoring._task_level import (
        ANSWERED,
        TASK_MEASURES,
        check_task_scores,
        concurrence_table,
        reported_measures,
        skipped_territories,
        task_record,
        territory_values,
    )
    from mrag_eval.scoring._translated import with_translated_answers
else:
    __getattr__, __dir__ = lazy_door(__name__)
