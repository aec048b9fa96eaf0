"""Licences of every benchmark's questions, references and passages."""

from __future__ import annotations

from dataclasses import dataclass

from mrag_eval.datasets import declaration_of
from mrag_eval.report.files._task_config import TaskConfig


@dataclass(frozen=True)
class LicensedData:
    """A benchmark's data source: name, dataset on the hub, licence, and whether texts may be redistributed.

    ``licence`` is an SPDX identifier; None if it is not stated or known.
    """

    name: str
    hub: str | None
    licence: str | None
    shareable: bool


# Passages that belong to the benchmark itself; any other corpus has its own licence.
_BENCHMARK_PASSAGES = ("benchmark", "published")


def source_of(config: TaskConfig) -> LicensedData:
    """Return the source of a task's rows; the licence of a user's own files is unknown."""
    declared = declaration_of(config.data)
    if declared is None or declared.is_own(config.data):
        return LicensedData(config.benchmark or str(config.setting("task") or "unknown"), None, None, False)
    return LicensedData(declared.title, declared.hub, declared.licence, declared.shareable)


def passages_shareable(config: TaskConfig) -> bool:
    """Return whether the passages in prompts may be redistributed: the benchmark's, if its licence allows it."""
    own = not config.searches or config.corpus in _BENCHMARK_PASSAGES
    return source_of(config).shareable and own
