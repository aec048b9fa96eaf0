"""The Python interface: evaluate a model, retrieve without one, score replies that are there, read finished runs."""

from mrag_eval._front._evaluate import evaluate
from mrag_eval._front._results import Results
from mrag_eval._front._retrieve import RetrievedRun, retrieve
from mrag_eval._front._score import score

__all__ = ["Results", "RetrievedRun", "evaluate", "retrieve", "score"]
