"""Runs as the harness leaves them on disk, with the values that a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.validation import deep_merge

CONFIG: Mapping[str, Any] = {
    "data": {"benchmark": "x", "path": "/here"},
    "source": {"sha256": "abc"},
    "retrieval": {"mode": "qlang", "k": 5},
    "prompt": {"template": "short_answer"},
    "judge": {"prompt": "correctness"},
    "metadata": {"version": 1.0, "pretrained": "some-model"},
    "generation_kwargs": {"max_gen_toks": 16},
}


def row(number: int, lang: str = "en", group: str | None = None, **values: float) -> dict[str, Any]:
    """The record of a row; its id tells its language where that is not English."""
    key = f"r{number}" if lang == "en" else f"{lang}{number}"
    made: dict[str, Any] = {"row": key, "cell": {"query_lang": lang}, "values": values}
    return made if group is None else made | {"group": group}


def write_run(
    folder: Path,
    tasks: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    config: Mapping[str, Any] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    date: str = "2026-01-01T00-00-00.000000",
) -> Path:
    """Sample files and the result file of one run in ``folder``, which is returned."""
    model = folder / "some-model"
    model.mkdir(parents=True, exist_ok=True)
    for task, rows in tasks.items():
        text = "".join(json.dumps({"doc": {"id": r["row"]}, "rows": r}) + "\n" for r in rows)
        (model / f"samples_{task}_{date}.jsonl").write_text(text, "utf-8")
    configs = {task: deep_merge(CONFIG, config or {}) for task in tasks}
    results = {"configs": configs, "group_subtasks": {name: list(inner) for name, inner in (groups or {}).items()}}
    (model / f"results_{date}.json").write_text(json.dumps(results), "utf-8")
    return folder
