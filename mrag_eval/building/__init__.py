"""Building fresh benchmarks: pipelines of steps, resumable, with what each step took, made and dropped."""

from mrag_eval.building.asking import Ask, ask_items, failure, fault, model_identity, shown_model
from mrag_eval.building.datasheet import write_datasheet, yield_table
from mrag_eval.building.records import Drop, Outcome, Record, Settle, attempted, dropped, each, kept
from mrag_eval.building.steps import Say, Step, StepReport, read_records, report_line, run_steps, step_records
from mrag_eval.building.templates import Prompts
from mrag_eval.building.words import copied_share, count_words

__all__ = [
    "Ask",
    "Drop",
    "Outcome",
    "Prompts",
    "Record",
    "Say",
    "Settle",
    "Step",
    "StepReport",
    "ask_items",
    "attempted",
    "copied_share",
    "count_words",
    "dropped",
    "each",
    "failure",
    "fault",
    "kept",
    "model_identity",
    "read_records",
    "report_line",
    "run_steps",
    "shown_model",
    "step_records",
    "write_datasheet",
    "yield_table",
]
