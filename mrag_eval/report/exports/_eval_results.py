"""``.eval_results/*.yaml`` of a model's repository: each task's main metric, with notes on how it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrag_eval.platform import ConfigError, DataError, number_of, write_whole
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import Run
from mrag_eval.report.files._scores import Score
from mrag_eval.scoring import direction_lines

FOLDER = ".eval_results"
_DIGITS = 6


def write_eval_results(runs: Sequence[Run], folder: Path, options: Options) -> Written:
    """Write ``folder/.eval_results/<dataset>.yaml``, one file per dataset.

    ``options.dataset`` names one dataset on the hub for all tasks (the user's, with an eval.yaml of these task ids); by
    default each task goes to the dataset of its rows. The main metric has the id ``<task>``, any other
    ``<task>.<metric>``. Existing entries for other tasks are kept. Raises DataError for a file that is not such a list.
    """
    return Written.together(_written(run, folder, options) for run in runs)


EXPORT = Export(
    "eval-results", "files of the hub, .eval_results/*.yaml", write_eval_results, repo_type="model", one_model=True
)


def _written(run: Run, folder: Path, options: Options) -> Written:
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
    notes = run.no_headlines
    for task in run.tasks:
        source = task.source
        home = options.dataset or source.hub
        if home is None:
            notes.append(f"{task.label} is left out: {source.name} is no dataset on the hub; name one with --dataset")
            continue
        for score in task.overall:
            if score.value is None:
                notes.append(f"{task.label}, {score.metric}: no figure ({score.reason})")
                continue
            entries.setdefault(home, []).append(
                EvalResultEntry(
                    dataset_id=home,
                    task_id=task.label if score is task.headline else f"{task.label}.{score.metric}",
                    value=round(score.value, _DIGITS),
                    dataset_revision=task.config.revision if home == source.hub else None,
                    date=run.file.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    source_url=options.source_url,
                    source_name=None if options.source_url is None else "mrag-eval",
                    notes=f"{_figure_line(score)}; {_settings_line(score)}",
                )
            )
    files = []
    for home, own in entries.items():
        path = folder / FOLDER / f"{home.replace('/', '__')}.yaml"
        data = _merged(_there(path), eval_result_entries_to_yaml(own))
        files.append(write_whole(path, yaml.safe_dump(data, sort_keys=False, allow_unicode=True)))
    if entries:
        notes.append(
            "the hub shows an entry where its dataset is registered as a benchmark and its eval.yaml has the task id"
        )
    return Written(tuple(files), tuple(notes))


def _figure_line(score: Score) -> str:
    """Return e.g. ``char3gram_recall 0.521, 95% [0.498, 0.544], n = 1190``."""
    parts = [score.metric if score.value is None else f"{score.metric} {score.value:.3f}"]
    if score.low is not None and score.high is not None:
        parts.append(f"95% [{score.low:.3f}, {score.high:.3f}]")
    if score.n is not None:
        parts.append(f"n = {score.n}")
    if score.unit not in ("share", "ratio"):
        parts.append(f"in {score.unit}")
    said = (f"{name}: {text}" for name, text in {**score.averaged, **score.withheld}.items())
    return ", ".join([*parts, *direction_lines([score.metric]), *filter(None, (score.unscored,)), *said])


def _settings_line(score: Score) -> str:
    """Return the settings of a figure's task as one readable line."""
    shown, passages = score.settings, score.passages or ""
    parts = [
        f"IR mode {shown['retrieval_mode']}" if "retrieval_mode" in shown else "",
        number_of(int(passages), "passage") if passages.isdigit() else passages and f"passages: {passages}",
        shown.get("embedder", shown.get("index", "")),
        f"judged by {score.judges}" if score.judges else "",
        shown.get("failed_votes", ""),
        f"mean over {len(shown['tasks'].split(', '))} tasks" if "tasks" in shown else "",
        f"mrag-eval {shown['mrag_eval_version']}",
        f"fingerprint {shown['fingerprint'][:12]}" if "fingerprint" in shown else "",
    ]
    return ", ".join(part for part in parts if part)


def _there(path: Path) -> list[dict[str, Any]]:
    import yaml

    if not path.is_file():
        return []
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not readable as YAML ({' '.join(str(error).split())})", "correct it") from None
    if not isinstance(content, list) or not all(isinstance(e, dict) and "dataset" in e for e in content):
        raise DataError(f"{path}: expected a list of entries with 'dataset' and 'value'", "correct it")
    return content


def _merged(before: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def key(entry: dict[str, Any]) -> tuple[Any, Any]:
        return entry["dataset"].get("id"), entry["dataset"].get("task_id")

    replaced = {key(entry) for entry in new}
    return [*(entry for entry in before if key(entry) not in replaced), *new]
