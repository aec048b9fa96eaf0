"""Evaluation of multilingual retrieval-augmented generation, as a plugin for lm-evaluation-harness.

Every name is loaded when it is first asked for, so that ``import mrag_eval`` itself costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mrag_eval._front import Results, RetrievedRun, Strategies, evaluate, retrieve, score, strategies
    from mrag_eval.core import Hit, Passage, RagDoc, Retrieved
    from mrag_eval.datasets import load_benchmark
    from mrag_eval.metrics import Estimate
    from mrag_eval.platform import MragError
    from mrag_eval.report import load_results
    from mrag_eval.retrievers import load_index
    from mrag_eval.scoring import metric
    from mrag_eval.systems import SystemReply

__version__ = "0.1.0"
__all__ = [
    "Estimate",
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
    "evaluate",
    "load_benchmark",
    "load_index",
    "load_results",
    "metric",
    "retrieve",
    "score",
    "strategies",
]
_DOORS = {
    "mrag_eval._front": ("Results", "RetrievedRun", "Strategies", "evaluate", "retrieve", "score", "strategies"),
    "mrag_eval.core": ("Hit", "Passage", "RagDoc", "Retrieved"),
    "mrag_eval.platform": ("MragError",),
    "mrag_eval.datasets": ("load_benchmark",),
    "mrag_eval.metrics": ("Estimate",),
    "mrag_eval.report": ("load_results",),
    "mrag_eval.scoring": ("metric",),
    "mrag_eval.retrievers": ("load_index",),
    "mrag_eval.systems": ("SystemReply",),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for door, names in _DOORS.items():
        if name in names:
            found = globals()[name] = getattr(import_module(door), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
