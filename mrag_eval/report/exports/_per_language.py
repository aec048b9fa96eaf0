"""Scores by language in the shape of MTEB's results: one file per task, a list of languages in each split."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrag_eval.core import content_key, is_language, language_scripts, normalize_language, write_whole
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import Run, Task
from mrag_eval.report.files._scores import Score

_ALL = "default"
# The split of rows that are not divided into splits.
_NO_SPLIT = "all"


def write_per_language(runs: Sequence[Run], folder: Path, options: Options) -> Written:
    """Write ``folder/results/<org__model>/<revision>/<task>.json`` and ``model_meta.json`` for every run.

    ``scores`` maps the split to a list: the whole (``hf_subset: default``), then each language of the questions, with
    every metric, its interval and n, and ``main_score``, which is that of the benchmark's main metric. Languages are
    BCP 47 with their script. Groups of tasks get no file, since their tasks do.
    """
    files = []
    for run in runs:
        revision = run.file.model_revision or "no_revision_available"
        home = folder / "results" / run.file.model.replace("/", "__") / revision
        home.mkdir(parents=True, exist_ok=True)
        meta = {"name": run.file.model, "revision": revision, "framework": run.file.model_type}
        contents = {_file_name(task.label): _task(task) for task in run.tasks if task.leaf is not None}
        for name, content in {"model_meta": meta, **contents}.items():
            files.append(home / f"{name}.json")
            write_whole(files[-1], json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return Written(tuple(files), tuple(note for run in runs for note in run.no_headlines))


# Characters of a file's name, of those that the label of a task gives it.
_LONGEST = 100

EXPORT = Export("mteb", "scores by language in the shape of MTEB's results", write_per_language)


def _file_name(label: str) -> str:
    """Return a label as the name of a file; one that no file system would take ends in its hash."""
    name = re.sub(r"[^\w.+()=\[\]-]+", "_", label)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}_{content_key(label)[:8]}"


def _task(task: Task) -> dict[str, Any]:
    """Return the content of a task's file. If all questions are in one language, the whole is that language."""
    whole = task.overall
    languages = whole[0].languages.split(", ") if whole and whole[0].languages else []
    subsets: dict[str, list[Score]] = {}
    for score in task.scores:
        if score.dimension == "query_lang":
            subsets.setdefault(score.cell, []).append(score)
    if len(languages) == 1:
        subsets[languages[0]] = whole
    # a part of a score that is no headline is none either
    main = None if task.headline is None else task.main_metric
    rows = [_row(whole, main, _ALL, languages)]
    rows += [_row(scores, main, lang, [lang]) for lang, scores in subsets.items()]
    score = task.scores[0]
    unscored = {score.metric: score.unscored_reasons for score in whole if score.unscored_reasons}
    return {
        "dataset_revision": task.config.revision,
        # the schema has no place for it
        "task_name": task.label if score.part is None else f"{task.label} ({score.part})",
        # MTEB reads a file without this key as one of its releases before 1.11; it had no part in this run
        "mteb_version": None,
        **score.settings,
        "scores": {task.config.split or _NO_SPLIT: rows},
        **({"unscored": unscored} if unscored else {}),
        **({} if task.no_headline is None else {"no_headline": task.no_headline}),
        # the harness measures the run, not its tasks
        "evaluation_time": task.file.seconds if len(task.file.leaves) == 1 else None,
        "run_time": task.file.seconds,
    }


def _row(scores: Sequence[Score], main: str | None, subset: str, languages: Sequence[str]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "hf_subset": subset,
        "languages": [_tagged(lang) for lang in languages],
        "main_score": next((score.value for score in scores if score.metric == main), None),
    }
    for score in scores:
        out[score.metric] = score.value
        out |= {f"{score.metric}_{key}": getattr(score, key) for key in ("low", "high", "n")}
        if score.value is None and score.reason:
            out[f"{score.metric}_reason"] = score.reason
    return out


def _tagged(code: str) -> str:
    if not is_language(code):
        return code
    known = normalize_language(code)
    return known if "-" in known else "-".join((known, *language_scripts(known)[:1]))
