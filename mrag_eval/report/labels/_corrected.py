"""A judge's rates corrected by people's labels: by task (an IR mode) and language, and the rows to label next."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_eval.platform import DataError, number_of, read_sheet, write_sheet
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import models_beside, open_samples, sample_files, task_of
from mrag_eval.report.labels._panel_agreement import label_of, sheet_row

if TYPE_CHECKING:
    from mrag_eval.metrics import CorrectedRate, Estimate

COLUMNS = ("id", "label", "language", "question", "reference answers", "reply")
METRIC = "judge_correct"
# Labels that every task and language gets before the others are spread by the number of rows.
FIRST_LABELS = 5


@dataclass(frozen=True)
class Verdicts:
    """The rows of one task that have a verdict, by row id; ``left_out`` gives the reason why another has none."""

    task: str
    model: str
    metric: str
    rows: Mapping[str, Sample]
    left_out: Mapping[str, str]

    def name(self, row: str) -> str:
        """Return task and row as one name, which a spreadsheet does not take for a number or a date."""
        return f"{self.task}: {row}"

    def verdict(self, row: str) -> float:
        """Return the judge's verdict on a row, 0 or 1."""
        return self.rows[row].record.values[self.metric]


@dataclass(frozen=True)
class PeoplesLabels:
    """People's labels by the name of their row.

    ``blank`` rows of the sheet have none yet; ``unused`` labels belong to rows without a verdict.
    """

    labels: Mapping[str, bool]
    blank: int = 0
    unused: int = 0


def read_verdicts(paths: Sequence[Path], metric: str = METRIC) -> list[Verdicts]:
    """Return the verdicts in the sample files at ``paths``, task by task.

    Raises DataError for a task without a verdict, for one that is there twice, and for a value other than 0 and 1.
    """
    found: dict[str, Verdicts] = {}
    for path, model in models_beside(sample_files(paths)).items():
        task, rows, left_out = task_of(path), {}, {}
        if task in found:
            raise DataError(f"{path}: a second run of the task '{task}'", "name the samples of a single run")
        for sample in open_samples(path):
            value = sample.record.values.get(metric)
            if value is None:
                left_out[sample.record.row] = sample.record.unscored.get(metric, f"no {metric}")
            elif value not in (0.0, 1.0):
                raise DataError(
                    f"{path}, row '{sample.record.row}': {metric} is {value:g}", "name a metric of 0 and 1 (--metric)"
                )
            else:
                rows[sample.record.row] = sample
        if not rows:
            reasons = "; ".join(dict.fromkeys(left_out.values()))
            raise DataError(
                f"{path}: no row can be corrected ({reasons})", f"mrag-eval judge answers {path}   judges them"
            )
        found[task] = Verdicts(task, model, metric, rows, left_out)
    return list(found.values())


def read_labels_of(path: Path, runs: Sequence[Verdicts]) -> PeoplesLabels:
    """Return people's labels from a sheet with the columns ``id`` and ``label``.

    An id is a name from the sheet that :func:`write_label_sheet` wrote, or the id of a row that only one task has.
    Raises DataError naming the line for another id, another label, and for a row that is there twice.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for row in (*run.rows, *run.left_out):
            names[row].append(run.name(row))
            names[run.name(row)].append(run.name(row))
    judged = {run.name(row) for run in runs for row in run.rows}
    labels: dict[str, bool] = {}
    blank = 0
    for line in read_sheet(path, ("id", "label")):
        where, key = f"{path}, line {line.line}", line.cells["id"]
        found = names.get(key, [])
        if len(found) != 1:
            what = "is a row of several tasks" if found else "is no row of this run"
            known = next(iter(names))
            raise DataError(f"{where}: the id '{key}' {what}", f"write task and row, such as '{names[known][0]}'")
        if not line.cells["label"]:
            blank += 1
            continue
        if found[0] in labels:
            raise DataError(f"{where}: the id '{key}' comes a second time", "keep one label for every id")
        labels[found[0]] = bool(label_of(line.cells["label"], where))
    used = {name: label for name, label in labels.items() if name in judged}
    if not used:
        raise DataError(
            f"{path} holds no label of a row with a verdict", "write correct or incorrect into the column 'label'"
        )
    return PeoplesLabels(used, blank, len(labels) - len(used))


def corrected_table(runs: Sequence[Verdicts], people: PeoplesLabels) -> Table:
    """Return the judge's rate and both corrected rates in percent, for every task and each of its languages."""
    rows, notes = [], []
    for run in runs:
        languages: dict[str, list[str]] = defaultdict(list)
        for row, sample in run.rows.items():
            languages[sample.record.query_lang or "no language"].append(row)
        cells = {"all": list(run.rows), **dict(sorted(languages.items()))} if len(languages) > 1 else languages
        for language, ids in cells.items():
            judged, found = _rates(run, ids, people)
            rows.append(Row((run.task, language), run.model, _cells(judged, found, run.metric)))
            for estimate in (found.prediction_powered, found.rogan_gladen):
                if estimate.value is not None and estimate.reason:
                    notes.append(f"{run.task}, {language}, {estimate.method}: {estimate.reason}")
        reasons = Counter(run.left_out.values())
        notes += [f"{run.task}: {number_of(count, 'row')} not covered: {reason}" for reason, count in reasons.items()]
    if people.blank:
        blank = number_of(people.blank, "row")
        notes.append(f"{blank} of the sheet without a label; the estimates assume that chance left them out")
    if people.unused:
        notes.append(f"{number_of(people.unused, 'label')} not used: no verdict on such rows")
    notes.append("the labelled rows must be a random draw within each task and language")
    names = ("judge", "PPI++", "lambda", "Rogan-Gladen", "sensitivity", "specificity")
    title = f"{runs[0].metric} corrected by {len(people.labels)} labels (%)"
    return Table("corrected", title, ("task", "language"), names, tuple(rows), 1, tuple(notes), intervals=True)


def _rates(run: Verdicts, rows: Sequence[str], people: PeoplesLabels) -> tuple[Estimate, CorrectedRate]:
    """Return the judge's rate as it is, and corrected."""
    from mrag_eval.metrics import corrected_rate, interval_for

    verdicts = [run.verdict(row) for row in rows]
    labels = [people.labels.get(run.name(row)) for row in rows]
    records = [run.rows[row].record for row in rows]
    groups = [record.resampled_with for record in records]
    corrected = corrected_rate(
        verdicts,
        [None if label is None else float(label) for label in labels],
        strata=[record.query_lang for record in records],
        groups=groups,
    )
    return interval_for(verdicts, groups=groups, bounds=(0.0, 1.0)), corrected


def _cells(judged: Estimate, found: CorrectedRate, metric: str) -> tuple[Cell, ...]:
    def cell(estimate: Estimate) -> Cell:
        return replace(percent_cell(estimate, metric=metric), reason=estimate.reason)

    tuning = Cell(found.tuning, found.prediction_powered.reason, digits=2)
    return (
        cell(judged),
        cell(found.prediction_powered),
        tuning,
        *map(cell, (found.rogan_gladen, found.sensitivity, found.specificity)),
    )


def write_label_sheet(
    runs: Sequence[Verdicts], out: Path, *, n: int = 200, seed: int = 0, people: PeoplesLabels | None = None
) -> dict[tuple[str, str], int]:
    """Write the next ``n`` rows to label; return their number by task and language.

    Rows of a task and language come in one random order that depends on the seed alone, so that the labelled ones are a
    random draw at any time. Those that ``people`` labelled are left out. Every task and language gets a few labels
    first, then each in proportion to its rows. Verdicts are not shown. Raises DataError if ``out`` exists, and if every
    row has a label.
    """
    if out.exists():
        raise DataError(f"{out}: is already there and may have been filled in", "name another file, or remove it")
    done = people.labels if people is not None else {}
    left: dict[tuple[str, str], list[tuple[str, Sample]]] = defaultdict(list)
    labelled: Counter[tuple[str, str]] = Counter()
    for run in runs:
        for row, sample in run.rows.items():
            stratum = run.task, sample.record.query_lang
            if run.name(row) in done:
                labelled[stratum] += 1
            else:
                left[stratum].append((run.name(row), sample))
    size = {stratum: labelled[stratum] + len(pool) for stratum, pool in left.items()}
    if not left:
        raise DataError("every row with a verdict has a label", "leave out --write")
    for pool in left.values():
        # the next row of the order is the last of its pool
        pool.sort(key=lambda one: hashlib.sha256(f"{seed}\x1f{one[0]}".encode("utf-8", "replace")).digest())
    drawn: Counter[tuple[str, str]] = Counter()
    rows: list[tuple[tuple[str, str], dict[str, str]]] = []
    while left and len(rows) < n:
        stratum = min(left, key=lambda one: _turn(labelled[one] + drawn[one], size[one], one))
        name, sample = left[stratum].pop()
        rows.append((stratum, sheet_row(name, sample)))
        drawn[stratum] += 1
        if not left[stratum]:
            del left[stratum]
    write_sheet(out, COLUMNS, [cells for _, cells in sorted(rows, key=lambda row: row[0])])
    return dict(sorted(drawn.items()))


def _turn(labels: int, rows: int, stratum: tuple[str, str]) -> tuple[int, float, tuple[str, str]]:
    """Return the place in the queue for the next label: those with few first, then by labels for their rows."""
    return min(labels, FIRST_LABELS), (labels + 1) / rows, stratum
