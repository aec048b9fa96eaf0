"""Tables of controls: what a metric gives in each language without a model, and what a score is between its ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.languages import language
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.scoring import CONTROLS, MetricControls, control_of, marked_by_controls, scale_of

# metric -> language -> controls
Controls = Mapping[str, Mapping[str, MetricControls]]
SHARE = "share between floor and ceiling"


@dataclass(frozen=True)
class TaskControls:
    """The controls of one task: its ``name`` in the table, and the run that they are of (or ``no model``)."""

    name: str
    run: str
    controls: Controls


def control_tables(tasks: Sequence[TaskControls]) -> list[Table]:
    """Return the controls by task, metric and language, and those of detectors by length of text; empty without any."""
    parts = [
        (task, metric, code, own) for task in tasks for metric, by in task.controls.items() for code, own in by.items()
    ]
    whole = _table("controls", "Controls by language", parts, [*CONTROLS, SHARE], tuple(_notes(tasks)))
    names = dict.fromkeys(name for *_, own in parts for name in own.found if name not in CONTROLS)
    # in the order of their lengths, which differ in their last number
    by_length = _table("control_lengths", "Texts recognised by length", parts, sorted(names, key=_length), ())
    return [table for table in (whole, by_length) if table is not None]


def _length(name: str) -> tuple[str, int]:
    control, _, length = name.partition(", ")
    number = int(next(word for word in reversed(length.split()) if word.isdigit()))
    return control, number + length.startswith("over")


def _table(
    key: str,
    title: str,
    parts: Sequence[tuple[TaskControls, str, str, MetricControls]],
    names: Sequence[str],
    notes: tuple[str, ...],
) -> Table | None:
    found = [(*part, _of(part[3])) for part in parts]
    columns = [name for name in names if any(name in own for *_, own in found)]
    if not columns:
        return None
    rows = [
        Row(
            (task.name, f"{metric}{scale_of(metric).note}", code),
            task.run,
            tuple(_cell(own, name, task, metric) for name in columns),
        )
        for task, metric, code, _, own in found
        if any(name in own for name in columns)
    ]
    heads = tuple(_head(name) for name in columns)
    return Table(key, title, ("task", "metric", "language"), heads, tuple(rows), 1, notes, intervals=key == "controls")


def _of(own: MetricControls) -> dict[str, Estimate]:
    return {**own.found, **({} if own.share is None else {SHARE: own.share})}


def _head(name: str) -> str:
    control, joint, length = name.partition(", ")
    return f"{CONTROLS.get(control, control)}{joint}{length}"


def _cell(own: Mapping[str, Estimate], name: str, task: TaskControls, metric: str) -> Cell:
    found = own.get(name)
    if found is None:
        return Cell(None, "", task=task.name, metric=metric)
    if found.value is None:
        return Cell(None, found.reason or "not measured", task=task.name, metric=metric)
    return percent_cell(found, task.name, metric, 100.0 if name == SHARE else None)


def _notes(tasks: Sequence[TaskControls]) -> Iterator[str]:
    for task in tasks:
        for metric in task.controls:
            for code, why in marked_by_controls(task.controls, metric).items():
                yield f"{task.run}, {task.name}, {metric}, marked: {code}: {why}"
    metrics = {metric for task in tasks for metric in task.controls}
    kinds = {control_of(metric).kind for metric in metrics}
    if "reference" in kinds:
        yield "first reference: 1 by construction where the reply is the reference; less is the metric's own loss"
        yield from _authors({code for task in tasks for by in task.controls.values() for code in by})
    if kinds & {"reference", "choice", "language", "ranking"}:
        yield "the first ceiling and the first floor of a metric are the ends of a share; docs/controls.md says which"


def _authors(codes: set[str]) -> Iterator[str]:
    """Yield who wrote and who checked the plain sentences."""
    by: dict[tuple[str, str], list[str]] = {}
    for code in sorted(codes):
        found = language(code)
        if found is not None and found.sentence:
            by.setdefault((found.written_by, found.checked_by or "no speaker"), []).append(code)
    for (author, checker), languages in by.items():
        yield f"sentences of {', '.join(languages)}: written by {author}, checked by {checker}"
