"""Scores of groups, computed again by the harness itself from those of their tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lm_eval.api.group import Group

from mrag_eval.harness._task_files import read_task_file

_GROUP = re.compile(r"\bgroup[\"']?\s*:")


class _Named(Group):
    """A group that knows its tasks by name alone."""

    leaves: Sequence[str] = ()

    def get_all_tasks(self, recursive: bool = True) -> list[Any]:
        return [SimpleNamespace(task_name=name) for name in self.leaves]


def group_scores(
    rule: Mapping[str, Any], leaves: Sequence[str], scores: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what the harness reports of a group.

    Args:
        rule: the group's YAML, of which ``group``, ``group_alias`` and ``aggregate_metric_list`` are read.
        leaves: its tasks, those of its groups too, in their order.
        scores: task -> what the harness reports of it.
    """
    known = {key: rule[key] for key in ("group", "group_alias", "aggregate_metric_list", "metadata") if key in rule}
    group = _Named.from_config(known)
    group.leaves = leaves
    return dict(group.aggregate({name: dict(found) for name, found in scores.items()}))


@lru_cache(maxsize=4)
def group_rules(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the YAML of every group below a folder that has a file of its own, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.rglob("*.yaml")):
        if _GROUP.search(path.read_text("utf-8", errors="replace")):
            content = read_task_file(path)
            if isinstance(content.get("group"), str):
                found[content["group"]] = content
    return found
