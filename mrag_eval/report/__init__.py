"""Reports from result files: scores, the tables of the papers with one's own figures beside theirs, an HTML page."""

from mrag_eval.report.layouts import Layout, layout_names, layout_tables, load_layout
from mrag_eval.report.results import LeafResult, ResultFile, read_results
from mrag_eval.report.scores import score_table
from mrag_eval.report.tables import FORMATS, Cell, Row, Table, render

__all__ = [
    "FORMATS",
    "Cell",
    "Layout",
    "LeafResult",
    "ResultFile",
    "Row",
    "Table",
    "layout_names",
    "layout_tables",
    "load_layout",
    "read_results",
    "render",
    "score_table",
]
