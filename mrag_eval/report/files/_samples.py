"""Reading the harness's sample files: the scored rows of one task of one run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.core import DataError
from mrag_eval.report.files._results import model_name

Sample = dict[str, Any]

# Metrics of 0 and 1 that say whether an answer is right, the most trustworthy first; as in mrag_eval.scoring._summary.
CORRECT = ("acc", "judged_accuracy", "judge_correct", "sem_b", "match", "exact_match")


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """What comparisons need of a row: its id, language, the group it is resampled with, its values by metric."""

    id: str
    language: str
    group: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class SampleSet:
    """The rows of one task of one run, and the task's configuration (empty where no result file lies beside them).

    ``groups`` are the groups of tasks in which the run reports it.
    """

    task: str
    path: Path
    config: Mapping[str, Any]
    rows: Mapping[str, ScoredRow]
    groups: tuple[str, ...] = ()


def read_samples(path: Path) -> list[Sample]:
    """The lines of a sample file. Raises DataError, naming the line, for what is not a sample of one of our tasks."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as err:
        raise DataError(f"{path}: cannot be read ({err})", "name a samples_*.jsonl of a run") from None
    samples: list[Sample] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            sample = json.loads(line)
        except ValueError:
            raise DataError(
                f"{where}: not JSON", "the run may have been cut off while it wrote: run it again"
            ) from None
        if not isinstance(sample, dict) or not isinstance(sample.get("rows"), dict) or "row" not in sample["rows"]:
            raise DataError(
                f"{where}: not a scored sample of one of our tasks",
                "run with --log_samples --output_path FOLDER, without --predict_only",
            )
        samples.append(sample)
    if not samples:
        raise DataError(f"{path} holds no samples", "run again with --log_samples --output_path FOLDER")
    return samples


def config_beside(path: Path) -> dict[str, Any]:
    """The task's configuration in the result file of the run that wrote the samples at ``path``; empty without one."""
    found = _result_beside(path).get("configs", {}).get(_task_and_date(path)[0])
    return found if isinstance(found, dict) else {}


def model_beside(path: Path) -> str:
    """The model whose run wrote the samples at ``path``, by its name."""
    return model_name(_result_beside(path))


def sample_files(paths: Sequence[Path]) -> list[Path]:
    """The sample files at ``paths``, files or folders; of one task in one folder the newest, a judged one first.

    Raises DataError for a path without sample files.
    """
    newest: dict[tuple[Path, str], tuple[tuple[str, bool], Path]] = {}
    for path in paths:
        found = [path] if path.is_file() else sorted(path.rglob("*samples_*.jsonl"))
        found = [p for p in found if path.is_file() or p.name.startswith(("samples_", "judged_"))]
        if not found:
            raise DataError(f"{path}: no sample files", "run with --log_samples --output_path FOLDER")
        for file in found:
            task, date = _task_and_date(file)
            key, order = (file.parent, task), (date, file.name.startswith("judged_"))
            if key not in newest or order > newest[key][0]:
                newest[key] = (order, file)
    return [file for _, file in newest.values()]


def task_of(path: Path) -> str:
    """The task whose rows the sample file at ``path`` holds, by its name."""
    return _task_and_date(path)[0]


def reply_text(sample: Sample) -> str:
    """What the model replied, after the task's filter; empty where nothing is kept."""
    value: Any = sample.get("filtered_resps")
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else ""


def verdict_of(record: Mapping[str, Any]) -> bool | None:
    """Whether the row's answer is right, by the first of :data:`CORRECT` that it has; None without one."""
    values = record.get("values") or {}
    metric = next((name for name in CORRECT if name in values), None)
    return None if metric is None else values[metric] == 1.0


def _groups_beside(path: Path) -> tuple[str, ...]:
    """Every group that holds the task, groups of groups too."""
    members: Mapping[str, Sequence[str]] = _result_beside(path).get("group_subtasks") or {}
    found: dict[str, None] = {}
    wanted = {_task_and_date(path)[0]}
    while wanted:
        wanted = {group for group, inner in members.items() if wanted & set(inner)} - found.keys()
        found |= dict.fromkeys(sorted(wanted))
    return tuple(found)


def results_beside(path: Path) -> Path:
    """Where the result file of the run that wrote the samples at ``path`` lies, if it is there."""
    return path.parent / f"results_{_task_and_date(path)[1]}.json"


def _result_beside(path: Path) -> dict[str, Any]:
    results = results_beside(path)
    try:
        return _result(results, results.stat().st_mtime_ns)
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=4)
def _result(path: Path, _modified: int) -> dict[str, Any]:
    """Read once for all the tasks of a run."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) and isinstance(content.get("configs"), dict) else {}


def _task_and_date(path: Path) -> tuple[str, str]:
    stem, _, date = path.stem.rpartition("_")
    return stem.removeprefix("contexts_").removeprefix("judged_").removeprefix("samples_"), date


def read_runs(paths: Sequence[Path]) -> dict[str, SampleSet]:
    """Task name -> its newest scored rows, from sample files or from folders searched for them.

    A file that ``mrag-eval judge run`` wrote stands before the one it was made from. Raises DataError for a path
    without sample files.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_file():
            files[path] = None
            continue
        found = [p for p in sorted(path.rglob("*samples_*.jsonl")) if p.name.startswith(("samples_", "judged_"))]
        if not found:
            raise DataError(
                f"{path}: no samples_*.jsonl in this folder" if path.is_dir() else f"{path}: no such file or folder",
                "run with --log_samples --output_path FOLDER, and name that folder",
            )
        files |= dict.fromkeys(found)
    newest: dict[str, tuple[tuple[str, bool, str], Path]] = {}
    for path in files:
        task, date = _task_and_date(path)
        order = (date, path.name.startswith("judged_"), str(path))
        if task not in newest or order > newest[task][0]:
            newest[task] = (order, path)
    return {task: _sample_set(task, path) for task, (_, path) in sorted(newest.items())}


def _sample_set(task: str, path: Path) -> SampleSet:
    rows = {}
    for sample in read_samples(path):
        record = sample["rows"]
        key = str(record["row"])
        rows[key] = ScoredRow(
            key,
            str(record.get("cell", {}).get("query_lang", "")),
            str(record.get("group", key)),
            {name: float(value) for name, value in record.get("values", {}).items()},
        )
    return SampleSet(task, path, config_beside(path), rows, _groups_beside(path))
