"""Retrieval before the evaluated model is loaded: its rows, its conditions, and its messages."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mrag_eval.platform import naming, number_of

if TYPE_CHECKING:
    from mrag_eval.retrieval import RunFolder

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


@dataclass(frozen=True)
class First:
    """Whether retrieval is ``wanted`` first; ``debug`` shows the traceback of a failure there."""

    debug: bool = False
    wanted: bool = True

    def rows_of(self, tasks: Mapping[str, Any], limit: float | None, samples: Mapping[str, list[int]] | None) -> None:
        """Give the tasks their rows, limited to those that these flags of the harness select.

        Rows of a run folder are read. Does nothing else if no task retrieves anything.
        """
        with self._retrieved(tasks, limit, samples) as folder:
            for task in _open(tasks).values() if folder is not None else ():
                task.supply.take_from(folder)
                task.supply.prepare(task.rows_to_run(limit, samples))
        # a damaged row of a run folder is found before the model is loaded
        taken = {name: task for name, task in _ours(tasks).items() if task.supply.taken}
        for name, task in taken.items() if taken and not _one_of_many() else ():
            with naming(name):
                task.supply.prepare(task.rows_to_run(limit, samples))

    @contextmanager
    def rows_for(
        self, tasks: Mapping[str, Any], limit: float | None, samples: Mapping[str, list[int]] | None
    ) -> Iterator[None]:
        """Do the same for equal tasks that are built while the block runs."""
        from mrag_eval.retrieval import FIRST

        with self._retrieved(tasks, limit, samples) as folder:
            token = FIRST.set(folder)
            try:
                yield
            finally:
                FIRST.reset(token)

    @contextmanager
    def _retrieved(
        self, tasks: Mapping[str, Any], limit: float | None, samples: Mapping[str, list[int]] | None
    ) -> Iterator[RunFolder | None]:
        from mrag_eval.retrieval import Order, retrieved_apart

        waiting = [name for name, task in _ours(tasks).items() if _waits(task)]
        if self.wanted and waiting:
            log.info(
                "the evaluated model itself plans for %s: retrieved in the process of the run, once it is loaded",
                waiting[0] if len(waiting) == 1 else number_of(len(waiting), "task"),
            )
        orders = [Order(name, task.supply, task.rows_to_run(limit, samples)) for name, task in _open(tasks).items()]
        if not self.wanted or not orders or _one_of_many():
            yield None
            return
        log.info(
            "retrieving for %s of %s in a separate process, before the model is loaded "
            "(--no-retrieve-first: in the process of the run)",
            number_of(sum(len(order.ids) for order in orders), "row"),
            number_of(len(orders), "task"),
        )
        with retrieved_apart(orders, debug=self.debug) as folder:
            yield folder


def _open(tasks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tasks of our class that have something to retrieve before a model is loaded, and no run folder.

    A retriever of the user's is a function of this process, and no setting that another one could be given.
    """
    return {
        name: task
        for name, task in _ours(tasks).items()
        if task.supply.blocks.retrieval.retrieves
        and task.supply.blocks.retrieval.kind != "own"
        and not task.supply.taken
        and not _waits(task)
    }


def _waits(task: Any) -> bool:
    """Return whether a task's retrieval asks the evaluated model, which this process loads."""
    evaluated = task.supply.evaluated
    return evaluated is not None and not evaluated.behind_api


def _ours(tasks: Mapping[str, Any]) -> dict[str, Any]:
    from mrag_eval.task import RagTask

    return {name: task for name, task in tasks.items() if isinstance(task, RagTask)}


def _one_of_many() -> bool:
    """Return whether this is one of several processes that accelerate or torchrun started for one evaluation."""
    try:
        several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    except ValueError:
        return False
    if several and os.environ.get("RANK", "0") == "0":
        log.info(
            "one of several ranks: each retrieves for its own rows, in its own process; to have it done before the "
            "model is loaded, run mrag-eval retrieve first and name its folder in retrieval.run_folder"
        )
    return several
