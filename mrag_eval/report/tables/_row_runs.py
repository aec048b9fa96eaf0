"""The runs of a table's rows: those with the settings that a row states, and those with others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mrag_eval.config import differences
from mrag_eval.report.files._results import LeafResult, ResultFile, outcomes_text
from mrag_eval.report.tables._layout_schema import Column, Layout, LayoutCondition, LayoutTable
from mrag_eval.report.tables._requirements import retriever_name
from mrag_eval.report.tables._row_settings import alike, fit, said

Key = TypeVar("Key", bound=Hashable)

# Settings in which runs differ on purpose if their table is a mean over seeds: any value is the row's.
# The beginning of a difference that only places have in which something is translated.
_TRANSLATOR = "translator="
_SEEDS: Mapping[str, None] = {"generation_kwargs.seed": None, "seeds": None}


@dataclass(frozen=True)
class TaskRun:
    """One task of a result file, and the labels of the rows that it belongs to."""

    file: ResultFile
    leaf: LeafResult
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """A task's place in a table, and the settings that it states."""

    condition: LayoutCondition | None
    column: Column
    task: str
    stated: Mapping[str, Any]

    @property
    def row(self) -> str:
        """Return the name of the row, empty in a table with one row for each model."""
        return self.condition.name if self.condition else ""


# (column, task) -> the results that it shows, the latest first.
Picked = dict[tuple[str, str], list[LeafResult]]


@dataclass
class OwnRow:
    """A row of ours: its results by column and task, and the settings in which they differ from the row's."""

    condition: LayoutCondition | None
    label: str
    differs: tuple[str, ...] = ()
    picked: Picked = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name of the row, empty in a table with one row for each model."""
        return self.condition.name if self.condition else ""


@dataclass
class TableRuns:
    """A table's rows of ours, and lines on runs that are not in them."""

    rows: list[OwnRow]
    notes: list[str]

    @property
    def fitting(self) -> list[OwnRow]:
        """Return the rows with the settings of the table."""
        return [row for row in self.rows if not row.differs]

    @property
    def others(self) -> list[OwnRow]:
        """Return the rows with other settings."""
        return [row for row in self.rows if row.differs]


@dataclass(frozen=True)
class Nearest:
    """The run that fills a place of a table, and the settings in which it differs from those stated."""

    file: ResultFile
    leaf: LeafResult
    differs: tuple[str, ...]


def nearest_runs(
    files: Sequence[ResultFile],
    key_of: Callable[[ResultFile, LeafResult], Key | None],
    ignoring: Sequence[str] = (),
) -> tuple[dict[Key, Nearest], list[str]]:
    """Return, for each key, the run that differs from its task as shipped in the fewest settings, the latest of them.

    ``files`` are in order of their date; a key of None leaves a run out, ``ignoring`` is as in :func:`fit`. The lines
    name the runs that are left out for one with other settings.
    """
    found: dict[Key, list[Nearest]] = {}
    for file in reversed(files):
        for leaf in file.leaves.values():
            if (key := key_of(file, leaf)) is not None:
                found.setdefault(key, []).append(Nearest(file, leaf, fit(leaf, {}, ignoring)))
    chosen = {key: min(runs, key=lambda run: (len(run.differs), len(run.leaf.outcomes))) for key, runs in found.items()}
    lines = [
        f"{run.file.model}, {run.leaf.task}: a run with other settings is left out ({run.file.path.name})"
        for key, runs in found.items()
        for run in runs
        if run.differs != chosen[key].differs
    ]
    return chosen, lines


def slots(table: LayoutTable, layout: Layout) -> Iterator[Slot]:
    """Yield the places of a table that a task fills, row by row."""
    for condition in table.conditions or (None,):
        part, own = (condition.part, condition.expect) if condition else ("", {})
        for column in table.columns:
            if condition and column.name in condition.without:
                continue
            seeds = _SEEDS if table.seeds else {}
            stated = {**layout.expect, **table.expect, **own, **column.expect, **seeds}
            for task in (column.task,) if column.task else column.tasks:
                yield Slot(condition, column, task.replace("{part}", part), stated)


def task_runs(files: Sequence[ResultFile], layout: Layout) -> list[TaskRun]:
    """Return the runs of the layout's tasks, those without outcomes first, then the latest.

    ``files`` are in order of their date.
    """
    tasks = {slot.task for table in layout.tables for slot in slots(table, layout)}
    found = [(file, leaf) for file in reversed(files) for task, leaf in file.leaves.items() if task in tasks]
    retrievers: dict[str, dict[str, None]] = {}
    for file, leaf in reversed(found):
        known = retrievers.setdefault(file.model, {})
        if (name := retriever_name(leaf.config)) is not None:
            known[name] = None
    # one of which nothing was cut or lost goes before one that is alike and has less to show
    found.sort(key=lambda run: len(run[1].outcomes))
    return [TaskRun(file, leaf, _labels(file.model, leaf, layout, retrievers[file.model])) for file, leaf in found]


def _labels(model: str, leaf: LeafResult, layout: Layout, retrievers: Mapping[str, None]) -> tuple[str, ...]:
    """Return the model's name, with the retriever or the agents if the paper compares them.

    A run without a retriever belongs to all of a model's.
    """
    if layout.apart == "retriever":
        own = retriever_name(leaf.config)
        names = [own] if own is not None else [*retrievers] or ["no retrieval"]
        return tuple(f"{model} · {name}" for name in names)
    if layout.apart == "agents" and leaf.config.agent:
        agents = (f"{role} {leaf.model_of(role)}" for role in ("planner", "critic"))
        return (f"{model} · {', '.join(agents)}",)
    return (model,)


def placed(layout: Layout, runs: Sequence[TaskRun]) -> dict[int, list[str]]:
    """Return, by number of the run, the tables where its settings match a row."""
    out: dict[int, list[str]] = {}
    for table in layout.tables:
        found = list(slots(table, layout))
        for number, run in enumerate(runs):
            if any(slot.task == run.leaf.task and not fit(run.leaf, slot.stated) for slot in found):
                out.setdefault(number, []).append(table.id)
    return out


def table_runs(
    table: LayoutTable, layout: Layout, runs: Sequence[TaskRun], where: Mapping[int, Sequence[str]]
) -> TableRuns:
    """Return a table's rows of ours.

    A run is in every place whose settings are its own. If it has none in this table, it is beneath the rows that it
    differs from in the fewest settings, or, if it is in another table of the paper, in a line that names that table.
    Among runs that fit one place the latest is shown; an earlier one is beneath it if it differs in any setting.
    """
    made: dict[tuple[str, str, tuple[str, ...]], OwnRow] = {}
    notes: dict[str, None] = {}
    elsewhere: dict[tuple[str, str], dict[str, None]] = {}
    found = list(slots(table, layout))

    def place(slot: Slot, label: str, differs: tuple[str, ...], run: TaskRun) -> None:
        """Put a run into its row, or beneath it if a later run with other settings is there."""
        # one row may hold places in which something is translated, and others
        named = tuple(alike(text) for text in differs if not text.startswith(_TRANSLATOR))
        row = made.setdefault((slot.row, label, named), OwnRow(slot.condition, label))
        row.differs = (*row.differs, *differs)
        later = row.picked.setdefault((slot.column.name, slot.task), [])
        changed = _changed(run.leaf, later[0], seeds=table.seeds) if later else ()
        if set(changed) - set(differs):
            place(slot, label, tuple(dict.fromkeys((*differs, *changed))), run)
        elif not later or (table.seeds and all(run.leaf.config.seed != one.config.seed for one in later)):
            later.append(run.leaf)
        else:
            name, came = run.file.path.name, outcomes_text([run.leaf])
            which = f"a run with the same settings, and {came}," if came else "an earlier run with the same settings"
            notes[f"{label}, {run.leaf.task}: {which} is left out ({name})"] = None

    for number, run in enumerate(runs):
        fits = [(slot, fit(run.leaf, slot.stated)) for slot in found if slot.task == run.leaf.task]
        if not fits:
            continue
        shown: list[tuple[Slot, tuple[str, ...]]] = [(slot, ()) for slot, differs in fits if not differs]
        if not shown and table.optional and _nearer_elsewhere(run, fits, layout):
            continue
        if not shown and number in where:
            elsewhere.setdefault((run.file.model, ", ".join(where[number])), {})[run.leaf.task] = None
            continue
        if not shown:
            nearest = min((differs for _, differs in fits), key=len)
            shown = [(slot, nearest) for slot, differs in fits if differs == nearest]
        for label in run.labels:
            for slot, differs in shown:
                place(slot, label, differs, run)
    lines = [
        f"{model}, with the settings of another table ({tables}): {', '.join(tasks)}"
        for (model, tables), tasks in elsewhere.items()
    ]
    return TableRuns(list(made.values()), [*notes, *lines])


def _nearer_elsewhere(run: TaskRun, fits: Sequence[tuple[Slot, tuple[str, ...]]], layout: Layout) -> bool:
    """Return whether a run differs in fewer settings from another table, where it is named."""
    nearest = min(len(differs) for _, differs in fits)
    places = (slot for table in layout.tables for slot in slots(table, layout) if slot.task == run.leaf.task)
    return any(len(fit(run.leaf, slot.stated)) < nearest for slot in places)


def _changed(leaf: LeafResult, later: LeafResult, *, seeds: bool) -> tuple[str, ...]:
    """Return what an earlier run measured otherwise than the later one that is shown."""
    found = differences(leaf.measurement, later.measurement, allowed=tuple(_SEEDS) if seeds else ())
    return tuple(said(found, "the later run"))
