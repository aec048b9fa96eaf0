"""Scoring: values for each row from replies and rankings, and a summary of rows with intervals."""

from mrag_eval.scoring._agents_table import loop_line
from mrag_eval.scoring._answers import Answer, parse_answer, reference_of
from mrag_eval.scoring._likelihood import most_likely, option_texts
from mrag_eval.scoring._metrics import (
    DECLINED,
    EMPTY,
    METRIC_NAMES,
    METRICS,
    NO_ANSWERS,
    REPLY_METRICS,
    LanguageRule,
    scale_of,
    score_rows,
    value_names,
)
from mrag_eval.scoring._panel_table import HumanAgreement, against_human, panel_line
from mrag_eval.scoring._ranking import judged_ids, published_name
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
    TASK_MEASURES,
    check_task_scores,
    reported_measures,
    skipped_territories,
    task_record,
    territory_values,
)
from mrag_eval.scoring._translated import with_translated_answers

__all__ = [
    "DECLINED",
    "EMPTY",
    "METRICS",
    "METRIC_NAMES",
    "NO_ANSWERS",
    "REPLY_METRICS",
    "RESAMPLES",
    "TASK_MEASURES",
    "Answer",
    "AnswerRecord",
    "CitationTable",
    "HumanAgreement",
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
    "check_task_scores",
    "halved_metrics",
    "judged_ids",
    "label_line",
    "loop_line",
    "most_likely",
    "option_texts",
    "panel_line",
    "parse_answer",
    "published_name",
    "reference_of",
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
