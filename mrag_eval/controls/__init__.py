"""Controls of a task: what its metrics, its detector and its search give in each language without a model."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.controls._measured import ControlRule, reply_controls
    from mrag_eval.controls._replies import ControlPool
    from mrag_eval.controls._task import control_pool, row_controls, task_controls
else:
    __getattr__, __dir__ = lazy_door(__name__)
