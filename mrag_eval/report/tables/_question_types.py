"""Our rows in XRAG's Table 2: numbers of questions by type, and of answers that people corrected, in each set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.report._table import Cell
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import open_samples
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._layout_cells import NOT_RUN, own_row
from mrag_eval.report.tables._row_runs import Nearest, nearest_runs
from mrag_eval.report.tables._row_settings import OF_A_RUN, alike

# The setting and the language of each column.
_SETS = [(setting, language) for setting in ("mono", "multi") for language in ("de", "es", "zh", "ar")]
# The rows of the paper: key of a question's extra fields, and its value.
_TYPES = {
    "Aggregation": ("q_type", "aggregation"),
    "Comparison": ("q_type", "comparison"),
    "Multi-hop": ("q_type", "multihop"),
    "Set": ("q_type", "set"),
    "Original": ("a_type", "original"),
    "Corrected": ("a_type", "corrected"),
}


def type_rows(files: Sequence[ResultFile], paths: Sequence[Path]) -> dict[str, list[ModeRow]]:
    """Return the rows of Table 2 for the sets whose samples are next to the results.

    Neither the model nor the English parts of a prompt change the questions of a set, so one run is read: the latest of
    those with the paper's questions, else the latest.
    """

    def place(file: ResultFile, leaf: LeafResult) -> tuple[str, str] | None:
        found = (str(leaf.config.setting("data.setting")), str(leaf.config.setting("data.language")))
        known = leaf.config.benchmark == "xrag" and found in _SETS
        return found if known and file.samples(leaf.task) is not None else None

    chosen, _ = nearest_runs(files, place, OF_A_RUN)
    rows = []
    for named in dict.fromkeys(tuple(map(alike, run.differs)) for run in chosen.values()):
        found = {place: run for place, run in chosen.items() if tuple(map(alike, run.differs)) == named}
        counted = {place: _cells(run) for place, run in found.items()}
        differs = [text for run in found.values() for text in run.differs]
        for name in ("Number", *_TYPES):
            cells = tuple(counted[place][name] if place in counted else Cell(None, NOT_RUN) for place in _SETS)
            rows.append(ModeRow(own_row((name,), cells, differs, [run.leaf for run in found.values()]), ()))
    return {"2": rows}


def _cells(run: Nearest) -> dict[str, Cell]:
    path, task = run.file.samples(run.leaf.task), run.leaf.task
    extras = [sample.doc.extra for sample in (open_samples(path) if path is not None else ())]
    cells = {"Number": Cell(len(extras), task=task)}
    for name, (key, value) in _TYPES.items():
        said = [extra.get(key) for extra in extras]
        unknown = None if any(said) else f"the rows have no {key}"
        cells[name] = Cell(None if unknown else said.count(value), unknown, task=task)
    return cells
