"""Retrieval modes in one table: one metric of any task, a row for each language, benchmark and retrieval setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.core import is_language, language_name
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, Row, percent_cell
from mrag_eval.report.files._results import LeafResult, ResultFile


@dataclass(frozen=True)
class ModeRow:
    """Hold a row, and the remarks on its figures."""

    row: Row
    notes: tuple[str, ...]


def rows_by_mode(columns: Mapping[str, Sequence[str]], metric: str, files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return the rows that the results fill, in percent; ``columns`` -> modes, of which the first one run is shown.

    Runs belong to one row if benchmark, language of the question, corpus and number of passages are the same; the
    metric does not depend on the evaluated model. ``files`` are in order of their date: the latest run of a mode
    counts.
    """
    found: dict[tuple[str, str, str, str], dict[str, tuple[LeafResult, Estimate | None]]] = {}
    for file in files:
        for leaf in file.leaves.values():
            if metric not in leaf.metrics and metric not in leaf.unscored:
                continue
            where = (leaf.config.benchmark or leaf.task, str(leaf.config.corpus), str(leaf.config.k))
            for lang, score in _by_language(leaf, metric).items():
                found.setdefault((lang, *where), {})[str(leaf.config.mode)] = (leaf, score)
    wanted = {mode for modes in columns.values() for mode in modes}
    return [_row(key, columns, metric, runs) for key, runs in sorted(found.items()) if not wanted.isdisjoint(runs)]


def _by_language(leaf: LeafResult, metric: str) -> dict[str, Estimate | None]:
    """Return the score of each language of questions; None if no row has one."""
    languages = list(leaf.scores.query_langs)
    score = leaf.metrics.get(metric)
    if score is None or len(languages) == 1:
        return dict.fromkeys(languages, score)
    return {lang: score.cells("query_lang").get(lang) for lang in languages}


def _row(
    key: tuple[str, str, str, str],
    columns: Mapping[str, Sequence[str]],
    metric: str,
    runs: Mapping[str, tuple[LeafResult, Estimate | None]],
) -> ModeRow:
    lang, benchmark, corpus, k = key
    passages = "1 passage" if k == "1" else f"{k} passages"
    label = f"{language_name(lang) if is_language(lang) else lang} ({benchmark}, {passages} of '{corpus}')"
    cells, notes = [], []
    for modes in columns.values():
        mode = next((mode for mode in modes if mode in runs), None)
        if mode is None:
            cells.append(Cell(None, f"no run in mode {' or '.join(modes)}"))
            continue
        leaf, score = runs[mode]
        cells.append(_cell(leaf, metric, score))
        if len(modes) > 1:
            notes.append(f"{leaf.task}: mode {mode}")
        notes += _remarks(leaf, metric)
    counts = {cell.n for cell in cells if cell.value is not None}
    if len(counts) > 1:
        notes.append(f"{label}: the figures rest on different questions (see n), and do not compare")
    return ModeRow(Row((label,), "this run", tuple(cells)), tuple(dict.fromkeys(notes)))


def _cell(leaf: LeafResult, metric: str, score: Estimate | None) -> Cell:
    if score is None or score.value is None:
        reasons = ", ".join(leaf.unscored.get(metric) or {})
        return Cell(None, reasons or (score.reason if score is not None else None) or "no value", task=leaf.task)
    return percent_cell(score, leaf.task, metric)


def _remarks(leaf: LeafResult, metric: str) -> list[str]:
    out = []
    reasons = leaf.unscored.get(metric) or {}
    if reasons and metric in leaf.metrics:
        counts = ", ".join(f"{n} ({reason})" for reason, n in reasons.items())
        out.append(f"{leaf.task}: {sum(reasons.values())} rows without {metric}: {counts}")
    if leaf.scores.sufficiency is not None:
        out.append(f"{leaf.task}: judged by {', '.join(leaf.scores.sufficiency.models)}")
    return out
