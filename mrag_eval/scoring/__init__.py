"""Scoring: values for each row from replies and rankings, and a summary of rows with intervals."""

from mrag_eval.scoring._agents_table import loop_line
from mrag_eval.scoring._answers import Answer, outcome_of, parse_answer, reference_of
from mrag_eval.scoring._failure_table import bounds_with, failure_line
from mrag_eval.scoring._likelihood import most_likely, option_texts
from mrag_eval.scoring._metrics import (
    METRIC_NAMES,
    METRICS,
    REPLY_METRICS,
    LanguageRule,
    measured_on,
    needs_of,
    scale_of,
    score_rows,
    value_names,
)
from mrag_eval.scoring._panel_table import HumanAgreement, HumanLabel, against_human, panel_line
from mrag_eval.scoring._ranking import judged_ids, published_name
from mrag_eval.scoring._reasons import DECLINED, EMPTY, NO_ANSWERS
from mrag_eval.scoring._relevance_table import label_line
from mrag_eval.scoring._resamples import RESAMPLES
from mrag_eval.scoring._row_records import (
    AnswerRecord,
    JudgedRecord,
    LabellingShare,
    LabelRecord,
    PanelShare,
    PromptCounts,
    RowRecord,
    Territory,
    TerritoryAnswer,
    sufficiency_record,
)
from mrag_eval.scoring._score_records import (
    MOST_FAILED,
    MOST_FAILED_IN_LANGUAGE,
    CitationTable,
    LabelTable,
    LanguageTable,
    LoopTable,
    MetricScore,
    PanelTable,
    TaskScores,
)
from mrag_eval.scoring._summary import halved_metrics, row_record, summarize, unscored_lines
from mrag_eval.scoring._task_level import (
    ANSWERED,
    TASK_MEASURES,
    check_task_scores,
    concurrence_table,
    refusal_in,
    reported_measures,
    skipped_territories,
    task_record,
    territory_values,
)
from mrag_eval.scoring._translated import with_translated_answers

__all__ = [
    "ANSWERED",
    "DECLINED",
    "EMPTY",
    "METRICS",
    "METRIC_NAMES",
    "MOST_FAILED",
    "MOST_FAILED_IN_LANGUAGE",
    "NO_ANSWERS",
    "REPLY_METRICS",
    "RESAMPLES",
    "TASK_MEASURES",
    "Answer",
    "AnswerRecord",
    "CitationTable",
    "HumanAgreement",
    "HumanLabel",
    "JudgedRecord",
    "LabelRecord",
    "LabelTable",
    "LabellingShare",
    "LanguageRule",
    "LanguageTable",
    "LoopTable",
    "MetricScore",
    "PanelShare",
    "PanelTable",
    "PromptCounts",
    "RowRecord",
    "TaskScores",
    "Territory",
    "TerritoryAnswer",
    "against_human",
    "bounds_with",
    "check_task_scores",
    "concurrence_table",
    "failure_line",
    "halved_metrics",
    "judged_ids",
    "label_line",
    "loop_line",
    "measured_on",
    "most_likely",
    "needs_of",
    "option_texts",
    "outcome_of",
    "panel_line",
    "parse_answer",
    "published_name",
    "reference_of",
    "refusal_in",
    "reported_measures",
    "row_record",
    "scale_of",
    "score_rows",
    "skipped_territories",
    "sufficiency_record",
    "summarize",
    "task_record",
    "territory_values",
    "unscored_lines",
    "value_names",
    "with_translated_answers",
]
