"""Translation of queries, documents and answers: by a model, a service or a table; cached, checked and counted."""

from mrag_eval.translate._backend import Backend, Outcome, Text
from mrag_eval.translate._table import load_table, table_lines, write_table
from mrag_eval.translate.build import build_translator
from mrag_eval.translate.translator import Translation, Translator, counts_line, total_counts

__all__ = [
    "Backend",
    "Outcome",
    "Text",
    "Translation",
    "Translator",
    "build_translator",
    "counts_line",
    "load_table",
    "table_lines",
    "total_counts",
    "write_table",
]
