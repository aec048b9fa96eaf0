"""Whose text may be passed on: what every benchmark declares of its questions, references and passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mrag_eval.config import mode_named
from mrag_eval.datasets import declaration_of


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


def source_of(config: Mapping[str, Any]) -> Source:
    """Return the source of a task's rows; the licence of a user's own files is unknown."""
    data = config.get("data") or {}
    declared = declaration_of(data)
    if declared is None or declared.is_own(data):
        return Source(str(data.get("benchmark", config.get("task", "unknown"))), None, None, False)
    return Source(declared.title, declared.hub, declared.licence, declared.shareable)


def passages_shareable(config: Mapping[str, Any]) -> bool:
    """Whether the passages in a task's prompts may be passed on: those of the benchmark, under its licence."""
    retrieval = config.get("retrieval") or {}
    searched = mode_named(retrieval.get("mode")).searches
    own = not searched or retrieval.get("corpus") in _BENCHMARK_PASSAGES
    return source_of(config).shareable and own
