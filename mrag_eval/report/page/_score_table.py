"""All scores of some runs as a table, and as one by pair of languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mrag_eval.config import CONTEXT_PAIR, unlisted
from mrag_eval.core import decimal, points
from mrag_eval.models import UNKNOWN_MODEL, answered_by_others
from mrag_eval.platform import ConfigError, did_you_mean
from mrag_eval.report._table import Cell, Row, Table, percent_cell, render, table_width
from mrag_eval.report.files._leaves import Leaf, result_leaves
from mrag_eval.report.files._results import ResultFile, metrics_in_order
from mrag_eval.report.files._scores import Score, leaf_scores
from mrag_eval.report.findings._find import findings_of
from mrag_eval.report.findings._record import finding_lines
from mrag_eval.report.findings._systems import few
from mrag_eval.report.tables._controls import TaskControls, control_tables
from mrag_eval.report.tables._losses import loss_table
from mrag_eval.scoring import (
    direction_lines,
    failure_line,
    marked_by_controls,
    more_is_better,
    scale_of,
    unfound_line,
    vote_lines,
)

Leaves = Sequence[tuple[Leaf, ResultFile]]
# Model, mode, and the settings that tell it apart.
System = tuple[str, str, str]
# Metrics beside the headline in the short table, and tasks whose pairs of languages are below it.
_MORE, _PAIRED = 5, 4
_FIGURE = re.compile(r"\d[\d.,]*")


def short_tables(results: Sequence[Path], metrics: Sequence[str] = (), width: int | None = None) -> list[Table]:
    """Return what answers first: one task by language, several by task, systems side by side, and pairs of languages.

    ``metrics`` are those to show: by default the headline and, of one system, at most five more that fit the width.
    Raises ConfigError for a metric that no run has.
    """
    leaves = result_leaves(results)
    known = metrics_in_order(leaf.result for leaf, _ in leaves)
    if wrong := [name for name in metrics if name not in known]:
        raise ConfigError(
            f"--metrics: no run has '{wrong[0]}'{did_you_mean(wrong[0], known)}", f"one of all, {', '.join(known)}"
        )
    scored = [
        name
        for name in known
        if any(getattr(leaf.result.metrics.get(name), "value", None) is not None for leaf, _ in leaves)
    ]
    sided = sorted(scored, key=lambda name: more_is_better(name) is None)
    chosen = [*dict.fromkeys(metrics or (*known[:1], *sided))][: max(len(metrics), 1 + _MORE)]
    place = {((leaf.run, leaf.mode, leaf.variant), leaf.task): leaf for leaf, _ in leaves}
    systems, tasks = [*dict.fromkeys(system for system, _ in place)], [*dict.fromkeys(task for _, task in place)]
    if len(systems) > 1 and len(place) == len(systems) * len(tasks):
        apart = [len({*parts}) > 1 for parts in zip(*systems, strict=True)]
        names = {
            one: " · ".join(part for part, told in zip(one, apart, strict=True) if told and part) for one in systems
        }
        heads = {name or system[0]: system for system, name in names.items()}
        shown = metrics or chosen[:1]
        tables = [_side_by_side(leaves, metric, heads, tasks, place) for metric in shown]
    else:
        shown = chosen
        for most in range(len(chosen), 0, -1):
            tables = [_down(leaves, chosen[:most])]
            if metrics or width is None or table_width(tables[0]) <= width:
                break
    return [*tables, *pair_tables(leaves, shown[0])]


def opening(results: Sequence[Path], width: int) -> str:
    """Return what a terminal shows of runs first: what was found, and the short tables."""
    tables = render(short_tables(results, width=width), width=width)
    return "\n".join([*finding_lines(findings_of(results), width), "", tables])


def _side_by_side(
    leaves: Leaves,
    metric: str,
    heads: Mapping[str, System],
    tasks: Sequence[str],
    place: Mapping[tuple[System, str], Leaf],
) -> Table:
    """Return a metric of systems side by side, by task, or by language if there is one task."""
    found = {(one.task, one.dimension, one.cell): one for one in leaf_scores(leaves) if one.metric == metric}
    codes = dict.fromkeys(cell for _, dimension, cell in found if dimension == "query_lang")
    lines = [(name, "", "") for name in tasks]
    if len(tasks) == 1:
        lines = [("all", "", ""), *((code, "query_lang", code) for code in codes if len(codes) > 1)]
    rows = []
    for line in lines:
        own = [place[system, line[0] if len(tasks) > 1 else tasks[0]] for system in heads.values()]
        cells = [_cell(found.get((leaf.label, *line[1:])), leaf.task, metric) for leaf in own]
        rows.append(_counted(line[0], cells))
    title = f"Scores by {metric}{scale_of(metric).note}" + (f" · {tasks[0]}" if len(tasks) == 1 else "")
    marks = {leaf.label: leaf.label.partition(" [")[2].rstrip("]") for leaf, _ in leaves}
    said = _together((mark, leaf) for leaf, _ in leaves if (mark := marks[leaf.label]))
    notes = (*said, *_remarks(leaves, [one for one in found.values() if not one.dimension], [metric]))
    stub = "language" if len(tasks) == 1 else "task"
    return Table("short", title, (stub,), ("n", *heads), tuple(rows), 1, notes, intervals=True)


def _down(leaves: Leaves, metrics: Sequence[str]) -> Table:
    """Return tasks x metrics, of a single task its languages x metrics; the headline is the first."""
    found = {
        (one.task, one.metric, one.cell): one for one in leaf_scores(leaves) if one.dimension in ("", "query_lang")
    }
    (leaf, _), marks, head = leaves[0], {}, "task"
    lines = [(leaf.label, leaf, "") for leaf, _ in leaves]
    title, notes = "Scores", []
    if len(leaves) == 1:
        title, head = f"Scores of {leaf.run}" + (f" · {leaf.label}" if leaf.label != leaf.run else ""), "language"
        marks = marked_by_controls(leaf.result.scores.controls, metrics[0])
        codes = leaf.result.metrics[metrics[0]].cells("query_lang") if metrics[0] in leaf.result.metrics else {}
        lines = [("all", leaf, "")]
        lines += [(f"{code} °" if code in marks else code, leaf, code) for code in codes if len(codes) > 1]
        alike: dict[str, list[str]] = {}
        for code in (code for code in codes if code in marks):
            alike.setdefault(_FIGURE.sub("0", marks[code]), []).append(code)
        notes = [f"° marked by the controls: {', '.join(own)}: {marks[own[0]]}" + (" in the first" if own[1:] else "")
                 for own in alike.values()]  # fmt: skip
    rows = [
        _counted(name, [_cell(found.get((own.label, metric, code)), own.task, metric) for metric in metrics])
        for name, own, code in lines
    ]
    heads = ("n", *(f"{metric}{scale_of(metric).note}" for metric in metrics))
    whole = [one for one in found.values() if not one.dimension and one.metric in metrics]
    notes += [*_remarks(leaves, whole, metrics), *_together(_lost(leaves))]
    return Table("short", title, (head,), heads, tuple(rows), 1, tuple(notes), intervals=True)


def _lost(leaves: Leaves) -> Iterator[tuple[str, Leaf]]:
    """Yield the metrics that no row has, where that is neither a rule nor the benchmark's."""
    for leaf, _ in leaves:
        found: dict[str, list[str]] = {}
        for name, reasons in leaf.result.unscored.items():
            known = leaf.result.metrics.get(name)
            if (known is None or known.value is None) and not all(map(leaf.result.omits, reasons)):
                found.setdefault("; ".join(reasons), []).append(name)
        yield from ((f"no row has {few(names)}: {why}", leaf) for why, names in found.items())


def _counted(name: str, cells: Sequence[Cell]) -> Row:
    """Return a row whose first cell is n, if all its figures have the same; else they keep theirs."""
    counts = {cell.n for cell in cells if cell.value is not None}
    if len(counts) != 1 or None in counts:
        return Row((name,), "", (Cell(None, ""), *cells))
    return Row((name,), "", (Cell(float(counts.pop() or 0), digits=0), *(replace(cell, n=None) for cell in cells)))


def pair_tables(leaves: Leaves, metric: str) -> Iterator[Table]:
    """Yield of each of a few tasks the languages of questions x those of documents, or of the contexts of a log."""
    for leaf, _ in leaves if len(leaves) <= _PAIRED else ():
        found = leaf.result.metrics.get(metric)
        kinds = [(kind, cells) for kind in ("pair", CONTEXT_PAIR) if found and len(cells := found.cells(kind)) > 1]
        if not kinds:
            continue
        kind, cells = kinds[0]
        ends = [pair.split("->") for pair in cells]
        asked, others = ([*dict.fromkeys(end[i] for end in ends)] for i in (0, 1))
        rows = []
        for code in asked:
            own = [cells.get(f"{code}->{other}") for other in others]
            rows.append(
                Row((code,), "", tuple(percent_cell(one, metric=metric) if one else Cell(None, "") for one in own))
            )
        across = "the contexts" if kind == CONTEXT_PAIR else "the relevant document"
        title = f"{metric} by language of the question (down) and of {across} (across)"
        title += f" · {leaf.label}" if len(leaves) > 1 else ""
        yield Table(f"short-{kind}", title, ("question",), tuple(others), tuple(rows), 1, intervals=True)


def score_tables(results: Sequence[Path]) -> list[Table]:
    """Return the table of scores, that by pair of languages if a score was measured in several, and those of losses and
    controls.
    """
    leaves = result_leaves(results)
    found = [_score_table(leaves), *_pair_table(leaves), *loss_table(leaf for leaf, _ in leaves)]
    return found + control_tables([TaskControls.of(leaf) for leaf, _ in leaves])


def score_table(results: Sequence[Path]) -> Table:
    """Return tasks x metrics with interval and n, from result files or folders; blanks have a reason."""
    return _score_table(result_leaves(results))


def _score_table(leaves: Leaves) -> Table:
    found = {(score.task, score.metric): score for score in leaf_scores(leaves) if not score.dimension}
    metrics = metrics_in_order(leaf.result for leaf, _ in leaves)
    rows = []
    for leaf, _ in leaves:
        cells = tuple(_cell(found.get((leaf.label, metric)), leaf.task, metric) for metric in metrics)
        rows.append(Row((leaf.label,), leaf.run, cells))
    heads = tuple(f"{metric}{scale_of(metric).note}" for metric in metrics)
    notes = (*_remarks(leaves, [*found.values()], metrics), *_words([leaf for leaf, _ in leaves]))
    return Table("scores", "Scores", ("task",), heads, tuple(rows), 1, notes, intervals=True)


def _remarks(leaves: Leaves, scores: Sequence[Score], metrics: Sequence[str]) -> Iterator[str]:
    """Yield what a reader of scores has to know: units, sides, bounds, what failed, and who replied."""
    shown = [leaf for leaf, _ in leaves]
    if any(scale_of(metric).note for metric in metrics):
        yield "in percent unless another unit is named"
    yield from direction_lines(metrics)
    yield from _bounds(shown)
    yield from _notes(scores, {leaf.label: leaf for leaf in shown})
    judged = {one.metric: one.judges for one in scores if one.judges}
    yield from (f"{metric}: decided by {judges}" for metric, judges in judged.items())
    found = (*_unread(shown, metrics), *_failures(shown), *_unfound(shown), *_answered_by_others(shown))
    yield from _together((*found, *_unmeasured(shown)))


def _pair_table(leaves: Leaves) -> Iterator[Table]:
    """Yield tasks and metrics x pairs of the languages of question and relevant document, unless there is one pair."""
    found: dict[tuple[str, str], dict[str, Score]] = {}
    for score in leaf_scores(leaves):
        if score.dimension == "pair":
            found.setdefault((score.task, score.metric), {})[score.cell] = score
    pairs = sorted({pair for cells in found.values() for pair in cells})
    if len(pairs) < 2:
        return
    runs = {leaf.label: leaf for leaf, _ in leaves}
    rows = [
        Row(
            (task, f"{metric}{scale_of(metric).note}"),
            runs[task].run,
            tuple(_pair_cell(cells.get(pair), runs[task].task, metric) for pair in pairs),
        )
        for (task, metric), cells in found.items()
    ]
    note = "a->b: question in a, relevant document in b; a blank cell has no rows"
    stub, title = ("task", "metric"), "Scores by pair of languages"
    yield Table("pairs", title, stub, tuple(pairs), tuple(rows), 1, (note,), intervals=True)


def _pair_cell(score: Score | None, task: str, metric: str) -> Cell:
    if score is None or score.value is None:
        return Cell(None, "" if score is None else score.reason or "no scored row", task=task, metric=metric)
    return percent_cell(score, task, metric)


def _bounds(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield the tasks whose scores are upper bounds, by the reason."""
    reasons = ((leaf.result.config.upper_bound, leaf) for leaf in leaves)
    yield from _together((f"{why}; no headline, no rank", leaf) for why, leaf in reasons if why is not None)


def _words(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield how BM25 cut words, once for all tasks that it did alike."""
    found = ((leaf.result.config.index.get("analyzer"), leaf) for leaf in leaves)
    yield from _together((f"BM25 searched {words}", leaf) for words, leaf in found if words)


def _unread(leaves: Iterable[Leaf], metrics: Sequence[str]) -> Iterator[tuple[str, Leaf]]:
    """Yield what unread choices, which count as wrong, leave open of an accuracy in each language."""
    for leaf in leaves:
        for metric, score in leaf.result.metrics.items():
            if score.unread and metric in metrics:
                parts = (f"{where} {points(low)} to {points(high)}" for where, (low, high) in score.unread.items())
                yield (
                    f"{metric}: languages differ in the share of replies without a readable choice, which count as "
                    f"wrong; with all of these wrong, and all right: {', '.join(parts)}",
                    leaf,
                )


def _failures(leaves: Iterable[Leaf]) -> Iterator[tuple[str, Leaf]]:
    """Yield what failed in each task, and how often the model gave no answer, which counts as wrong."""
    for leaf in leaves:
        scores = leaf.result.scores
        if scores.failures:
            yield f"failed: {failure_line(scores)}", leaf
        yield from ((line, leaf) for line in vote_lines(scores))
        if scores.outcomes:
            said = ", ".join(f"{n:,} {outcome}" for outcome, n in scores.outcomes.items())
            yield f"no answer by the model, counted as wrong: {said}", leaf


def _unfound(leaves: Iterable[Leaf]) -> Iterator[tuple[str, Leaf]]:
    """Yield the tasks in which a retriever that cannot be listed returned no relevant id at all."""
    for leaf in leaves:
        suspect = unfound_line(leaf.result.scores) if unlisted(leaf.result.config.retrieval) else None
        if suspect is not None:
            yield suspect, leaf


def _answered_by_others(leaves: Sequence[Leaf]) -> Iterator[tuple[str, Leaf]]:
    """Yield the runs in which other models replied than the one asked, a cache that any may have filled included."""
    for leaf in leaves:
        block = leaf.result.config.outcome
        counts = dict(block.get("answered_by") or {})
        if number := counts.pop(UNKNOWN_MODEL, 0):
            yield f"{number:,} replies of the run by a model that is not known (--use_cache)", leaf
        if others := answered_by_others(str(leaf.result.config.evaluated), counts):
            yield f"answered by {others}", leaf


def _unmeasured(leaves: Iterable[Leaf]) -> Iterator[tuple[str, Leaf]]:
    """Yield the metrics that were asked for and could not be measured, once for all tasks with the same ones."""
    for leaf in leaves:
        for reason, names in leaf.result.config.unmeasured.items():
            yield f"{', '.join(names)}: not measured, as {reason}", leaf


def _together(found: Iterable[tuple[str, Leaf]]) -> Iterator[str]:
    """Yield each remark once, with the tasks that it is on; of several that differ in figures alone, the first."""
    alike: dict[str, dict[str, list[str]]] = {}
    for remark, leaf in found:
        alike.setdefault(_FIGURE.sub("0", remark), {}).setdefault(remark, []).append(leaf.label)
    for every in alike.values():
        if len(every) <= _PAIRED:
            yield from (f"{remark} ({few(where)})" for remark, where in every.items())
            continue
        first, where = next(iter(every.items()))
        others = len({label for own in every.values() for label in own} - {*where})
        yield f"{first} ({few(where)}; with other figures in {others} more)"


def _notes(scores: Iterable[Score], leaves: Mapping[str, Leaf]) -> Iterator[str]:
    """Yield what grouped rows are worth, once a task, and what unscored rows could change, for each score."""
    grouped: dict[str, tuple[list[int], list[float]]] = {}
    missing: list[tuple[str, Leaf]] = []
    for score in scores:
        if score.groups is not None:
            sizes, effects = grouped.setdefault(score.task, ([], []))
            sizes.append(score.groups)
            effects += [] if score.design_effect is None else [score.design_effect]
        if score.worst_case is not None and score.value is not None:
            said = (
                f"{score.metric}: {score.unscored}; with all of them wrong {points(score.worst_case)}, "
                f"with all of them right {points(score.best_case)}"
                + ("" if score.no_headline is None else f"; no headline and no rank: {score.no_headline}")
            )
            missing.append((said, leaves[score.task]))
    yield from _together(missing)
    if len(grouped) > 2:
        # a line for each task would hide the other remarks
        every = [*grouped.values()]
        all_of = ([one for known, _ in every for one in known], [one for _, known in every for one in known])
        grouped = {f"{len(grouped)} tasks": all_of}
    for where, (sizes, effects) in grouped.items():
        ends = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes), max(sizes))))
        told = " to ".join(dict.fromkeys(decimal(end) for end in (min(effects), max(effects)))) if effects else ""
        yield f"{where}: rows of {ends} groups were resampled together; design effect {told or 'not known'}"


def _cell(score: Score | None, task: str, metric: str) -> Cell:
    if score is None:
        return Cell(None, "", task=task, metric=metric)  # a metric of other tasks
    if score.value is None:
        return Cell(None, score.unscored or score.reason, task=task, metric=metric)
    return percent_cell(score, task, metric)
