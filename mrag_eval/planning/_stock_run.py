"""The harness's own command, which has no step for a plan: its needs are checked as its first task is built."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from mrag_eval.config import listed_by
from mrag_eval.harness import is_stock_command, loading

if TYPE_CHECKING:
    from mrag_eval.harness import TaskLoading


def check_stock_run() -> None:
    """Raise MissingError under the harness's own command, as its first task is built, if any of its tasks lacks
    something; do nothing elsewhere.
    """
    now = loading() if is_stock_command() else None
    if now is not None:
        _check(now)


@lru_cache(maxsize=1)
def _check(now: TaskLoading) -> None:
    # what makes plans is half of this room, and no other run needs it
    from mrag_eval.planning._plan import plan_for

    plan_for(now.asked, listed_by(now.manager), now.manager.metadata or {}).check()
