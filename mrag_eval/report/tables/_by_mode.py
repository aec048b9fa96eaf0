"""Retrieval modes in one table: one metric of any task, a row for each language, benchmark and retrieval setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from mrag_eval.core import named_language
from mrag_eval.platform import number_of
from mrag_eval.report._table import Cell, Row, percent_cell
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._scores import Score, task_scores
from mrag_eval.report.tables._layout_cells import NO_RUN, own_row
from mrag_eval.report.tables._requirements import OF_THE_INDEX, retriever_name
from mrag_eval.report.tables._row_settings import OF_THE_ANSWER, unlike_shipped

# What the label of a row says, and what changes nothing of whether passages suffice.
_IGNORED = (
    *(name for name in OF_THE_ANSWER if "sufficiency" not in name),
    *(*OF_THE_INDEX, "retrieval.mode", "rows", "judge.relevance", "judge.repeats"),
)
# A task's score, that of its questions in one language, and the settings that are not the task's as shipped.
_Found = tuple[Score, Score | None, list[str]]
# Language, benchmark, number of passages, corpus, retriever and part of the rows.
_Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class ModeRow:
    """A row, and the remarks on its figures."""

    row: Row
    notes: tuple[str, ...]


def rows_by_mode(columns: Mapping[str, Sequence[str]], metric: str, files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return the rows that the results fill, in percent; ``columns`` -> modes, of which the first one run is shown.

    Runs belong to one row if benchmark, language of the question, number of passages, corpus, retriever and the part of
    the rows that was run are the same; the metric does not depend on the evaluated model. ``files`` are in order of
    their date: of a mode, the run counts that is like its task as shipped, the latest of several, and a line names the
    others.
    """
    scores = [score for score in task_scores(files) if score.metric == metric]
    parts = {(score.path, score.name, score.cell): score for score in scores if score.dimension == "query_lang"}
    leaves = {(str(file.path), leaf.task): leaf for file in files for leaf in file.leaves.values()}
    found: dict[_Key, dict[str, list[_Found]]] = {}
    for whole in (score for score in scores if not score.dimension):
        languages = whole.languages.split(", ") if whole.languages else []
        for lang in languages:
            search = retriever_name(leaves[whole.path, whole.name].config) or "nothing searched"
            part = f", {whole.part}" if whole.part else ""
            key = (lang, str(whole.benchmark), str(whole.passages), f"'{whole.corpus}'", search + part)
            own = whole if len(languages) == 1 else parts.get((whole.path, whole.name, lang))
            differs = unlike_shipped(leaves[whole.path, whole.name], _IGNORED)
            found.setdefault(key, {}).setdefault(str(whole.mode), []).insert(0, (whole, own, differs))
    wanted = {mode for modes in columns.values() for mode in modes}
    return [_row(key, columns, runs, leaves) for key, runs in sorted(found.items()) if not wanted.isdisjoint(runs)]


def _row(
    key: _Key,
    columns: Mapping[str, Sequence[str]],
    runs: Mapping[str, Sequence[_Found]],
    leaves: Mapping[tuple[str, str], LeafResult],
) -> ModeRow:
    lang, benchmark, k, corpus, search = key
    passages = number_of(int(k), "passage") if k.isdigit() else f"passages: {k}"
    label = f"{named_language(lang)} ({benchmark}, {passages} of {corpus}, {search})"
    cells, notes, differs = [], [], []
    shown: list[LeafResult] = []
    for modes in columns.values():
        mode = next((mode for mode in modes if mode in runs), None)
        if mode is None:
            cells.append(Cell(None, NO_RUN + " or ".join(modes)))
            continue
        (whole, part, changed), *others = sorted(runs[mode], key=lambda run: (len(run[2]), run[0].outcomes is not None))
        cells.append(_cell(whole, part))
        differs += changed
        shown.append(leaves[whole.path, whole.name])
        if len(modes) > 1:
            notes.append(f"{whole.name}: mode {mode}")
        left_out = [*others, *(run for other in modes if other != mode for run in runs.get(other, ()))]
        notes += [
            f"{label}: a run in mode {run[0].mode} is left out ({PurePath(run[0].path).name})" for run in left_out
        ]
        if whole.unscored_reasons and whole.value is not None:
            counts = ", ".join(f"{n} ({reason})" for reason, n in whole.unscored_reasons.items())
            notes.append(f"{whole.name}: {number_of(whole.unscored_rows or 0, 'row')} without {whole.metric}: {counts}")
        if (panel := leaves[whole.path, whole.name].scores.sufficiency) is not None:
            notes.append(f"{whole.name}: judged by {', '.join(panel.models) or 'nobody'}")
            notes += [f"{whole.name}: failed votes: {panel.failed_votes}"] if panel.failed_votes else []
    sizes = {cell.n for cell in cells if cell.value is not None}
    if len(sizes) > 1:
        notes.append(f"{label}: the figures rest on different questions (see n), and do not compare")
    return ModeRow(own_row((label,), cells, differs, shown), tuple(dict.fromkeys(notes)))


def _cell(whole: Score, part: Score | None) -> Cell:
    if part is None or part.value is None:
        reasons = ", ".join(whole.unscored_reasons)
        return Cell(None, reasons or (part.reason if part is not None else None) or "no value", task=whole.name)
    return percent_cell(part, whole.name, whole.metric)
