"""All scores of some runs as a table, and as one by pair of languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from mrag_eval.config import CONTEXT_PAIR, called_here, unlisted
from mrag_eval.core import decimal, points
from mrag_eval.models import UNKNOWN_MODEL, answered_by_others
from mrag_eval.platform import ConfigError, MragError, did_you_mean
from mrag_eval.report._table import Cell, Row, Table, percent_cell, render, table_width
from mrag_eval.report.files._leaves import Leaf, result_leaves
from mrag_eval.report.files._results import ResultFile, metrics_in_order, read_results
from mrag_eval.report.files._scores import Score, leaf_scores
from mrag_eval.report.findings._find import findings_of
from mrag_eval.report.findings._record import finding_lines
from mrag_eval.report.findings._systems import few
from mrag_eval.report.tables._controls import TaskControls, control_tables
from mrag_eval.report.tables._losses import loss_table
from mrag_eval.scoring import (
    direction_lines,
    failure_line,
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
    if not known and not metrics:
        return [_score_table(leaves)]
    if wrong := [name for name in metrics if name not in known]:
        said = f"--metrics: no run has '{wrong[0]}'{did_you_mean(wrong[0], known)}"
        raise ConfigError(said, called_here(wrong[0], f"one of {', '.join(('all', *known))}"))
    scored = {name for leaf, _ in leaves for name, one in leaf.result.metrics.items() if one.value is not None}
    judged = {name for name in scored for leaf, _ in leaves if leaf.result.scores.judges(name)}
    sided = sorted(scored, key=lambda one: (more_is_better(one) is None, one not in judged, known.index(one)))
    chosen = [*metrics] or [*dict.fromkeys((*known[:1], *sided))][: 1 + _MORE]
    place = {((leaf.run, leaf.mode, leaf.variant), leaf.task): leaf for leaf, _ in leaves}
    systems, tasks = [*dict.fromkeys(system for system, _ in place)], [*dict.fromkeys(task for _, task in place)]
    apart = [len({*parts}) > 1 for parts in zip(*systems, strict=True)]
    names = {one: " · ".join(part for part, told in zip(one, apart, strict=True) if told and part) for one in systems}
    if len(systems) == 1 or len(place) < len(systems) * len(tasks):
        systems, place = systems[:1], {(systems[0], leaf.label): leaf for leaf, _ in leaves}
        tasks = [task for _, task in place]
    heads = [leaf.result.metrics[chosen[0]] for leaf, _ in leaves if chosen[0] in leaf.result.metrics]
    codes = [*dict.fromkeys(code for one in heads for code in one.cells("query_lang"))] if len(tasks) == 1 else []
    down = [("all" if len(tasks) == 1 else task, task, "") for task in tasks]
    down += [(code, tasks[0], code) for code in codes if len(codes) > 1]
    of = f" · {tasks[0]}" if len(tasks) == 1 else ""
    if len(systems) == 1:
        title = f"Scores of {leaves[0][0].run}{of}" if of else "Scores"
        blocks = [(title, [(f"{name}{scale_of(name).note}", systems[0], name) for name in chosen])]
    else:
        blocks = [
            (f"Scores by {name}{scale_of(name).note}{of}", [(names[one] or one[0], one, name) for one in systems])
            for name in (metrics or chosen[:1])
        ]
    tables = [_short(leaves, title, down, across, place) for title, across in blocks]
    while len(systems) == 1 < len(chosen) and not metrics and width is not None and table_width(tables[0]) > width:
        chosen.pop()
        tables = [_short(leaves, blocks[0][0], down, blocks[0][1][: len(chosen)], place)]
    return [*tables, *pair_tables(leaves if len(leaves) <= _PAIRED else (), chosen[:1])]


def opening(results: Sequence[Path], width: int, *, every: bool = False) -> str:
    """Return what a terminal shows first: what was found, and the short tables, of few metrics or ``every`` one.

    What changed is told of one file's run since those in its folder that ran its tasks before.
    """
    metrics = metrics_in_order(leaf.result for leaf, _ in result_leaves(results)) if every else ()
    tables = render(short_tables(results, metrics, width), width=width)
    return "\n".join([*finding_lines(findings_of(_with_earlier(results)), width), "", tables])


def _with_earlier(results: Sequence[Path]) -> Sequence[Path]:
    """Return one run's file behind those in its folder that ran its tasks before; of several runs, what is given."""
    files = read_results(results)
    if len(files) != 1:
        return results
    (own,) = files
    try:
        beside = read_results([own.path.parent])
    except MragError:
        # whatever else is in the folder
        return results
    return [
        one.path for one in beside if one.model == own.model and one.date <= own.date and {*one.leaves} & {*own.leaves}
    ]


def _short(
    leaves: Leaves,
    title: str,
    down: Sequence[tuple[str, str, str]],
    across: Sequence[tuple[str, System, str]],
    place: Mapping[tuple[System, str], Leaf],
) -> Table:
    """Return rows of a name, task and language x columns of a name, system and metric."""
    found = {
        (one.task, one.metric, one.cell): one for one in leaf_scores(leaves) if one.dimension in ("", "query_lang")
    }
    rows = []
    for name, task, code in down:
        own = [(place[system, task], metric) for _, system, metric in across]
        rows.append(_counted(name, [_cell(found.get((one.label, by, code)), one.task, by) for one, by in own]))
    metrics = [*dict.fromkeys(metric for _, _, metric in across)]
    whole = [one for one in found.values() if not one.dimension and one.metric in metrics]
    several = len({system for _, system, _ in across}) > 1
    notes = (
        *_together(
            (mark.rstrip("]"), leaf) for leaf, _ in leaves if several and (mark := leaf.label.partition(" [")[2])
        ),
        *_remarks(leaves, whole, metrics),
    )
    stub = "language" if down[0][0] == "all" else "task"
    heads = ("n", *(name for name, _, _ in across))
    return Table("short", title, (stub,), heads, tuple(rows), 1, notes, intervals=True)


def _counted(name: str, cells: Sequence[Cell]) -> Row:
    """Return a row whose first cell is n, if all its figures have the same; else they keep theirs."""
    counts = {cell.n for cell in cells if cell.value is not None}
    if len(counts) != 1 or None in counts:
        return Row((name,), "", (Cell(None, ""), *cells))
    return Row((name,), "", (Cell(float(counts.pop() or 0), digits=0), *(replace(cell, n=None) for cell in cells)))


def pair_tables(leaves: Leaves, metrics: Sequence[str]) -> Iterator[Table]:
    """Yield of each task and metric the languages of questions x those of documents, or of the contexts of a log."""
    for (leaf, _), metric in product(leaves, metrics):
        found = leaf.result.metrics.get(metric)
        valued = {
            kind: {pair: one for pair, one in found.cells(kind).items() if one.value is not None}
            for kind in ("pair", CONTEXT_PAIR)
            if found
        }
        kind = next((kind for kind, cells in valued.items() if len(cells) > 1), None)
        if kind is None:
            continue
        label = f" · {leaf.label}" if len(leaves) > 1 else ""
        judges = ", ".join(leaf.result.scores.judges(metric))
        notes = (f"{metric}: decided by {judges}",) if judges else ()
        rows = [
            replace(_counted("", [percent_cell(one, leaf.task, metric)]), labels=tuple(pair.split("->")))
            for pair, one in valued[kind].items()
        ]
        stub = ("question", "contexts" if kind == CONTEXT_PAIR else "relevant document")
        heads = ("n", f"{metric}{scale_of(metric).note}")
        title = f"{metric} by pair of languages{label}"
        yield Table("pairs", title, stub, heads, tuple(rows), 1, notes, intervals=True)


def score_tables(results: Sequence[Path]) -> list[Table]:
    """Return the table of scores, those by pair of languages if there are several, and those of losses and controls."""
    leaves = result_leaves(results)
    pairs = pair_tables(leaves, metrics_in_order(leaf.result for leaf, _ in leaves))
    found = [_score_table(leaves), *pairs, *loss_table(leaf for leaf, _ in leaves)]
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
    notes = tuple(_remarks(leaves, [*found.values()], metrics))
    return Table("scores", "Scores", ("task",), heads, tuple(rows), 1, notes, intervals=True)


def _remarks(leaves: Leaves, scores: Sequence[Score], metrics: Sequence[str]) -> Iterator[str]:
    """Yield what a reader of scores has to know: units, sides, judges, bounds, what failed, and who replied."""
    if any(scale_of(metric).note for metric in metrics):
        yield "in percent unless another unit is named"
    yield from direction_lines(metrics)
    shown = {leaf.label: leaf for leaf, _ in leaves}
    yield from _together((note, shown[score.task]) for score in scores for note in _notes(score))
    yield from _together((note, leaf) for leaf in shown.values() for note in _said(leaf, metrics))


def _said(leaf: Leaf, metrics: Sequence[str]) -> Iterator[str]:
    """Yield the remarks on a task: its bound, what was not read, failed, found or measured, and who else replied."""
    result, scores = leaf.result, leaf.result.scores
    if (why := result.config.upper_bound) is not None:
        yield f"{why}; no headline, no rank"
    if words := result.config.index.get("analyzer"):
        yield f"BM25 searched {words}"
    for metric, score in result.metrics.items():
        if score.unread and metric in metrics:
            parts = (f"{where} {points(low)} to {points(high)}" for where, (low, high) in score.unread.items())
            yield (
                f"{metric}: languages differ in the share of replies without a readable choice, which count as wrong; "
                f"with all of these wrong, and all right: {', '.join(parts)}"
            )
    lost: dict[str, list[str]] = {}
    for metric, reasons in result.unscored.items():
        if metric not in result.metrics or result.metrics[metric].value is None:
            lost.setdefault("; ".join(reasons), []).append(metric)
    yield from (f"no row has {few(names)}: {why}" for why, names in lost.items() if {*names} - {*metrics})
    if scores.failures:
        yield f"failed: {failure_line(scores)}"
    yield from vote_lines(scores)
    if scores.outcomes:
        counted = ", ".join(f"{n:,} {outcome}" for outcome, n in scores.outcomes.items())
        yield f"no answer by the model, counted as wrong: {counted}"
    # a retriever that cannot be listed returned no relevant id at all
    if unlisted(result.config.retrieval) and (suspect := unfound_line(scores)) is not None:
        yield suspect
    counts = dict(result.config.outcome.get("answered_by") or {})
    # a cache that any model may have filled
    if number := counts.pop(UNKNOWN_MODEL, 0):
        yield f"{number:,} replies of the run by a model that is not known (--use_cache)"
    if others := answered_by_others(str(result.config.evaluated), counts):
        yield f"answered by {others}"
    yield from (f"{', '.join(names)}: not measured, as {why}" for why, names in result.config.unmeasured.items())


def _together(found: Iterable[tuple[str, Leaf]]) -> Iterator[str]:
    """Yield each remark once, with the tasks that it is on; of several that differ in figures alone, the first."""
    alike: dict[str, dict[str, list[str]]] = {}
    for remark, leaf in found:
        alike.setdefault(_FIGURE.sub("0", remark), {}).setdefault(remark, []).append(leaf.label)
    for every in alike.values():
        if len(every) <= _PAIRED:
            yield from (f"{remark} ({few(where)})" for remark, where in every.items())
        else:
            remark, where = next(iter(every.items()))
            others = {label for own in every.values() for label in own} - {*where}
            yield f"{remark} ({few(where)}; with other figures in {len(others)} more)"


def _notes(score: Score) -> Iterator[str]:
    """Yield who decides a score, what its unscored rows could change, and what grouped rows are worth."""
    if score.judges:
        yield f"{score.metric}: decided by {score.judges}"
    if score.worst_case is not None and score.value is not None:
        yield (
            f"{score.metric}: {score.unscored}; with all of them wrong {points(score.worst_case)}, "
            f"with all of them right {points(score.best_case)}"
            + ("" if score.no_headline is None else f"; no headline and no rank: {score.no_headline}")
        )
    if score.groups is not None:
        effect = "not known" if score.design_effect is None else decimal(score.design_effect)
        yield f"rows of {score.groups:,} groups were resampled together; design effect {effect}"


def _cell(score: Score | None, task: str, metric: str) -> Cell:
    if score is None:
        return Cell(None, "", task=task, metric=metric)  # a metric of other tasks
    if score.value is None:
        return Cell(None, score.unscored or score.reason, task=task, metric=metric)
    return percent_cell(score, task, metric)
