"""People's answers that a panel finds incorrect, sorted by a second look (XRAG, section 5.2 and Appendix B.4)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._samples import open_samples, sample_files
from mrag_eval.report.labels._inspection import DrawnSample, Scheme, write_inspection
from mrag_eval.report.labels._inspection_counts import Inspection, read_inspection

MISJUDGED, WRONG, NOISY = 1, 2, 3
TRIAGE = Scheme(
    "triage",
    {
        MISJUDGED: ("", "misjudged: the answer is correct"),
        WRONG: ("", "wrong: the reference answer is right"),
        NOISY: ("", "noisy question: ambiguous or of poor quality"),
    },
    single=True,
)


def write_triage(paths: Sequence[Path], out: Path) -> list[DrawnSample]:
    """Write every incorrect answer in the judged samples at ``paths`` to a sheet; see :func:`write_inspection`."""
    return write_inspection(paths, out, n=sys.maxsize, wrong=True, scheme=TRIAGE)


def read_triage(sheet: Path, paths: Sequence[Path]) -> tuple[Table, bool]:
    """Return the table of a filled-in sheet, and whether every row of it counts; errors as :func:`read_inspection`."""
    found = read_inspection(sheet, TRIAGE)
    return triage_table(found, paths), found.complete


def triage_table(found: Inspection, paths: Sequence[Path]) -> Table:
    """Return the share of all judged answers that are correct, and of each sort of the others, in percent (Wilson).

    The last row is the share of questions that are not noisy: the paper's second upper bound, 92 %. Without a look at
    every incorrect answer, nothing but the first row is known.
    """
    from mrag_eval.metrics import wilson

    verdicts = [record.right for path in sample_files(paths) for record in open_samples(path).records]
    judged = sum(right is not None for right in verdicts)
    incorrect = sum(right is False for right in verdicts)
    sorted_ = sum(found.inspected.values())
    complete = found.complete and sorted_ == incorrect
    counts = {number: sum(by.values()) for number, by in found.counts.items()}

    def row(name: str, count: int, *, known: bool = True) -> Row:
        if not known or not judged:
            why = "not every incorrect answer is sorted" if judged else "no answer is judged"
            return Row((name,), "people", (Cell(None, why), Cell(None, why)))
        cells = Cell(float(count), digits=0), percent_cell(wilson(count, judged))
        return Row((name,), "people", cells)

    rows = [row("judged correct", judged - incorrect)]
    rows += [row(name, counts.get(n, 0), known=complete) for n, (_, name) in TRIAGE.categories.items()]
    rows.append(row("questions that are not noisy", judged - counts.get(NOISY, 0), known=complete))
    notes = [f"{sorted_} of {incorrect} incorrect answers are sorted"]
    if judged < len(verdicts):
        notes.append(f"{len(verdicts) - judged} answers have no verdict and are not counted")
    notes += [f"not counted: {fault}" for fault in found.faults]
    title = "People's answers: count, and share of all judged answers (%)"
    return Table("triage", title, ("answers",), ("count", "%"), tuple(rows), 1, tuple(notes), intervals=True)
