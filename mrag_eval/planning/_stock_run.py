"""The harness's own command, which has no step for a plan: its needs are checked as its first task is built."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from mrag_eval.config import listed_by, unread
from mrag_eval.datasets import LOADERS
from mrag_eval.harness import is_stock_command, loading, metadata_of_command

if TYPE_CHECKING:
    from mrag_eval.harness import TaskLoading

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


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

    names = {*now.manager.all_tasks, *LOADERS}
    for key, close in unread(metadata_of_command(), names).items():
        told = f"; did you mean {', '.join(close)}?" if close else ""
        log.warning("--metadata %s: none of our tasks reads it%s", key, told)
    plan_for(now.asked, listed_by(now.manager), now.manager.metadata or {}).check()
