"""Reports from result files: the tables of the papers, with their figures beside those of one's own runs."""

from mrag_eval.report.layouts import Layout, layout_names, layout_tables, load_layout
from mrag_eval.report.results import LeafResult, ResultFile, read_results
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
]
