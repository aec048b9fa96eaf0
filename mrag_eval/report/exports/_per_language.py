"""Scores by language in the shape of MTEB's results: one file per task, a list of languages in each split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mrag_eval.core import is_language, language_scripts, normalize_language
from mrag_eval.report.exports._runs import Run
from mrag_eval.report.files._scores import Score, ScoredTask

_ALL = "default"


def write_per_language(run: Run, folder: Path) -> list[Path]:
    """Write ``folder/results/<org__model>/<revision>/<task>.json`` and ``model_meta.json``; return the files.

    ``scores`` maps the split to a list: the whole (``hf_subset: default``), then each language of the questions, with
    every metric, its interval and n, and ``main_score``. Languages are BCP 47 with their script. Groups of tasks get no
    file, since their tasks do.
    """
    revision = run.file.model_revision or "no_revision_available"
    home = folder / "results" / run.model_id.replace("/", "__") / revision
    home.mkdir(parents=True, exist_ok=True)
    files = [home / "model_meta.json"]
    meta = {"name": run.model_id, "revision": revision, "framework": run.file.model_type}
    files[0].write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for task in run.tasks:
        if task.leaf is None:
            continue
        path = home / f"{task.label.replace(' ', '_')}.json"
        path.write_text(json.dumps(_task(task, run), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        files.append(path)
    return files


def _task(task: ScoredTask, run: Run) -> dict[str, Any]:
    """Return the content of a task's file. If all questions are in one language, the whole is that language."""
    languages = list(task.leaf.scores.query_langs) if task.leaf is not None else []
    cells = task.by("query_lang")
    rows = [_row(task.overall(), _ALL, languages)]
    rows += [_row(scores, lang, [lang]) for lang, scores in cells.items()]
    if len(languages) == 1:
        rows.append(_row(task.overall(), languages[0], languages))
    unscored = {s.metric: dict(s.unscored) for s in task.overall() if s.unscored}
    return {
        "dataset_revision": task.config.revision,
        "task_name": task.label,
        **task.settings,
        "scores": {task.config.split: rows},
        **({"unscored": unscored} if unscored else {}),
        "run_time": run.file.seconds,
    }


def _row(scores: list[Score], subset: str, languages: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "hf_subset": subset,
        "languages": [_tagged(lang) for lang in languages],
        "main_score": scores[0].value if scores else None,
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
