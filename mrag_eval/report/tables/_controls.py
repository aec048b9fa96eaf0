"""Tables of controls: what a metric gives in each language without a model, and what a score is between its ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.languages import language
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.scoring import CONTROLS, KINDS, MetricControls, control_of, marked_by_controls, scale_of

# metric -> language -> controls
Controls = Mapping[str, Mapping[str, MetricControls]]
SHARE = "share between floor and ceiling"


@dataclass(frozen=True)
class TaskControls:
    """The controls of one task: its ``name`` in the table, and the run that they are of (or ``no model``)."""

    name: str
    run: str
    controls: Controls

    @classmethod
    def of(cls, leaf: Leaf) -> TaskControls:
        """Return the controls in the results of a task."""
        return cls(leaf.label, leaf.run, leaf.result.scores.controls)


# Kind of control -> title of its table.
TITLES = {
    "reference": "Controls of answers",
    "choice": "Controls of choices",
    "form": "Controls of the form of replies",
    "language": "Controls of language detection",
    "ranking": "Controls of the search",
    "judged": "Controls of the judges",
    "support": "Controls of support",
}
_Part = tuple[TaskControls, str, str, dict[str, Estimate]]


def control_tables(tasks: Sequence[TaskControls]) -> list[Table]:
    """Return the controls by task, metric and language, a table a kind; and those of detectors by length of text."""
    parts: dict[str, list[_Part]] = {kind: [] for kind in TITLES}
    for task in tasks:
        for metric, by_language in task.controls.items():
            parts[control_of(metric).kind] += [
                (task, metric, code, {**own.found, **({} if own.share is None else {SHARE: own.share})})
                for code, own in by_language.items()
            ]
    found = []
    for kind, own in parts.items():
        notes = (*_marks(tasks, kind), *_notes(tasks, kind)) if own else ()
        found += _table(f"controls_{kind}", TITLES[kind], own, [*KINDS[kind], SHARE], notes)
    for kind, key, title, order in _PARTS:
        names = {name for *_, values in parts[kind] for name in values if name not in (*CONTROLS, SHARE)}
        found += _table(key, title, parts[kind], sorted(names, key=order), ())
    return found


def _length(name: str) -> tuple[str, int, bool]:
    control, _, length = name.partition(", ")
    # "up to 20" before "21 to 50", and "51 to 100" before "over 100"
    return control, max(int(word) for word in length.split() if word.isdigit()), length.startswith("over")


# Kind -> table of the parts of its controls, and their order.
_PARTS = (
    ("language", "controls_by_length", "Texts recognised by length", _length),
    ("support", "controls_by_evidence", "Support by the language of the passage", lambda n: (n.startswith("aside"), n)),
)


def _table(key: str, title: str, parts: Sequence[_Part], names: Sequence[str], notes: tuple[str, ...]) -> list[Table]:
    columns = [name for name in names if any(name in own for *_, own in parts)]
    if not columns:
        return []
    rows = [
        Row(
            (task.name, f"{metric}{scale_of(metric).note}", code),
            task.run,
            tuple(_cell(own, name, task, metric) for name in columns),
        )
        for task, metric, code, own in parts
    ]
    parted = (name.partition(", ") for name in columns)
    heads = tuple(f"{CONTROLS.get(control, control)}{joint}{length}" for control, joint, length in parted)
    stub = ("task", "metric", "language")
    return [Table(key, title, stub, heads, tuple(rows), 1, notes, intervals=key not in [part[1] for part in _PARTS])]


def _cell(own: Mapping[str, Estimate], name: str, task: TaskControls, metric: str) -> Cell:
    found = own.get(name)
    if found is None:
        return Cell(None, "", task=task.name, metric=metric)
    if found.value is None:
        return Cell(None, found.reason or "not measured", task=task.name, metric=metric)
    return percent_cell(found, task.name, metric, 100.0 if name == SHARE else None)


def _marks(tasks: Sequence[TaskControls], kind: str) -> Iterator[str]:
    """Yield the languages that the controls mark, those with the same reason together."""
    for task in tasks:
        for metric in task.controls:
            if control_of(metric).kind == kind:
                for why, codes in marked_together(task.controls, metric).items():
                    yield f"{task.run}, {task.name}, {metric}, marked: {', '.join(codes)}: {why}"


def marked_together(controls: Controls, metric: str) -> dict[str, list[str]]:
    """Return reason -> the languages that the controls of a metric mark for it."""
    found: dict[str, list[str]] = {}
    for code, why in marked_by_controls(controls, metric).items():
        found.setdefault(why, []).append(code)
    return found


def _notes(tasks: Sequence[TaskControls], kind: str) -> Iterator[str]:
    named = [control_of(metric) for task in tasks for metric in task.controls if control_of(metric).kind == kind]
    known = {name for task in tasks for by in task.controls.values() for own in by.values() for name in own.found}
    ends = dict.fromkeys((CONTROLS[one.ceiling(known)], CONTROLS[one.floors[0]]) for one in named if one.floors)
    if ends:
        yield "ends of a share: " + "; ".join(f"{ceiling}, and {floor}" for ceiling, floor in ends)
    if kind == "reference":
        yield "first reference: 100 by construction where the reply is a reference; less is the metric's own loss"
        yield from _authors({code for task in tasks for by in task.controls.values() for code in by})


def _authors(codes: set[str]) -> Iterator[str]:
    """Yield who wrote and who checked the plain sentences."""
    by: dict[tuple[str, str], list[str]] = {}
    for code in sorted(codes):
        found = language(code)
        if found is not None and found.sentence:
            by.setdefault((found.written_by, found.checked_by or "no speaker"), []).append(code)
    for (author, checker), languages in by.items():
        yield f"sentences of {', '.join(languages)}: written by {author}, checked by {checker}"
