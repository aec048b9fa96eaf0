"""Scores as a LaTeX table of tasks against metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from mrag_eval.core import decimal
from mrag_eval.platform import write_whole
from mrag_eval.report._table import Table, as_texts, noted, numbered
from mrag_eval.report.exports._export import Export, Options, Written
from mrag_eval.report.exports._runs import ExportedTask, Run
from mrag_eval.report.files._scores import Score
from mrag_eval.report.findings._record import Finding
from mrag_eval.scoring import direction_lines, more_is_better, scale_of

_CITED = (
    "@software{mrag_eval, title = {mrag-eval: multilingual retrieval-augmented generation, evaluated}, "
    f"version = {{{version('mrag-eval')}}}}}"
)
_FIGURES = "Brackets are 95% intervals, n counts rows"
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip


def write_latex(runs: Sequence[Run], path: Path, options: Options) -> Written:
    """Write the table to ``path``."""
    write_whole(path, latex_table(runs, bold=options.bold))
    return Written((path,))


EXPORT = Export(
    "latex", "a booktabs table in percent, tasks against metrics", write_latex, file="scores.tex", ranked=False
)


def latex_table(runs: Sequence[Run], *, bold: bool = False) -> str:
    """Return a ``booktabs`` table with intervals: tasks (and models, if there are several) against metrics.

    ``bold`` marks the best model of each task and metric. Blanks, n, directions, the means of groups, unscored rows and
    what is not as shipped are explained below.
    """
    scores = [score for run in runs for task in run.tasks for score in task.overall]
    metrics = list(dict.fromkeys(score.metric for score in scores))
    several = len({score.model for score in scores}) > 1
    best = _best(scores) if bold and several else {}
    tasks: dict[str, list[ExportedTask]] = {}
    for task in (task for run in runs for task in run.tasks if task.overall):
        tasks.setdefault(task.label.removesuffix(f" ({'; '.join(task.said)})"), []).append(task)
    listed = [(name, task) for name, every in tasks.items() for task in every]
    shared, marks = numbered([task.said for _, task in listed])
    stub = ["Task", "Model"] if several else ["Task"]
    lines = [
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{'l' * len(stub)}{'r' * len(metrics)}}}",
        "\\toprule",
        " & ".join([*stub, *(escaped(f"{metric}{scale_of(metric).note}") for metric in metrics)]) + r" \\",
        "\\midrule",
    ]
    below: dict[tuple[str, str | None], dict[str, None]] = {}
    for name, task in listed:
        own, first = {score.metric: score for score in task.overall}, task.overall[0]
        labels = [name + "".join(marks.get(text, "") for text in task.said), first.model][: len(stub)]
        cells = [_cell(own.get(metric), best) for metric in metrics]
        lines.append(" & ".join([*map(escaped, labels), *cells]) + r" \\")
        said = [remark for metric in metrics if metric in own for remark in _remarks(own[metric])]
        for remark in (*said, ("run in part", first.part), ("judges", first.failed_votes)):
            if remark[1]:
                below.setdefault(remark, {})[", ".join(labels)] = None
    counts = sorted({score.n for score in scores if score.n})
    span = f"n = {counts[0]:,}" if len(counts) == 1 else f"n from {counts[0]:,} to {counts[-1]:,}" if counts else ""
    lines += ["\\bottomrule", "\\end{tabular}"]
    blanks = [f"{metric}, {why}: {'; '.join(places)}" for (metric, why), places in below.items()]
    percent = "Percent" if all(scale_of(metric).percent for metric in metrics) else "Percent unless a unit is named,"
    told = [*(f"all rows: {text}" for text in shared), *(f"{mark.strip()} {text}" for text, mark in marks.items())]
    notes = map(escaped, (*direction_lines(metrics), *told, *blanks))
    foot = "; ".join([rf"{percent} with 95\% intervals", *([span] if span else []), *notes])
    lines.append(f"\\par\\smallskip{{\\footnotesize {foot}.}}")
    return "\n".join(lines) + "\n"


def latex_tables(tables: Sequence[Table], found: Sequence[Finding] = ()) -> str:
    """Return tables as ``booktabs`` floats, captioned with what was ``found``, their figures' kind and their notes.

    A system is bold if it is shown to be the best; nothing else is.
    """
    best = {one.subjects[0] for one in found if one.template == "best"}
    parts = ["% \\usepackage{booktabs}", f"% cite: {_CITED}"]
    for table in tables:
        marked, notes = noted(table)
        heads, rows = as_texts(marked)
        said = " ".join(one.sentence for one in found if table is tables[0])
        caption = ". ".join(part.rstrip(".") for part in (table.title, said, _FIGURES, *notes) if part)
        named = [rf"\textbf{{{escaped(name)}}}" if name in best else escaped(name) for name in table.columns]
        lines = [" & ".join((*map(escaped, heads), *named)) + r" \\", "\\midrule"]
        lines += [" & ".join(map(escaped, (*labels, *figures))) + r" \\" for labels, figures in rows]
        parts += [
            "\\begin{table}",
            rf"\caption{{{escaped(caption)}.}}",
            f"\\begin{{tabular}}{{{'l' * len(heads)}{'r' * len(table.columns)}}}",
            *("\\toprule", *lines, "\\bottomrule", "\\end{tabular}", "\\end{table}"),
        ]
    return "\n".join(parts)


def _cell(score: Score | None, best: Mapping[tuple[str, str], float]) -> str:
    if score is None or score.value is None:
        return "--"
    value, low, high = (
        None if end is None else decimal(end, scale=scale_of(score.metric).factor)
        for end in (score.value, score.low, score.high)
    )
    text = str(value)
    if low is not None and high is not None:
        text += f" {{\\scriptsize [{low}, {high}]}}"
    return f"\\textbf{{{text}}}" if best.get((score.task, score.metric)) == score.value else text


def _remarks(score: Score) -> Iterator[tuple[str, str | None]]:
    """Yield what is said of a figure below the table, by its metric."""
    if score.value is None or score.unscored:
        yield score.metric, score.unscored or score.reason or "no figure"
    if score.no_headline is not None:
        yield score.metric, f"no headline, {score.no_headline}"
    yield score.metric, score.mean


def _best(scores: Sequence[Score]) -> dict[tuple[str, str], float]:
    """Return ``(task, metric)`` -> the best value, if more than one model has one and the metric a better side."""
    values: dict[tuple[str, str], list[float]] = {}
    for score in scores:
        if score.value is not None:
            values.setdefault((score.task, score.metric), []).append(score.value)
    return {
        key: max(found) if more else min(found)
        for key, found in values.items()
        if len(found) > 1 and (more := more_is_better(key[1])) is not None
    }


def escaped(text: str) -> str:
    """Return the text escaped for LaTeX."""
    return "".join(_LATEX.get(char, char) for char in text)
