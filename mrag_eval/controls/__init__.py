"""Controls of a task: what its metrics, its detector and its search give in each language without a model."""

from mrag_eval.controls._measured import Checks, reply_controls
from mrag_eval.controls._replies import Drawn
from mrag_eval.controls._task import drawn_from, row_controls, task_controls

__all__ = ["Checks", "Drawn", "drawn_from", "reply_controls", "row_controls", "task_controls"]
