"""Settings of a run: their fingerprints, and how they differ from the task's own file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.config import PLACES, fingerprints, package_versions, split_config
from mrag_eval.core import to_json
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.verification._findings import Finding, value_text
from mrag_eval.scoring import METRIC_NAMES, RowRecord

# Settings of the harness that decide a reply, besides our own blocks.
_HARNESS_SETTINGS = ("generation_kwargs", "output_type")


def recorded_fingerprints(file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Finding]:
    """Compare the recorded fingerprints with those of the recorded settings and rows."""
    config = leaf.config
    recorded = config.fingerprints
    if not recorded:
        yield Finding(leaf.task, "note", "an older run without fingerprints")
        return
    raw = file.content["configs"][leaf.task]
    ids = list(dict.fromkeys(record.row for record in records))
    again = fingerprints(raw, config.texts, config.provenance.get("models") or {}, ids, config.versions)
    for name, found in again.items():
        if recorded.get(name) != found:
            text = f"the fingerprint '{name}' does not belong to the recorded settings"
            yield Finding(leaf.task, "fault", text if name != "rows" else "the fingerprint 'rows' is of other rows")
    for name, here in other_versions(leaf).items():
        yield Finding(leaf.task, "note", f"run with {name} {config.versions[name]}, verified with {here}")


def other_versions(leaf: LeafResult) -> dict[str, str | None]:
    """Return the versions here of mrag-eval and lm-eval, where the run had others."""
    here, there = package_versions(), leaf.config.versions
    return {name: here.get(name) for name in ("mrag-eval", "lm-eval") if there.get(name) not in (None, here.get(name))}


def task_settings(leaf: LeafResult, tasks_folder: Path) -> Iterator[Finding]:
    """Compare the settings with those of the task's own file."""
    from mrag_eval.harness import read_task_file

    file = next(iter(sorted(tasks_folder.rglob(f"{leaf.task}.yaml"))), None)
    if file is None:
        yield Finding(leaf.task, "note", "not a task of the package: there are no official settings to compare with")
        return
    content = read_task_file(file)
    metadata = {**(content.get("metadata") or {}), "config_source": str(file)}
    rest, blocks = split_config({**content, "metadata": metadata}, METRIC_NAMES)
    official = {
        "version": metadata.get("version"),
        "retrieval": blocks.retrieval.model_dump(mode="json"),
        "agent": blocks.agent.model_dump(mode="json") if leaf.config.agent else None,
        "prompt": blocks.prompt.model_dump(mode="json"),
        "judge": blocks.judge.model_dump(mode="json"),
        "data": blocks.data,
        "metrics": list(blocks.metrics),
        **{name: rest.get(name) for name in _HARNESS_SETTINGS},
    }
    ran = {**{name: leaf.config.raw.get(name) for name in official}, "version": leaf.config.version}
    for key, found, wanted in _differing(to_json(ran), to_json(official)):
        yield Finding(leaf.task, "deviation", f"{key} is {value_text(found)}, officially {value_text(wanted)}")


def _differing(ran: Any, official: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield dotted key, value and official value where they differ; a block that one side lacks is one difference."""
    if isinstance(ran, Mapping) and isinstance(official, Mapping):
        for name in sorted({*ran, *official}):
            where = f"{key}.{name}" if key else name
            if where not in PLACES:
                yield from _differing(ran.get(name), official.get(name), where)
    elif ran != official:
        yield key, ran, official
