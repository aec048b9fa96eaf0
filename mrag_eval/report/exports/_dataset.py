"""Where the rows of a task come from, as exports name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrag_eval.report.exports._licences import Source, source_of
from mrag_eval.report.exports._runs import Exported, Run


def source_of_task(task: Exported, run: Run) -> Source:
    """The source of a task; of a group that of its tasks where they share one."""
    if task.leaf is not None:
        return source_of(task.config)
    found = {source_of(run.content["configs"][leaf]) for leaf in task.leaves}
    return found.pop() if len(found) == 1 else Source(task.name, None, None, False)


def revision_of(config: Mapping[str, Any]) -> str | None:
    """The revision of the dataset on the hub; None for local files."""
    source = config.get("source") or {}
    revision = source.get("revision") or (config.get("data") or {}).get("revision")
    return None if revision is None else str(revision)


def split_of(config: Mapping[str, Any]) -> str:
    """The split that was run."""
    data = config.get("data") or {}
    return str(data.get("split") or (config.get("source") or {}).get("split") or "test")
