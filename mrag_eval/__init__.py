"""Evaluation of multilingual retrieval-augmented generation, as a plugin for lm-evaluation-harness.

Every name is loaded when it is first asked for, so that ``import mrag_eval`` itself costs next to nothing.
"""

import warnings
from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval._front import Results, RetrievedRun, Strategies, evaluate, retrieve, score, strategies
    from mrag_eval.core import Hit, Passage, RagDoc, Retrieved
    from mrag_eval.datasets import load_benchmark
    from mrag_eval.metrics import Estimate
    from mrag_eval.platform import MragError
    from mrag_eval.report import Comparison, GateResult, compare, gate, load_results, plot
    from mrag_eval.retrievers import load_index
    from mrag_eval.scoring import metric
    from mrag_eval.systems import SystemReply
else:
    __getattr__, __dir__ = lazy_door(__name__)

# a notebook without ipywidgets is told so by bars of other packages, which this one does not show
warnings.filterwarnings("ignore", message="IProgress not found")

__version__ = "0.1.0"
__all__ = [
    "Comparison",
    "Estimate",
    "GateResult",
    "Hit",
    "MragError",
    "Passage",
    "RagDoc",
    "Results",
    "Retrieved",
    "RetrievedRun",
    "Strategies",
    "SystemReply",
    "__version__",
    "compare",
    "evaluate",
    "gate",
    "load_benchmark",
    "load_index",
    "load_results",
    "metric",
    "plot",
    "retrieve",
    "score",
    "strategies",
]
