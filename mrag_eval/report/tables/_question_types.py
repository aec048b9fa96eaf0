"""Our rows in XRAG's Table 2: numbers of questions by type, and of answers that people corrected, in each set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.config import is_named
from mrag_eval.planning import deviations
from mrag_eval.report._table import Cell, Row
from mrag_eval.report.files._results import ResultFile
from mrag_eval.report.files._samples import read_samples
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._layout_cells import NOT_RUN

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


@dataclass(frozen=True, slots=True)
class _Found:
    """Hold the samples of a task, and the settings in which its rows are not the paper's."""

    differs: tuple[str, ...]
    task: str
    samples: Path


def type_rows(files: Sequence[ResultFile], paths: Sequence[Path]) -> dict[str, list[ModeRow]]:
    """Return the rows of Table 2 for the sets whose samples are next to the results.

    Neither the model nor the English parts of a prompt change the questions of a set, so one run is read: the latest of
    those with the paper's questions, else the latest.
    """
    chosen: dict[tuple[str, str], _Found] = {}
    for file in reversed(files):
        for leaf in file.leaves.values():
            place = (str(leaf.config.setting("data.setting")), str(leaf.config.setting("data.language")))
            path = file.samples(leaf.task)
            if leaf.config.benchmark != "xrag" or place not in _SETS or path is None:
                continue
            found = deviations(leaf.measurement)
            differs = tuple(one.text for one in found if one.role != "setting" or is_named(one.key, ("data",)))
            if place not in chosen or len(differs) < len(chosen[place].differs):
                chosen[place] = _Found(differs, leaf.task, path)
    rows = []
    for differs in dict.fromkeys(found.differs for found in chosen.values()):
        alike = {place: _cells(found) for place, found in chosen.items() if found.differs == differs}
        source = f"this run, other settings: {'; '.join(differs)}" if differs else "this run"
        for name in ("Number", *_TYPES):
            cells = tuple(alike[place][name] if place in alike else Cell(None, NOT_RUN) for place in _SETS)
            rows.append(ModeRow(Row((name,), source, cells), ()))
    return {"2": rows}


def _cells(found: _Found) -> dict[str, Cell]:
    extras = [sample.doc.extra for sample in read_samples(found.samples)]
    cells = {"Number": Cell(len(extras), task=found.task)}
    for name, (key, value) in _TYPES.items():
        said = [extra.get(key) for extra in extras]
        unknown = None if any(said) else f"the rows have no {key}"
        cells[name] = Cell(None if unknown else said.count(value), unknown, task=found.task)
    return cells
