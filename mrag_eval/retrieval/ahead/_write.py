"""Retrieval as a separate step: the rows of tasks are written to a run folder, batch by batch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.models import summed, total_counts
from mrag_eval.platform import Wait, build_lock, naming
from mrag_eval.retrieval._rows import TaskRows
from mrag_eval.retrieval.saved._folder import RunFolder
from mrag_eval.retrieval.saved._manifest import ManifestEntry

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Rows written per batch: enough for a planner or an embedder to fill its batches, few enough to lose.
BATCH = 512


@dataclass(frozen=True)
class WrittenTask:
    """The outcome of a task: ``rows`` asked for, ``kept`` of them from an earlier start."""

    task: str
    rows: int
    kept: int
    faults: Mapping[str, int]
    entry: ManifestEntry

    @property
    def failed_everywhere(self) -> bool:
        """Return whether a step failed for every row of the task in the folder."""
        steps: Counter[str] = Counter()
        for fault, count in self.faults.items():
            steps[fault.partition(" failed (")[0]] += count
        return bool(self.entry.rows) and self.entry.rows in steps.values()


def retrieve_into(
    folder: RunFolder, task: str, supply: TaskRows, ids: Sequence[str], *, overwrite: bool = False, batch: int = BATCH
) -> WrittenTask:
    """Retrieve for the rows ``ids`` of a task that the folder does not hold yet, or holds with a failed stage.

    Raises ConfigError if the folder holds the task under other settings (unless ``overwrite``), CorpusError if
    another process is writing the same task, and whatever retrieval raises; the rows written by then are kept.
    """
    with naming(task), build_lock(folder.path / task, wait=False):
        supply.check()
        have, failed = folder.begin(task, supply.entry(), overwrite=overwrite)
        waiting = [supply.docs[row] for row in ids if row not in have]
        if have:
            log.info("[%s] %d rows are there, %d are retrieved", task, len(have), len(waiting))
        earlier = folder.tasks[task].translation
        # of rows that failed, what was kept has been counted, and texts that were not translated are gone
        again = [doc for doc in waiting if doc.id in failed]
        new = [doc for doc in waiting if doc.id not in failed]
        # the steps of a single batch say themselves how long they take
        with Wait(f"retrieving for {task}", len(waiting), "rows", shown=len(waiting) > batch) as wait:
            for docs in (part[i : i + batch] for part in (again, new) for i in range(0, len(part), batch)):
                found = supply.retrieved(docs)
                folder.append(task, docs, found)
                came = supply.take(sent=docs[0].id in failed)
                changes: dict[str, Any] = {"came_back": summed([folder.tasks[task].came_back, came])}
                if supply.translator is not None:
                    if earlier and docs[0].id in failed:
                        earlier = supply.translator.asked_again(earlier)
                    shares = [supply.translator.as_dict(), *([earlier] if earlier else [])]
                    changes["translation"] = total_counts(shares)
                folder.note(task, **changes)
                wait.add(len(docs))
        retrieval = supply.blocks.retrieval
        entry = folder.finish(task, single_ranking=retrieval.searches and retrieval.has_single_ranking)
    for fault, count in entry.faults.items():
        log.warning("[%s] %d of %d rows: %s", task, count, entry.rows, fault)
    return WrittenTask(task, len(ids), len(ids) - len(waiting), entry.faults, entry)


def open_folder(path: Path) -> RunFolder:
    """Return the folder to write to, new or continued."""
    return RunFolder(path.expanduser())
