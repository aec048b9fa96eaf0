"""Our blocks in the files of a task: its own file and those that it includes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrag_eval.config._task_yaml import read_task_yaml

BLOCKS = ("retrieval", "agent", "prompt", "judge", "data", "metrics")


def include_chain(source: Any) -> list[dict[str, Any]]:
    """Return our blocks of every file that the task's YAML includes, bases first; the file itself comes last."""
    path = Path(str(source)) if source else None
    if path is None or not path.is_file():
        return []
    raw = read_task_yaml(path, with_includes=False)
    includes = raw.get("include") or []
    chain: list[dict[str, Any]] = []
    for include in includes if isinstance(includes, list) else [includes]:
        chain += include_chain((path.parent / include) if not Path(include).is_absolute() else include)
    return [*chain, {key: raw[key] for key in BLOCKS if key in raw}]


def benchmark_of(blocks: Mapping[str, Any]) -> str | None:
    """Return the benchmark that the block ``data`` names; None if it names none."""
    data = blocks.get("data")
    name = data.get("benchmark") if isinstance(data, Mapping) else None
    return name if isinstance(name, str) else None
