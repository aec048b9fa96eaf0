"""Finished runs: tables, comparison, gate, labels, HTML report and exports."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.report._rerun import repeated, rerun
    from mrag_eval.report._table import Cell, Row, Table, percent_cell, render
    from mrag_eval.report.comparison._baseline import write_baseline
    from mrag_eval.report.comparison._changed_gather import comparison_changes, gate_changes
    from mrag_eval.report.comparison._changed_rows import Changes
    from mrag_eval.report.comparison._changed_text import check_page_url
    from mrag_eval.report.comparison._compare import Comparison, Difference, compare, compare_tasks
    from mrag_eval.report.comparison._compare_text import comparison_text
    from mrag_eval.report.comparison._consistency import By, consistency, shown_consistency
    from mrag_eval.report.comparison._flips import flips, shown_flips
    from mrag_eval.report.comparison._gate import gate
    from mrag_eval.report.comparison._gate_init import starter_rules
    from mrag_eval.report.comparison._gate_rules import Check, GateResult, GateRules, read_rules
    from mrag_eval.report.comparison._gate_text import gate_lines, gate_markdown, github_annotations, junit
    from mrag_eval.report.exports._export import Options
    from mrag_eval.report.exports._formats import EXPORTS, export
    from mrag_eval.report.exports._latex import latex_tables
    from mrag_eval.report.files._passage_lengths import measure_lengths, write_lengths
    from mrag_eval.report.files._results import OUTCOMES, LeafResult, ResultFile, read_results
    from mrag_eval.report.files._sample import Sample
    from mrag_eval.report.files._samples import open_samples, read_once, read_samples, sample_files
    from mrag_eval.report.files._scores import load_results
    from mrag_eval.report.files._task_config import TaskConfig
    from mrag_eval.report.findings._find import findings_of
    from mrag_eval.report.findings._record import Finding, finding_lines, with_findings
    from mrag_eval.report.labels._corrected import corrected_table, read_labels_of, read_verdicts, write_label_sheet
    from mrag_eval.report.labels._inspection import write_inspection
    from mrag_eval.report.labels._inspection_counts import inspection_table, read_inspection
    from mrag_eval.report.labels._panel_agreement import agreement, write_pooled_sheet
    from mrag_eval.report.labels._people import judge_people, write_questions
    from mrag_eval.report.labels._rejudge import Rejudged, judge_claims, judge_contexts, judge_samples
    from mrag_eval.report.labels._rewrites import rewrites_report, shown_report
    from mrag_eval.report.labels._runs import annotate_files, shown_reports
    from mrag_eval.report.labels._support_agreement import of_whole_answers, support_agreement
    from mrag_eval.report.labels._triage import read_triage, write_triage
    from mrag_eval.report.page._changes import write_changes
    from mrag_eval.report.page._gather import page_data
    from mrag_eval.report.page._plot import Plot, plot
    from mrag_eval.report.page._score_table import opening, score_table, score_tables, short_tables
    from mrag_eval.report.page._write import write_report, write_tables
    from mrag_eval.report.tables._case import read_case, shown_case
    from mrag_eval.report.tables._controls import TaskControls, control_tables
    from mrag_eval.report.tables._layout_schema import LayoutTable, layout_names, load_layout
    from mrag_eval.report.tables._layouts import layout_tables
    from mrag_eval.report.tables._report_tables import report_tables
    from mrag_eval.report.verification._claims import SWITCHES
    from mrag_eval.report.verification._findings import Verified
    from mrag_eval.report.verification._unchecked import UNCHECKED
    from mrag_eval.report.verification._verify import unsupported, verify
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["read_results"]
