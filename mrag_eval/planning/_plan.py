"""The plan of a run: everything that its tasks need on this machine, and what they cost."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mrag_eval.config import Listed, ModelSpec
from mrag_eval.planning._corpora import corpus_needs
from mrag_eval.planning._data import data_needs
from mrag_eval.planning._estimate import Pilot, costs_of
from mrag_eval.planning._models import agents_of, evaluated_needs, evaluated_spec, judges_of, model_needs, room_needs
from mrag_eval.planning._need import ROWS, Need, Plan
from mrag_eval.planning._tasks import PlannedTask, leaves_of
from mrag_eval.platform import MragError, cache_dir
from mrag_eval.prompts import longest_reply


def plan_for(
    asked: Sequence[str | Mapping[str, Any]],
    known: Mapping[str, Listed],
    metadata: Mapping[str, Any],
    *,
    limit: float | None = None,
    model: tuple[str, Mapping[str, Any]] | None = None,
    faults: Sequence[MragError] | None = None,
    generation: Mapping[str, Any] | None = None,
    judged: bool = True,
    pilot: Pilot | None = None,
    built: bool = True,
) -> Plan:
    """Return the plan of a run of these tasks: no model is loaded, nothing is downloaded or asked for it.

    Args:
        asked, known: as :class:`mrag_eval.config.RunTasks` takes them.
        metadata: the settings of ``--metadata``.
        limit: the value of ``--limit``.
        model: type and arguments of the evaluated model, if it is known.
        faults: what this model lacks; None if nobody looked, and it is told from type and arguments.
        generation: its settings by ``--gen_kwargs``.
        judged: whether replies are judged; a retrieval ahead of a run judges nothing.
        pilot: what rows of the tasks took.
        built: whether the tasks are built by whoever asks, and refused as they are; else the plan looks for what they
            are refused for.

    Raises ConfigError for an invalid block or config file.
    """
    leaves = leaves_of(asked, known, metadata, limit)
    if longest := longest_reply(generation):
        leaves = [replace(leaf, longest_reply=longest) if leaf.longest_reply else leaf for leaf in leaves]
    needs = [*data_needs(leaves), *corpus_needs(leaves), *model_needs(leaves, judged=judged)]
    spec: ModelSpec | None = None
    if model is not None and leaves:
        spec = evaluated_spec(*model)
        needs += [*evaluated_needs(*model, faults), *room_needs(leaves, *model)]
    if not built:
        lacking = {name for need in needs if need.blocks for name in need.tasks}
        refused = ((leaf.name, leaf.fault if leaf.name in lacking else leaf.refusal()) for leaf in leaves)
        needs += [
            Need(ROWS, fault.message, False, fault.next_step or "correct it", True, tasks=(name,))
            for name, fault in refused
            if fault is not None
        ]
    uncounted = [leaf.name for leaf in leaves if leaf.rows is None]
    rows = None if uncounted else sum(leaf.rows or 0 for leaf in leaves)
    folder = next(place for place in (cache_dir(), *cache_dir().parents) if place.exists())
    return Plan(
        asked=tuple(name if isinstance(name, str) else str(name.get("task")) for name in asked),
        tasks=tuple(leaf.name for leaf in leaves),
        rows=rows,
        needs=tuple(_once(needs)),
        costs=tuple(costs_of(leaves, spec, None if pilot is None else pilot.by_task)),
        hours=None if pilot is None or rows is None else pilot.hours(rows),
        uncounted=tuple(uncounted),
        free=shutil.disk_usage(folder).free / 1e9,
        folder=str(folder),
        read=all(leaf.docs is not None for leaf in leaves),
    )


def worth_a_pilot(leaves: Sequence[PlannedTask]) -> list[str]:
    """Return the names of the tasks that have a loop or judges, whose cost depends on what they reply."""
    return [leaf.name for leaf in leaves if agents_of(leaf) is not None or judges_of(leaf)]


def _once(needs: Sequence[Need]) -> list[Need]:
    """Return each need once, for all its tasks: two corpora may have one embedder."""
    found: dict[tuple[str, str], Need] = {}
    for need in needs:
        tasks = found[need.what, need.fix].tasks if (need.what, need.fix) in found else ()
        found[need.what, need.fix] = replace(need, tasks=tuple(dict.fromkeys((*tasks, *need.tasks))))
    return list(found.values())
