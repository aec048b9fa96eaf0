"""Tables below CORAL's: margins over the strongest baseline, accuracy by cost, languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mrag_eval.config import is_named, shown
from mrag_eval.planning import deviations
from mrag_eval.report._table import Cell, Table, percent_cell
from mrag_eval.report.files._results import LeafResult, read_results
from mrag_eval.report.tables._layout_cells import own_row
from mrag_eval.report.tables._layout_schema import load_layout
from mrag_eval.report.tables._margins import margin_table
from mrag_eval.report.tables._row_settings import fit
from mrag_eval.scoring import LoopTable

_METRIC = "acc"
_PERCENT = 100.0
# What judges answers, and decides nothing of a loop.
_OF_JUDGES = ("judge", "judges", "texts.judge")
# What differs between the tasks of a run.
_OF_A_TASK = ("data", "source", "left_out", "ran")


def loop_tables(results: Sequence[Path]) -> list[Table]:
    """Return the tables that runs of CORAL fill, below those of the paper: margins (from samples), cost, languages."""
    found = (margin_table(results), cost_table(results), language_table(results))
    return [table for table in found if table is not None]


@dataclass
class _Loop:
    """The runs of one model on one benchmark with the same settings: task -> its result."""

    model: str
    benchmark: str
    settings: Mapping[str, Any]
    agents: str
    tasks: dict[str, LeafResult] = field(default_factory=dict)

    @cached_property
    def differs(self) -> list[str]:
        """Return the settings that are not those of the paper's loop."""
        return [text for leaf in self.tasks.values() for text in fit(leaf, load_layout("coral").expect, _OF_JUDGES)]


def _loops(results: Sequence[Path]) -> tuple[list[_Loop], list[str]]:
    """Return the runs with a loop by model, benchmark and settings, and lines on runs left out."""
    found: dict[tuple[str, str, str], _Loop] = {}
    notes = []
    for file in reversed(read_results(list(results))):
        for leaf in file.leaves.values():
            if leaf.scores.loop is None:
                continue
            settings = _settings(leaf)
            key = (file.model, leaf.config.benchmark or "?", repr(sorted(settings.items())))
            agents = ", ".join(f"{role} {leaf.model_of(role)}" for role in ("planner", "critic"))
            loop = found.setdefault(key, _Loop(*key[:2], settings, agents))
            later = loop.tasks.setdefault(leaf.task, leaf)
            if later is not leaf:
                where = f"{file.model}, {leaf.task}"
                notes.append(f"{where}: an earlier run with the same settings is left out ({file.path.name})")
    return list(found.values()), notes


def _settings(leaf: LeafResult) -> dict[str, Any]:
    """Return everything that decides how documents are found and shown, by dotted key."""
    record = leaf.measurement
    found = {key: value for key, value in record.deciding().items() if not is_named(key, (*_OF_A_TASK, *_OF_JUDGES))}
    found |= {one.key: one.first for one in deviations(record) if is_named(one.key, ("data",))}
    limits = {"limit": leaf.config.limit, "samples": list(leaf.config.samples) or None}
    return found | {key: value for key, value in limits.items() if value is not None}


def _names(loops: Sequence[_Loop]) -> list[str]:
    """Return a name for the settings of each loop: its agents and limits, and what else tells loops apart."""
    short = [_short(loop) for loop in loops]
    out = []
    for name, loop in zip(short, loops, strict=True):
        alike = [other.settings for other, same in zip(loops, short, strict=True) if same == name]
        keys = sorted({key for settings in alike for key in settings})
        apart = [key for key in keys if any(settings.get(key) != loop.settings.get(key) for settings in alike)]
        out.append("; ".join([name, *(f"{key} {shown(loop.settings.get(key))}" for key in apart)]))
    return out


def _short(loop: _Loop) -> str:
    budget, settings = "agent.budget.", loop.settings
    parts = [
        loop.agents,
        str(settings.get("agent.preset", "coral")),
        f"at most {settings.get('agent.max_rounds')} rounds",
        f"stop {settings.get('agent.stop.when', 'sufficient')}",
    ]
    limits = {key.removeprefix(budget): value for key, value in settings.items() if key.startswith(budget)}
    return "; ".join([*parts, *(f"{name.replace('_', ' ')} {value:,}" for name, value in limits.items())])


def cost_table(results: Sequence[Path]) -> Table | None:
    """Return accuracy against calls: a row for each model, benchmark and setting of the loop, the cheapest first.

    Means are over all questions of the run's tasks. None if no run has a loop.
    """
    loops, left_out = _loops(results)
    if not loops:
        return None
    rows = []
    for loop, name in zip(loops, _names(loops), strict=True):
        leaves = [*loop.tasks.values()]
        rows.append(own_row((loop.model, loop.benchmark, name), _costs(leaves), loop.differs, leaves))
    rows.sort(key=lambda row: (row.labels[1], row.labels[0], row.cells[1].value is None, row.cells[1].value))
    columns = ("accuracy", "calls a question", "tokens a question", "rounds", "without documents")
    notes = ("calls and tokens are those of planner and critic, replies from the cache among them", *left_out)
    title = "Accuracy against the cost of the loop"
    stub = ("model", "benchmark", "loop")
    return Table("cost", title, stub, columns, tuple(rows), 1, notes, intervals=True)


def _costs(leaves: Sequence[LeafResult]) -> tuple[Cell, ...]:
    loops = [leaf.scores.loop for leaf in leaves if leaf.scores.loop is not None]
    n = sum(loop.rows for loop in loops)

    def mean(of: Callable[[LoopTable], float]) -> float:
        return float(sum(of(loop) * loop.rows for loop in loops) / n)

    rounds = sum(int(number) * count for loop in loops for number, count in loop.rounds.items()) / n
    known = [(value, loop.without_documents.n) for loop in loops if (value := loop.without_documents.value) is not None]
    done = sum(n for _, n in known)
    bare = sum(value * n for value, n in known) / done if done else None
    return (
        _accuracy(leaves),
        Cell(mean(lambda loop: loop.per_question.calls)),
        Cell(mean(lambda loop: loop.per_question.tokens), digits=0),
        Cell(rounds, digits=2),
        Cell(None, "a call failed in every row") if bare is None else Cell(_PERCENT * bare, n=done),
    )


def _accuracy(leaves: Sequence[LeafResult]) -> Cell:
    from mrag_eval.metrics import wilson

    known = [(score.value, score.n) for leaf in leaves if (score := leaf.metrics.get(_METRIC)) is not None]
    scores = [(value, n) for value, n in known if value is not None and n]
    if len(scores) < len(leaves):
        return Cell(None, f"no {_METRIC}")
    found = wilson(sum(round(value * n) for value, n in scores), sum(n for _, n in scores))
    return percent_cell(found, metric=_METRIC)


def language_table(results: Sequence[Path]) -> Table | None:
    """Return the planner's languages against those of the documents shown, by benchmark and source language.

    CORAL's Figure 3, as shares: of the corpora chosen in all rounds, and of all documents shown. The source language is
    that of the row's culture, else of its question. The table does not depend on the evaluated model, so each setting
    of the loop occurs once. None if no run has a loop.
    """
    loops, _ = _loops(results)
    tasks: dict[tuple[str, str], dict[str, LeafResult]] = {}
    differs: dict[str, list[str]] = {}
    for loop, name in zip(loops, _names(loops), strict=True):
        tasks[loop.benchmark, name] = loop.tasks | tasks.get((loop.benchmark, name), {})
        differs.setdefault(name, []).extend(loop.differs)
    counts: dict[tuple[str, str, str], dict[str, dict[str, int]]] = {}
    for (benchmark, name), leaves in tasks.items():
        for leaf in leaves.values():
            for source, languages in (leaf.scores.loop.languages if leaf.scores.loop is not None else {}).items():
                sums = counts.setdefault((benchmark, source, name), {"chosen": {}, "used": {}})
                for part, found in (("chosen", languages.chosen), ("used", languages.used)):
                    for code, n in found.items():
                        sums[part][code] = sums[part].get(code, 0) + n
    if not counts:
        return None
    columns = sorted({code for parts in counts.values() for found in parts.values() for code in found})
    rows = []
    for labels, parts in sorted(counts.items()):
        for part, name in (("chosen", "corpora chosen"), ("used", "documents shown")):
            total = sum(parts[part].values())
            none = None if total else "no document was shown" if part == "used" else "no corpus was chosen"
            cells = [Cell(_PERCENT * parts[part].get(c, 0) / total if total else None, none) for c in columns]
            shown = tasks[labels[0], labels[2]].values()
            rows.append(own_row((*labels, name), cells, differs[labels[2]], shown, f"this run, n={total:,}"))
    title = "Languages chosen by the planner, and of the documents shown, in percent (Figure 3)"
    return Table("languages", title, ("benchmark", "source", "loop", "share of"), tuple(columns), tuple(rows), 1)
