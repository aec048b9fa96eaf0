"""Sources of a task's passages, chosen once by the IR mode."""

from mrag_eval.retrieval.sources._choose import source_for
from mrag_eval.retrieval.sources._saved import Saved
from mrag_eval.retrieval.sources._source import Lacking, Relevant, Setup, Source

__all__ = ["Lacking", "Relevant", "Saved", "Setup", "Source", "source_for"]
