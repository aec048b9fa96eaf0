"""Whose text may be passed on: what every benchmark declares of its questions, references and passages."""

from __future__ import annotations

from dataclasses import dataclass

from mrag_eval.datasets import declaration_of
from mrag_eval.report.files._task_config import TaskConfig


@dataclass(frozen=True)
class Source:
    """A benchmark's data: its name, its dataset on the hub, its licence, and whether that lets the texts be passed on.

    ``licence`` is an SPDX identifier; None where none is stated or known.
    """

    name: str
    hub: str | None
    licence: str | None
    shareable: bool


# Passages that belong to the benchmark itself; those of any other corpus have a licence of their own.
_BENCHMARK_PASSAGES = ("benchmark", "published")


def source_of(config: TaskConfig) -> Source:
    """Return the source of a task's rows; the licence of a user's own files is unknown."""
    declared = declaration_of(config.data)
    if declared is None or declared.is_own(config.data):
        return Source(config.benchmark or str(config.setting("task") or "unknown"), None, None, False)
    return Source(declared.title, declared.hub, declared.licence, declared.shareable)


def passages_shareable(config: TaskConfig) -> bool:
    """Whether the passages in a task's prompts may be passed on: those of the benchmark, under its licence."""
    own = not config.searches or config.corpus in _BENCHMARK_PASSAGES
    return source_of(config).shareable and own
