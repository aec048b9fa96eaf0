"""``.eval_results/*.yaml`` of a model's repository: each task's main metric, with notes on how it was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrag_eval.core import ConfigError, DataError
from mrag_eval.report.exports._dataset import source_of_task
from mrag_eval.report.exports._notes import figure_line, settings_line
from mrag_eval.report.exports._runs import Run

FOLDER = ".eval_results"
_DIGITS = 6


def write_eval_results(
    run: Run, folder: Path, dataset: str | None = None, source_url: str | None = None
) -> tuple[list[Path], list[str]]:
    """Write ``folder/.eval_results/<dataset>.yaml``, one file per dataset; return the files and notes on them.

    ``dataset`` names one dataset on the hub for all tasks (the user's, with an eval.yaml of these task ids); by default
    each task goes to the dataset of its rows. Further metrics of a task get the id ``<task>.<metric>``. Existing
    entries for other tasks are kept. Raises DataError for a file that is not such a list.
    """
    import yaml

    try:
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    except ImportError:
        from huggingface_hub import __version__

        raise ConfigError(
            f"--format eval-results: huggingface_hub {__version__} does not know these files",
            "pip install -U huggingface_hub   or --format model-index",
        ) from None

    entries: dict[str, list[Any]] = {}
    notes: list[str] = []
    for task in run.tasks:
        source = source_of_task(task, run)
        home = dataset or source.hub
        if home is None:
            notes.append(f"{task.label} is left out: {source.name} is no dataset on the hub; name one with --dataset")
            continue
        for i, score in enumerate(task.overall()):
            if score.value is None:
                notes.append(f"{task.label}, {score.metric}: no figure ({score.reason})")
                continue
            entries.setdefault(home, []).append(
                EvalResultEntry(
                    dataset_id=home,
                    task_id=task.label if i == 0 else f"{task.label}.{score.metric}",
                    value=round(score.value, _DIGITS),
                    dataset_revision=task.config.revision if home == source.hub else None,
                    date=run.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    source_url=source_url,
                    source_name=None if source_url is None else "mrag-eval",
                    notes=f"{figure_line(score)}; {settings_line(task)}",
                )
            )
    files = []
    for home, own in entries.items():
        path = folder / FOLDER / f"{home.replace('/', '__')}.yaml"
        data = _merged(_there(path), eval_result_entries_to_yaml(own))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")
        files.append(path)
    if entries:
        notes.append(
            "the hub shows an entry where its dataset is registered as a benchmark and its eval.yaml has the task id"
        )
    return files, notes


def _there(path: Path) -> list[dict[str, Any]]:
    import yaml

    if not path.is_file():
        return []
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not readable as YAML ({' '.join(str(error).split())})", "mend or move it") from None
    if not isinstance(content, list) or not all(isinstance(e, dict) and "dataset" in e for e in content):
        raise DataError(f"{path}: expected a list of entries with 'dataset' and 'value'", "mend or move it")
    return content


def _merged(before: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def key(entry: dict[str, Any]) -> tuple[Any, Any]:
        return entry["dataset"].get("id"), entry["dataset"].get("task_id")

    replaced = {key(entry) for entry in new}
    return [*(entry for entry in before if key(entry) not in replaced), *new]
