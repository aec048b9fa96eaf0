"""Scores as a flat CSV, and as a LaTeX table of tasks against metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.report.exports._runs import Run
from mrag_eval.report.files._scores import Score, score_frame

_COLUMNS = ("model", "date", "task", "kind", "dimension", "cell", "metric", "value", "low", "high", "n", "method",
            "reason", "unscored", "lower_is_better")  # fmt: skip
_SETTINGS = ("retrieval_mode", "passages", "index", "embedder", "judges", "prompt", "task_version", "fingerprint",
             "mrag_eval_version")  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip


def write_csv(runs: Sequence[Run], path: Path) -> int:
    """Write one line per figure of every task, group and cell, unrounded; return their number."""
    frame = score_frame((run.file, task) for run in runs for task in run.tasks)
    frame.to_csv(path, columns=[*_COLUMNS, *_SETTINGS], index=False, lineterminator="\n")
    return len(frame)


def latex_table(runs: Sequence[Run], *, digits: int = 1, bold: bool = False) -> str:
    """Return a ``booktabs`` table in percent with intervals: tasks (and models, if there are several) against metrics.

    ``bold`` marks the best model of each task and metric. Blanks, n and unscored rows are explained below.
    """
    metrics = list(dict.fromkeys(s.metric for run in runs for task in run.tasks for s in task.overall()))
    several = len({run.model_id for run in runs}) > 1
    best = _best(runs) if bold and several else {}
    stub = ["Task", "Model"] if several else ["Task"]
    lines = [
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{'l' * len(stub)}{'r' * len(metrics)}}}",
        "\\toprule",
        " & ".join([*stub, *map(escaped, metrics)]) + r" \\",
        "\\midrule",
    ]
    below: dict[tuple[str, str], dict[str, None]] = {}
    rows = [(task, run) for run in runs for task in run.tasks]
    order = {label: i for i, label in enumerate(dict.fromkeys(task.label for task, _ in rows))}
    for task, run in sorted(rows, key=lambda row: order[row[0].label]):
        found = {score.metric: score for score in task.overall()}
        cells = []
        for metric in metrics:
            score = found.get(metric)
            text = _cell(score, digits)
            if score is not None and score.value is not None and best.get((task.label, metric)) == score.value:
                text = f"\\textbf{{{text}}}"
            cells.append(text)
            if score is not None and (score.value is None or score.unscored):
                why = score.unscored_line or score.reason or "no figure"
                below.setdefault((metric, why), {})[f"{task.label}, {run.model_id}" if several else task.label] = None
        labels = [task.label, run.model_id] if several else [task.label]
        lines.append(" & ".join([*map(escaped, labels), *cells]) + r" \\")
    counts = sorted({score.n for run in runs for task in run.tasks for score in task.overall() if score.n})
    span = f"n = {counts[0]:,}" if len(counts) == 1 else f"n from {counts[0]:,} to {counts[-1]:,}" if counts else ""
    lines += ["\\bottomrule", "\\end{tabular}"]
    blanks = [f"{metric}, {why}: {'; '.join(places)}" for (metric, why), places in below.items()]
    said = "; ".join([r"Percent with 95\% intervals", *([span] if span else []), *map(escaped, blanks)])
    lines.append(f"\\par\\smallskip{{\\footnotesize {said}.}}")
    return "\n".join(lines) + "\n"


def _cell(score: Score | None, digits: int) -> str:
    if score is None or score.value is None:
        return "--"
    text = f"{score.value * 100:.{digits}f}"
    if score.low is None or score.high is None:
        return text
    return f"{text} {{\\scriptsize [{score.low * 100:.{digits}f}, {score.high * 100:.{digits}f}]}}"


def _best(runs: Sequence[Run]) -> dict[tuple[str, str], float]:
    """Return ``(task, metric)`` -> the best value, if more than one model has one."""
    found: dict[tuple[str, str], list[float]] = {}
    lower: set[tuple[str, str]] = set()
    for run in runs:
        for task in run.tasks:
            for score in task.overall():
                if score.value is not None:
                    found.setdefault((task.label, score.metric), []).append(score.value)
                    if score.metric in task.lower_is_better:
                        lower.add((task.label, score.metric))
    return {key: (min if key in lower else max)(values) for key, values in found.items() if len(values) > 1}


def escaped(text: str) -> str:
    """Return the text escaped for LaTeX."""
    return "".join(_LATEX.get(char, char) for char in text)
