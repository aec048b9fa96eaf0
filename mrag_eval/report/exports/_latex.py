"""Scores as a LaTeX table of tasks against metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_eval.core import decimal
from mrag_eval.platform import write_whole
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import Run, frame_of
from mrag_eval.report.files._scores import Score, rows_of
from mrag_eval.scoring import direction_lines, more_is_better, scale_of

if TYPE_CHECKING:
    from pandas import DataFrame

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip


def write_latex(runs: Sequence[Run], path: Path, options: Options) -> Written:
    """Write the table to ``path``."""
    write_whole(path, latex_table(runs, bold=options.bold))
    return Written((path,))


EXPORT = Export("latex", "a booktabs table in percent, tasks against metrics", write_latex, file="scores.tex")


def latex_table(runs: Sequence[Run], *, digits: int = 1, bold: bool = False) -> str:
    """Return a ``booktabs`` table with intervals: tasks (and models, if there are several) against metrics.

    ``bold`` marks the best model of each task and metric. Blanks, n, directions, the means of groups and unscored rows
    are explained below.
    """
    frame = frame_of(runs)
    frame = frame[frame["dimension"] == ""]
    metrics = list(frame["metric"].unique())
    several = frame["model"].nunique() > 1
    best = _best(frame) if bold and several else {}
    stub = ["Task", "Model"] if several else ["Task"]
    lines = [
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{'l' * len(stub)}{'r' * len(metrics)}}}",
        "\\toprule",
        " & ".join([*stub, *(escaped(f"{metric}{scale_of(metric).note}") for metric in metrics)]) + r" \\",
        "\\midrule",
    ]
    below: dict[tuple[str, str], dict[str, None]] = {}
    for _, same in frame.groupby("task", sort=False):
        for _, row in same.groupby("path", sort=False):
            scores = {score.metric: score for score in rows_of(row)}
            labels = [row["task"].iloc[0], row["model"].iloc[0]][: len(stub)]
            cells = [_cell(scores.get(metric), digits, best) for metric in metrics]
            lines.append(" & ".join([*map(escaped, labels), *cells]) + r" \\")
            for metric in metrics:
                score = scores.get(metric)
                if score is not None and (score.value is None or score.unscored):
                    why = score.unscored or score.reason or "no figure"
                    below.setdefault((metric, why), {})[", ".join(labels)] = None
                if score is not None and score.no_headline is not None:
                    below.setdefault((metric, f"no headline, {score.no_headline}"), {})[", ".join(labels)] = None
                if score is not None and score.mean is not None:
                    below.setdefault((metric, score.mean), {})[", ".join(labels)] = None
            first = next(iter(scores.values()))
            for about, said in (("run in part", first.part), ("judges", first.failed_votes)):
                if said:
                    below.setdefault((about, said), {})[", ".join(labels)] = None
    counts = sorted({int(n) for n in frame["n"].dropna() if n})
    span = f"n = {counts[0]:,}" if len(counts) == 1 else f"n from {counts[0]:,} to {counts[-1]:,}" if counts else ""
    lines += ["\\bottomrule", "\\end{tabular}"]
    blanks = [f"{metric}, {why}: {'; '.join(places)}" for (metric, why), places in below.items()]
    percent = "Percent" if all(scale_of(metric).percent for metric in metrics) else "Percent unless a unit is named,"
    notes = map(escaped, (*direction_lines(metrics), *blanks))
    foot = "; ".join([rf"{percent} with 95\% intervals", *([span] if span else []), *notes])
    lines.append(f"\\par\\smallskip{{\\footnotesize {foot}.}}")
    return "\n".join(lines) + "\n"


def _cell(score: Score | None, digits: int, best: Mapping[tuple[str, str], float]) -> str:
    if score is None or score.value is None:
        return "--"
    value, low, high = (
        None if end is None else decimal(end, digits, scale=scale_of(score.metric).factor)
        for end in (score.value, score.low, score.high)
    )
    text = str(value)
    if low is not None and high is not None:
        text += f" {{\\scriptsize [{low}, {high}]}}"
    return f"\\textbf{{{text}}}" if best.get((score.task, score.metric)) == score.value else text


def _best(frame: DataFrame) -> dict[tuple[str, str], float]:
    """Return ``(task, metric)`` -> the best value, if more than one model has one and the metric a better side."""
    return {
        key: float(scores["value"].max() if more else scores["value"].min())
        for key, scores in frame[frame["value"].notna()].groupby(["task", "metric"])
        if len(scores) > 1 and (more := more_is_better(key[1])) is not None
    }


def escaped(text: str) -> str:
    """Return the text escaped for LaTeX."""
    return "".join(_LATEX.get(char, char) for char in text)
