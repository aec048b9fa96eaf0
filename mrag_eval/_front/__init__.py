"""The Python interface: evaluate a model, retrieve without one, score replies that are there, read finished runs."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval._front._evaluate import evaluate
    from mrag_eval._front._log_text import all_cut, log_lines
    from mrag_eval._front._logs import Log
    from mrag_eval._front._results import Results
    from mrag_eval._front._retrieve import RetrievedRun, retrieve
    from mrag_eval._front._score import score
    from mrag_eval._front._strategies import strategies
    from mrag_eval._front._strategy_grid import strategies_of
    from mrag_eval._front._strategy_merges import MergeGain, merge_gains
    from mrag_eval._front._strategy_verdict import Measured, Strategies
    from mrag_eval._front._survey import grounded_judge, measured_names, read_log
else:
    __getattr__, __dir__ = lazy_door(__name__)
