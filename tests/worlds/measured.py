"""Records of what a task's numbers measure, for results that a test writes by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrag_eval.config import Measurement, deep_merge
from mrag_eval.planning import shipped
from mrag_eval.platform import MragError, content_key

# Rows that are the published ones.
PUBLISHED: Mapping[str, Any] = {
    "content": "c" * 64,
    "rows": 1,
    "published": {"status": "official", "reason": "the published rows"},
}
# Blocks of a configuration that the record holds as settings, in place of it or besides.
_OURS = ("retrieval", "agent", "prompt", "judge", "data", "metrics", "replies", "row_texts")
_SETTINGS = (*_OURS, "generation_kwargs", "output_type", "num_fewshot")
_DATA = ("index", "left_out", "retrieved")


def recorded(
    task: str, config: Mapping[str, Any], *, ran: int | None = None, of: int | None = None, **roles: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the record of a run of ``task`` with the blocks of ``config``, as JSON.

    For a task of the package it is that of the task as shipped, with the blocks of ``config`` merged into it. ``roles``
    are entries of a role that are merged last: ``instrument={"judges": ...}``.

    Args:
        ran: how many rows ran; by default those that the scores count, or all.
        of: how many rows there are; by default those that ran.
    """
    official = shipped(task)
    base = Measurement(task) if official is None else official.measurement
    blocks = {name: config[name] for name in _SETTINGS if name in config}
    blocks["version"] = (config.get("metadata") or {}).get("version", base.setting.get("version"))
    scores = config.get("scores") or {}
    rows = ran if ran is not None else scores.get("rows", 1)
    made = {
        "setting": _run_with(task, blocks, base.setting),
        "instrument": _instruments(scores, config),
        "data": {
            "source": {**PUBLISHED, **(config.get("source") or {})},
            **{name: config[name] for name in _DATA if name in config},
            "ran": {"rows": rows, "of": rows if of is None else of, "ids": content_key(["ids", rows])},
        },
        "environment": {"versions": {"mrag-eval": "0.1.0", "lm-eval": "0.4.13"}},
    }
    whole = deep_merge(made, roles)
    return Measurement(task, **whole, shipped=None if official is None else official.sha256).to_dict()


def _run_with(task: str, blocks: Mapping[str, Any], setting: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a task that was run with these blocks; of one of the package with all that follows."""
    try:
        found = shipped(task, changes=_flat({name: blocks[name] for name in blocks if name != "version"}))
    except MragError:
        # settings that no run can have
        found = None
    return deep_merge(setting, blocks) if found is None else {**found.measurement.setting, "version": blocks["version"]}


def _flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return dotted key -> value, None among them: a setting that is off."""
    out: dict[str, Any] = {}
    for key, value in nested.items():
        inner = _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
        out |= inner
    return out


def _instruments(scores: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the instruments that scores and configuration name."""
    found: dict[str, Any] = {}
    seats = (scores.get("judge") or {}).get("judges") or {}
    asked = [seat.get("model") or name for name, seat in seats.items()]
    asked += ((scores.get("relevance") or {}).get("judges") or {}).values()
    if asked:
        found["judges"] = {name: {"model": name} for name in asked}
    if identity := (scores.get("translation") or {}).get("identity"):
        found["translator"] = identity
    agent = config.get("agent") or {}
    return found | {role: {"args": {"model": agent[role]}} for role in ("planner", "critic") if agent.get(role)}


def with_records(configs: Mapping[str, Mapping[str, Any]], **how: Any) -> dict[str, dict[str, Any]]:
    """Return ``configs`` of a result file, each with its record; ``how`` is as in :func:`recorded`."""
    return {task: placed(config, recorded(task, config, **how)) for task, config in configs.items()}


def placed(config: Mapping[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return a task's configuration in a result file with this record, which alone holds the task's own blocks."""
    kept = {name: value for name, value in config.items() if name not in (*_OURS, *_DATA, "source")}
    kept |= {name: record["setting"][name] for name in _SETTINGS if name in kept and name in record["setting"]}
    if "version" in (kept.get("metadata") or {}):
        kept["metadata"] = {**kept["metadata"], "version": record["setting"].get("version")}
    return {**kept, "measurement": record}


def blocks_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's configuration in a result file with its own blocks beside the record, as :func:`placed` took."""
    record = config.get("measurement") or {}
    own = {name: block for role in ("setting", "data") for name, block in (record.get(role) or {}).items()}
    return {**{name: own[name] for name in (*_OURS, *_DATA, "source") if name in own}, **config}


def with_all_records(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a result file in which every task has the record of its settings and rows, made again."""
    counts = content.get("n-samples") or {}
    for task, config in [(task, blocks_of(config)) for task, config in content["configs"].items()]:
        rows = counts.get(task) or {}
        ran = rows.get("effective", (config.get("scores") or {}).get("rows", 1))
        content["configs"][task] = placed(config, recorded(task, config, ran=ran, of=rows.get("original", ran)))
    return content
