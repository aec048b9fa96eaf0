"""Plans of runs: what tasks need on this machine, what provides it, and what a run costs."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.planning._data import source_need
    from mrag_eval.planning._estimate import Observed, Pilot, Spent
    from mrag_eval.planning._language_support import Piece, language_support, unsupported
    from mrag_eval.planning._models import model_need
    from mrag_eval.planning._need import Cost, MissingError, Need, Plan, ways
    from mrag_eval.planning._plan import plan_for, worth_a_pilot
    from mrag_eval.planning._shipped import deviations, shipped
    from mrag_eval.planning._stock_run import check_stock_run
    from mrag_eval.planning._tasks import PlannedTask, leaves_of, prompt_for_system
else:
    __getattr__, __dir__ = lazy_door(__name__)
