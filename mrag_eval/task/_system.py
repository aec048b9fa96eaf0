"""Tasks whose questions a RAG system is asked as it is: which of them can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mrag_eval import models
from mrag_eval.config import RAG
from mrag_eval.platform import ConfigError

if TYPE_CHECKING:
    from mrag_eval.task._hook import RagTask


def check_asked(asked: Any, tasks: Mapping[str, RagTask]) -> None:
    """Raise ConfigError if a system is asked for a task with its own retrieval, or a model for one without."""
    system = getattr(asked, "system", None)
    is_system = system is not None and isinstance(system, models.RagSystem)
    for name, task in tasks.items():
        mode = task.blocks.retrieval.mode
        if task.blocks.retrieval.preset.asks_system is not is_system:
            what = "the contexts are the system's own" if is_system else f"its contexts come with --model {RAG} alone"
            raise ConfigError(f"task {name}, retrieval.mode={mode}: {what}", "leave retrieval.mode out of --metadata")
