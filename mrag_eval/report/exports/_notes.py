"""Notes on figures, one line each: interval, n, unscored rows, and settings."""

from __future__ import annotations

from mrag_eval.report.files._scores import Score, ScoredTask


def figure_line(score: Score) -> str:
    """Return e.g. ``char3gram_recall 0.521, 95% [0.498, 0.544], n = 1190``."""
    parts = [score.metric if score.value is None else f"{score.metric} {score.value:.3f}"]
    if score.low is not None and score.high is not None:
        parts.append(f"95% [{score.low:.3f}, {score.high:.3f}]")
    if score.n is not None:
        parts.append(f"n = {score.n}")
    return ", ".join([*parts, *filter(None, (score.unscored_line,))])


def settings_line(task: ScoredTask) -> str:
    """Return a task's settings as one readable line."""
    shown = task.settings
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
