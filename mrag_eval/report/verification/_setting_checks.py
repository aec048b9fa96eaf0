"""What a run measured: whether its record is that of its settings and rows, and how it differs from the task itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.config import by_block, dotted, harmless, package_versions
from mrag_eval.planning import deviations, shipped
from mrag_eval.platform import content_key
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.verification._findings import Finding, value_text
from mrag_eval.scoring import RowRecord

# Blocks of the configuration that the record repeats, by the role under which it does.
_REPEATED = {"prompt": "setting", "judge": "setting", "agent": "setting", "source": "data", "index": "data"}
# Keys that the record alone has: the version is in the metadata, and without a judge some metrics are left out.
_OF_THE_RECORD = ("context", "metrics", "run", "seeds", "texts", "version")
# Keys of which the record has the value that follows from the others.
_RESOLVED = ("retrieval.depth",)


def record_follows(file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Finding]:
    """Compare the record of what was measured with the configuration beside it, and with the rows of the samples."""
    record = leaf.measurement
    if record is None:
        yield Finding(leaf.task, "note", "an older run, which does not say what it measures")
        return
    ids = sorted({one.row for one in records})
    ran = record.data.get("ran") or {}
    if ran.get("ids") != content_key(ids) or ran.get("rows") != len(ids):
        yield Finding(leaf.task, "fault", "the rows of the record are not those of the samples")
    total = ((file.content.get("n-samples") or {}).get(leaf.task) or {}).get("original")
    if ran.get("of") != total:
        yield Finding(leaf.task, "fault", f"{ran.get('of')} rows of the task in the record, {total} by the harness")
    raw = file.content["configs"][leaf.task]
    for name, role in _REPEATED.items():
        beside, own = raw.get(name), getattr(record, role).get(name)
        # outside of a loop the agents' block decides nothing, and neither holds it
        if (beside or own) and not _same(own, beside):
            yield Finding(leaf.task, "fault", f"the record's block '{name}' is not that of the configuration beside it")
    for name, own in record.setting.items():
        if name in (*_REPEATED, *_OF_THE_RECORD):
            continue
        kept = raw.get(name)
        if isinstance(own, Mapping):
            # a mode that searches nothing has no settings of a search, and defaults of rows are not written beside
            kept = {key: kept.get(key) for key in own if name != "data" or key in kept} if kept else {}
            own = {key: own[key] for key in kept}
        ours, theirs = dotted({name: own}), dotted({name: kept})
        for key in sorted({*ours, *theirs}):
            # where the configuration leaves it open, the record holds what the run made of it
            left_open = key in _RESOLVED and theirs.get(key) is None
            if ours.get(key) != theirs.get(key) and not left_open and harmless(key) is None:
                found = f"{key} is {value_text(theirs.get(key))}, in the record {value_text(ours.get(key))}"
                yield Finding(leaf.task, "fault", found)
    for name, here in other_versions(leaf).items():
        yield Finding(leaf.task, "note", f"run with {name} {leaf.config.versions[name]}, verified with {here}")


def _same(own: Any, beside: Any) -> bool:
    """Return whether a block is the other one but for the names of models, which only the configuration holds."""
    one, other = (
        {key: value for key, value in block.items() if key not in ("planner", "critic")}
        if isinstance(block, Mapping)
        else block
        for block in (own, beside)
    )
    return dotted({"": one or {}}) == dotted({"": other or {}})


def other_versions(leaf: LeafResult) -> dict[str, str | None]:
    """Return the versions here of mrag-eval, lm-eval and the reading of replies, where the run had others."""
    here, there = package_versions(), leaf.config.versions
    return {
        name: here.get(name)
        for name in ("mrag-eval", "lm-eval", "reading")
        if there.get(name) not in (None, here.get(name))
    }


def task_settings(leaf: LeafResult, tasks_folder: Path) -> Iterator[Finding]:
    """Compare what was measured with the task as the package ships it."""
    if shipped(leaf.task, tasks_folder) is None:
        yield Finding(leaf.task, "note", "not a task of the package: there are no official settings to compare with")
        return
    for found in by_block(deviations(leaf.measurement, tasks_folder)):
        if found.key == "rows":
            # said with their number and the flag
            continue
        text = f"{found.key} is {value_text(found.first)}, officially {value_text(found.second)}"
        yield Finding(leaf.task, "deviation", text)
