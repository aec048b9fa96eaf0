"""Scores by language as results of MTEB: one file per task, which mteb's own reader loads."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrag_eval.core import is_language, iso_639_3
from mrag_eval.platform import content_key, write_whole
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import ExportedTask, Run
from mrag_eval.report.files._scores import Score

# The split of rows that are not divided into splits.
_NO_SPLIT = "all"
# The subset of rows whose languages are not told apart.
_ALL = "default"
_NO_REVISION = "no_revision_available"
# Characters of a file's name, of those that the label of a task gives it.
_LONGEST = 100
# MTEB's frameworks, by the beginning of the harness's model type.
_FRAMEWORKS = {
    **dict.fromkeys(("hf", "vllm", "sglang", "mamba", "nemo"), "PyTorch"),
    **dict.fromkeys(("gguf", "ggml"), "GGUF"),
    **dict.fromkeys(("openai-", "anthropic", "azure", "local-"), "API"),
    "openvino": "OpenVINO",
}
# What a model's record must have, and what is not known of it here.
_UNKNOWN = (
    *("loader", "release_date", "languages", "n_parameters", "memory_usage_mb", "max_tokens", "embed_dim", "license"),
    *("open_weights", "public_training_code", "public_training_data", "similarity_fn_name", "use_instructions"),
    "training_datasets",
)


def write_per_language(runs: Sequence[Run], folder: Path, options: Options) -> Written:
    """Write ``folder/results/<org__model>/<revision>/<task>.json`` and ``model_meta.json`` for every run.

    ``scores`` maps the split to a list with an entry for each language of the questions: every metric with its interval
    and n, and ``main_score``, that of the benchmark's main metric. So mteb's ``get_score()`` is the unweighted mean
    over languages; if the main metric is one of all languages at once, the entry is that of all rows. mteb leaves these
    alone: ``overall`` and ``by_language``, the figures over all rows and in each language, and ``metrics``, the unit
    and the better side of each. Languages are ISO 639-3 with their script. A group gets no file, since its tasks do. A
    task without a headline has no main score: mteb loads it, and ``get_score`` needs a ``getter``.
    """
    files, notes = [], []
    for run in runs:
        tasks = [task for task in run.tasks if task.leaf is not None]
        meta = _model(run)
        home = folder / "results" / str(meta["name"]).replace("/", "__") / str(meta["revision"])
        home.mkdir(parents=True, exist_ok=True)
        for name, content in {"model_meta": meta, **{_file_name(task.label): _task(task) for task in tasks}}.items():
            files.append(home / f"{name}.json")
            write_whole(files[-1], json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        notes += [note for task in run.tasks if (note := _no_main_score(task)) is not None]
    return Written(tuple(files), tuple(notes))


EXPORT = Export("mteb", "scores by language as results of MTEB", write_per_language)


def _model(run: Run) -> dict[str, Any]:
    """Return what mteb keeps of a model; its names have an organisation."""
    name, kind = run.file.model, run.file.model_type or ""
    framework = [found for start, found in _FRAMEWORKS.items() if kind.startswith(start)]
    return {
        "name": name if "/" in name else f"unknown/{name}",
        "revision": run.file.model_revision or _NO_REVISION,
        "framework": framework[:1],
        **dict.fromkeys(_UNKNOWN),
    }


def _file_name(label: str) -> str:
    """Return a label as the name of a file; one that no file system would take ends in its hash."""
    name = re.sub(r"[^\w.+()=\[\]-]+", "_", label)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}_{content_key(label)[:8]}"


def _no_main_score(task: ExportedTask) -> str | None:
    """Return why a task has no main score as mteb knows them: the more the better, in every language; else None."""
    if task.headline is None:
        return task.no_headline
    if task.headline.better != "higher":
        return f"{task.label}: no main score, as mteb takes more as better, and of {task.main_metric} it is not"
    blank = [lang for lang, own in _subsets(task).items() if _value(own, task.main_metric) is None]
    if blank:
        return f"{task.label}: no main score, as its mean over languages needs a score in {', '.join(blank)}"
    return None


def _by_language(task: ExportedTask) -> dict[str, list[Score]]:
    """Return the figures by language of the question; those of the whole if there is one language."""
    found: dict[str, list[Score]] = {}
    for score in task.scores:
        if score.dimension == "query_lang":
            found.setdefault(score.cell, []).append(score)
    return found or {task.scores[0].languages or _ALL: task.overall}


def _subsets(task: ExportedTask) -> dict[str, list[Score]]:
    """Return the figures that mteb averages: by language, or of the whole for a main score of all languages at once."""
    found = _by_language(task)
    apart = any(score.metric == task.main_metric for own in found.values() for score in own)
    return found if apart or task.headline is None else {_ALL: task.overall}


def _value(scores: Sequence[Score], metric: str | None) -> float | None:
    return next((score.value for score in scores if score.metric == metric), None)


def _task(task: ExportedTask) -> dict[str, Any]:
    """Return the content of a task's file."""
    score, why = task.scores[0], _no_main_score(task)
    # a part of a score that is no headline is none either
    main = task.main_metric if why is None else None
    whole = _row(task.overall, main, _ALL, score.languages)
    by_language = [_row(own, main, lang, lang) for lang, own in _by_language(task).items()]
    unscored = {score.metric: score.unscored_reasons for score in task.overall if score.unscored_reasons}
    return {
        # rows without a revision are known by their content
        "dataset_revision": task.config.revision or str(task.config.source.get("content") or _NO_REVISION),
        # the schema has no place for it
        "task_name": task.label if score.part is None else f"{task.label} ({score.part})",
        # MTEB reads a file without this key as one of its releases before 1.11; it had no part in this run
        "mteb_version": None,
        **score.settings,
        "scores": {task.split or _NO_SPLIT: [whole] if _ALL in _subsets(task) else by_language},
        "overall": whole,
        "by_language": by_language,
        "metrics": {
            s.metric: {"unit": s.unit, "better": s.better, **({"judges": s.judges} if s.judges else {})}
            for s in task.overall
        },
        **({"unscored": unscored} if unscored else {}),
        **({} if why is None else {"no_headline": why}),
        # the harness measures the run, not its tasks
        "evaluation_time": task.file.seconds if len(task.file.leaves) == 1 else None,
        "run_time": task.file.seconds,
    }


def _row(scores: Sequence[Score], main: str | None, subset: str, languages: str | None) -> dict[str, Any]:
    codes = (languages or _ALL).split(", ")
    out: dict[str, Any] = {
        "hf_subset": subset,
        "languages": [iso_639_3(code) if is_language(code) else code for code in codes],
        "main_score": _value(scores, main),
    }
    for score in scores:
        out[score.metric] = score.value
        out |= {f"{score.metric}_{key}": getattr(score, key) for key in ("low", "high", "n")}
        if score.value is None and score.reason:
            out[f"{score.metric}_reason"] = score.reason
    return out
