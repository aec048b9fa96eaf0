"""Tables below CORAL's: margins over the strongest baseline with intervals, accuracy by cost, languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.core import DataError, p_text
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.comparison._compare import RESAMPLES, PairedRows, difference
from mrag_eval.report.files._results import LeafResult, read_results
from mrag_eval.report.files._samples import SampleSet, ScoredRow, model_beside, read_runs, sample_files
from mrag_eval.report.tables._layout_schema import Column, load_layout
from mrag_eval.scoring import LoopTable

_METRIC = "acc"
_PERCENT = 100.0


def loop_tables(results: Sequence[Path]) -> list[Table]:
    """Return the tables that runs of CORAL fill, below those of the paper: margins (from samples), cost, languages."""
    found = (margin_table(results), cost_table(results), language_table(results))
    return [table for table in found if table is not None]


# ------------------------------------------------------------------ margins


@dataclass(frozen=True)
class _Sides:
    """Hold the rows of CORAL and of a baseline in one column, pair by pair, each with its task."""

    name: str
    tasks: tuple[str, ...]
    ours: tuple[ScoredRow, ...]
    theirs: tuple[ScoredRow, ...]


def margin_table(results: Sequence[Path], seed: int = 0) -> Table | None:
    """Return CORAL minus the strongest baseline of each column of Table 1, in points, paired by row.

    Over several languages the difference is that of the plain means over languages, resampled within each language
    (questions asked in several languages together). The strongest baseline is found in the same figures.
    None without samples.
    """
    one = next(table for table in load_layout("coral").tables if table.id == "1")
    baselines = {c.name: c.part for c in one.conditions if c.name != "CORAL"}
    rows, notes = [], []
    for model, runs in _runs_by_model(results).items():
        cells = []
        for column in one.columns:
            tasks = (column.task,) if column.task else column.tasks
            sides = [
                found
                for name, part in baselines.items()
                if (found := _sides(name, part, [str(task) for task in tasks], runs)) is not None
            ]
            if not sides:
                cells.append(Cell(None, "CORAL or every baseline lacks a task or its samples"))
                continue
            best = max(sides, key=lambda side: _score(column, side.tasks, side.theirs))
            cell, note = _margin(column, best, seed)
            cells.append(cell)
            notes.append(f"{model}, {column.name}: against {best.name}, {note}")
        if any(cell.value is not None for cell in cells):
            rows.append(Row((model,), "this run", tuple(cells)))
    if not rows:
        return None
    notes.append("the strongest baseline is found in the same rows, which makes its score a little too high")
    names = tuple(column.name for column in one.columns)
    title = "CORAL less the strongest baseline, in points, with 95% intervals"
    return Table("margins", title, ("model",), names, tuple(rows), 2, tuple(notes), intervals=True)


def _runs_by_model(results: Sequence[Path]) -> dict[str, dict[str, SampleSet]]:
    folders = [path if path.is_dir() else path.parent for path in results]
    try:
        files = sample_files(list(dict.fromkeys(folders)))
    except DataError:
        return {}
    by_model: dict[str, list[Path]] = {}
    for file in files:
        by_model.setdefault(model_beside(file), []).append(file)
    return {model: read_runs(found) for model, found in by_model.items()}


def _sides(name: str, part: str, tasks: Sequence[str], runs: Mapping[str, SampleSet]) -> _Sides | None:
    """Return the pairs of one baseline; None if a task was not run, or not on the rows that CORAL ran on."""
    kept: list[str] = []
    ours: list[ScoredRow] = []
    theirs: list[ScoredRow] = []
    for task in tasks:
        mine, other = runs.get(task.replace("{part}", "coral")), runs.get(task.replace("{part}", part))
        if mine is None or other is None or mine.rows.keys() != other.rows.keys():
            return None
        for key in sorted(mine.rows):
            kept.append(task)
            ours.append(mine.rows[key])
            theirs.append(other.rows[key])
    return _Sides(name, tuple(kept), tuple(ours), tuple(theirs))


def _score(column: Column, tasks: Sequence[str], rows: Sequence[ScoredRow]) -> float:
    values: dict[str, list[float]] = {}
    for task, row in zip(tasks, rows, strict=True):
        if _METRIC in row.values:
            values.setdefault(task if column.weight == "tasks" else "", []).append(row.values[_METRIC])
    return sum(sum(found) / len(found) for found in values.values()) / len(values) if values else -1.0


def _margin(column: Column, sides: _Sides, seed: int) -> tuple[Cell, str]:
    n = len(sides.ours)
    if len(column.tasks) > 1 and column.weight == "tasks":
        from mrag_eval.metrics import stratified_bootstrap

        changes = [_change(a, b) for a, b in zip(sides.ours, sides.theirs, strict=True)]
        if not any(changes):
            # no row differs: the rows cannot give an interval
            scored = any(change is not None for change in changes)
            return Cell(0.0 if scored else None, "no row that both scored", n=n), f"{n} pairs, none of which differs"
        groups = [row.group for row in sides.ours]
        grouped = groups if len(set(groups)) < n else None
        found = stratified_bootstrap(changes, sides.tasks, groups=grouped, n_resamples=RESAMPLES, seed=seed)
        cell = Cell(_points(found.value), found.reason, _end(found.low), _end(found.high), n)
        return cell, f"{n} pairs, {found.method}"
    pair = PairedRows(column.name, sides.theirs, sides.ours, (0, 0))
    one = difference(pair, _METRIC, seed=seed)
    cell = Cell(_points(one.difference), one.reason, _end(one.low), _end(one.high), n)
    p_value = "no test possible" if one.p_value is None else f"p {p_text(one.p_value)}"
    return cell, f"{n} pairs, {p_value} ({one.method})"


def _end(value: float | None) -> float | None:
    """Return an end of an interval in points, limited to the range of a difference of two shares."""
    return None if value is None else _PERCENT * max(-1.0, min(1.0, value))


def _change(ours: ScoredRow, theirs: ScoredRow) -> float | None:
    a, b = ours.values.get(_METRIC), theirs.values.get(_METRIC)
    return None if a is None or b is None else a - b


def _points(value: float | None) -> float | None:
    return None if value is None else _PERCENT * value


# --------------------------------------------------------------------- cost


def cost_table(results: Sequence[Path]) -> Table | None:
    """Return accuracy against calls: a row for each model, benchmark and setting of the loop, the cheapest first.

    Means are over all questions of the run's tasks. None if no run has a loop.
    """
    found = _by_setting(results)
    rows = [(_costs(leaves), labels) for labels, leaves in found.items()]
    if not rows:
        return None
    rows.sort(key=lambda row: (row[1][1], row[1][0], row[0][1].value or 0.0))
    columns = ("accuracy", "calls a question", "tokens a question", "rounds", "without documents")
    notes = ("calls and tokens are those of planner and critic, replies from the cache among them",)
    title = "Accuracy against the cost of the loop"
    stub = ("model", "benchmark", "loop")
    body = tuple(Row(labels, "this run", cells) for cells, labels in rows)
    return Table("cost", title, stub, columns, body, 1, notes, intervals=True)


def _by_setting(results: Sequence[Path]) -> dict[tuple[str, str, str], list[LeafResult]]:
    """Return (model, benchmark, settings of the loop) -> the tasks of its latest run."""
    found: dict[tuple[str, str, str], list[LeafResult]] = {}
    for file in read_results(list(results)):
        latest: dict[tuple[str, str, str], list[LeafResult]] = {}
        for leaf in file.leaves.values():
            if leaf.scores.loop is not None:
                key = (file.model, leaf.config.benchmark or "?", _settings(leaf.config.agent))
                latest.setdefault(key, []).append(leaf)
        # a later run with the same settings replaces an earlier one
        found |= latest
    return found


def _settings(agent: Mapping[str, Any]) -> str:
    budget = agent.get("budget") or {}
    parts = [
        f"planner {agent.get('planner')}, critic {agent.get('critic')}",
        str(agent.get("preset", "coral")),
        f"at most {agent.get('max_rounds')} rounds",
        f"stop {(agent.get('stop') or {}).get('when', 'sufficient')}",
    ]
    parts += [f"{name.replace('_', ' ')} {value:,}" for name, value in budget.items() if value is not None]
    return "; ".join(parts)


def _costs(leaves: Sequence[LeafResult]) -> tuple[Cell, ...]:
    loops = [leaf.scores.loop for leaf in leaves if leaf.scores.loop is not None]
    n = sum(loop.rows for loop in loops)

    def mean(of: Callable[[LoopTable], float]) -> float:
        return float(sum(of(loop) * loop.rows for loop in loops) / n)

    rounds = sum(int(number) * count for loop in loops for number, count in loop.rounds.items()) / n
    bare = sum((loop.without_documents.value or 0.0) * loop.rows for loop in loops) / n
    return (
        _accuracy(leaves),
        Cell(mean(lambda loop: loop.per_question.calls)),
        Cell(mean(lambda loop: loop.per_question.tokens), digits=0),
        Cell(rounds, digits=2),
        Cell(_PERCENT * bare, n=n),
    )


def _accuracy(leaves: Sequence[LeafResult]) -> Cell:
    from mrag_eval.metrics import wilson

    known = [(score.value, score.n) for leaf in leaves if (score := leaf.metrics.get(_METRIC)) is not None]
    scores = [(value, n) for value, n in known if value is not None and n]
    if len(scores) < len(leaves):
        return Cell(None, f"no {_METRIC}")
    found = wilson(sum(round(value * n) for value, n in scores), sum(n for _, n in scores))
    return percent_cell(found, metric=_METRIC)


# ---------------------------------------------------------------- languages


def language_table(results: Sequence[Path]) -> Table | None:
    """Return the planner's languages against those of the documents shown, by benchmark and source language.

    CORAL's Figure 3, as shares: of the corpora chosen in all rounds, and of all documents shown. The source language is
    that of the row's culture, else of its question. The table does not depend on the evaluated model, so each setting
    of the loop occurs once. None if no run has a loop.
    """
    counts: dict[tuple[str, str, str], dict[str, dict[str, int]]] = {}
    for (_, benchmark, settings), leaves in _by_setting(results).items():
        run: dict[tuple[str, str, str], dict[str, dict[str, int]]] = {}
        for leaf in leaves:
            for source, languages in (leaf.scores.loop.languages if leaf.scores.loop is not None else {}).items():
                sums = run.setdefault((benchmark, source, settings), {"chosen": {}, "used": {}})
                for part, found in (("chosen", languages.chosen), ("used", languages.used)):
                    for code, n in found.items():
                        sums[part][code] = sums[part].get(code, 0) + n
        counts |= run
    if not counts:
        return None
    columns = sorted({code for parts in counts.values() for found in parts.values() for code in found})
    rows = []
    for labels, parts in sorted(counts.items()):
        for part, name in (("chosen", "corpora chosen"), ("used", "documents shown")):
            total = sum(parts[part].values())
            none = None if total else "no document was shown" if part == "used" else "no corpus was chosen"
            cells = [Cell(_PERCENT * parts[part].get(c, 0) / total if total else None, none) for c in columns]
            rows.append(Row((*labels, name), f"this run, n={total:,}", tuple(cells)))
    title = "Languages chosen by the planner, and of the documents shown, in percent (Figure 3)"
    return Table("languages", title, ("benchmark", "source", "loop", "share of"), tuple(columns), tuple(rows), 1)
