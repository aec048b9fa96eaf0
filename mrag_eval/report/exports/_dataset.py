"""Sources of a task's rows, as exports name them."""

from __future__ import annotations

from mrag_eval.report.exports._licences import Source, source_of
from mrag_eval.report.exports._runs import Run
from mrag_eval.report.files._scores import ScoredTask


def source_of_task(task: ScoredTask, run: Run) -> Source:
    """Return the source of a task. For a group, return that of its tasks if they share one."""
    if task.leaf is not None:
        return source_of(task.config)
    found = {source_of(run.file.configs[leaf]) for leaf in task.leaves}
    return found.pop() if len(found) == 1 else Source(task.name, None, None, False)
