"""What a reader must know about a figure, in one line: its interval, n, what is unscored, how it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from mrag_eval.config import mode_named
from mrag_eval.report.exports._runs import Exported, Score


def unscored_line(score: Score) -> str | None:
    """``3 rows unscored (timeout)``; None where every row has a score."""
    parts = [f"{n} {'row' if n == 1 else 'rows'} unscored ({reason})" for reason, n in score.unscored.items()]
    return ", ".join(parts) or None


def figure_line(score: Score) -> str:
    """``char3gram_recall 0.521, 95% [0.498, 0.544], n = 1190``."""
    parts = [score.metric if score.value is None else f"{score.metric} {score.value:.3f}"]
    if score.low is not None and score.high is not None:
        parts.append(f"95% [{score.low:.3f}, {score.high:.3f}]")
    if score.n is not None:
        parts.append(f"n = {score.n}")
    return ", ".join([*parts, *filter(None, (unscored_line(score),))])


def settings(task: Exported) -> dict[str, str]:
    """How a task was run, as texts: mode, passages, corpus, embedder, judges, fingerprint, version."""
    config = task.config
    retrieval: Mapping[str, Any] = config.get("retrieval") or {}
    index: Mapping[str, Any] = config.get("index") or {}
    judges = ((config.get("scores") or {}).get("judge") or {}).get("judges") or {}
    prints = (config.get("provenance") or {}).get("fingerprints") or {}
    mode = retrieval.get("mode")
    found = {
        "mrag_eval_version": version("mrag-eval"),
        "retrieval_mode": mode,
        "passages": retrieval.get("k") if mode is not None and mode_named(mode).shows != "nothing" else None,
        "index": index.get("kind"),
        "embedder": index.get("embedder"),
        "index_content": index.get("content_hash"),
        "judges": ", ".join(str(judge.get("model")) for judge in judges.values()),
        "prompt": (config.get("prompt") or {}).get("template"),
        "task_version": (config.get("metadata") or {}).get("version"),
        "fingerprint": prints.get("task"),
    }
    if task.leaves:
        found |= {"tasks": ", ".join(task.leaves)}
    return {key: str(value) for key, value in found.items() if value not in (None, "")}


def settings_line(task: Exported) -> str:
    """The same in a line for people."""
    shown = settings(task)
    parts = [
        f"IR mode {shown['retrieval_mode']}" if "retrieval_mode" in shown else "",
        f"{shown['passages']} passages" if "passages" in shown else "",
        shown.get("embedder", shown.get("index", "")),
        f"judged by {shown['judges']}" if "judges" in shown else "",
        f"mean over {len(task.leaves)} tasks" if task.leaves else "",
        f"mrag-eval {shown['mrag_eval_version']}",
        f"fingerprint {shown['fingerprint'][:12]}" if "fingerprint" in shown else "",
    ]
    return ", ".join(part for part in parts if part)
