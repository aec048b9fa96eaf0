"""What a run measured: whether its record is that of its settings and rows, and how it differs from the task itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mrag_eval.config import by_block, package_versions
from mrag_eval.planning import deviations, shipped
from mrag_eval.platform import content_key
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.verification._findings import Finding, value_text
from mrag_eval.scoring import RowRecord


def record_follows(file: ResultFile, leaf: LeafResult, records: Sequence[RowRecord]) -> Iterator[Finding]:
    """Compare the rows of the record with those of the samples and of the harness, and its versions with those here."""
    ids = sorted({one.row for one in records})
    ran = leaf.measurement.data.get("ran") or {}
    if ran.get("ids") != content_key(ids) or ran.get("rows") != len(ids):
        yield Finding(leaf.task, "fault", "the rows of the record are not those of the samples")
    total = ((file.content.get("n-samples") or {}).get(leaf.task) or {}).get("original")
    if ran.get("of") != total:
        yield Finding(leaf.task, "fault", f"{ran.get('of')} rows of the task in the record, {total} by the harness")
    for name, here in other_versions(leaf).items():
        yield Finding(leaf.task, "note", f"run with {name} {leaf.config.versions[name]}, verified with {here}")


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
