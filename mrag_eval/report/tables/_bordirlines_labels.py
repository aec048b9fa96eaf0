"""Our rows in BordIRlines' tables of labels: agreement with and between people, and shares of relevant documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mrag_eval.core import named_language
from mrag_eval.datasets import Label
from mrag_eval.metrics import wilson
from mrag_eval.report._table import Cell, percent_cell
from mrag_eval.report.labels._agreement import agreement_on, human_labels
from mrag_eval.report.labels._documents import Pair
from mrag_eval.report.labels._labelled import LabelledRun
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._layout_cells import own_row
from mrag_eval.report.tables._row_settings import OF_THE_ANSWER, unlike

_COLUMNS = (("openai", "zero-shot"), ("openai", "few-shot"), ("m3", "zero-shot"), ("m3", "few-shot"))
_COUNTS = ("true_positive", "true_negative", "false_positive", "false_negative")
# What Table 9 is about, its counts, and whose scheme counts.
_COUNTED = (("relevance", "confusion", "this run"), ("viewpoint", "viewpoint_confusion", "this run, our scheme"))
_RANKS = range(1, 11)


def label_rows(labelled: Sequence[LabelledRun]) -> dict[str, list[ModeRow]]:
    """Return, by table, our rows that the labels fill.

    Shares of relevant documents, and those by rank, are of runs that show the hits of their own questions.
    """
    ranked = [run for run in labelled if run.condition.shows_own_ranks]
    return {
        "6": _by_language_and_mode(labelled, _counts),
        "7": _by_language_and_mode(labelled, _alphas),
        "9": _confusions(labelled),
        "10": _relevant(ranked),
        "Figures 8, 9": _by_rank(ranked),
    }


def _row(label: str, cells: Sequence[Cell], differs: Iterable[str], source: str = "this run") -> ModeRow:
    return ModeRow(own_row((label,), cells, differs, source=source), ())


def _by_language_and_mode(
    labelled: Sequence[LabelledRun], cells: Callable[[Mapping[str, Any]], Sequence[Cell]]
) -> list[ModeRow]:
    """Return a row for each language of questions and mode, over the pairs that people labelled."""
    given: dict[tuple[str, str], dict[Pair, Any]] = defaultdict(dict)
    differs: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for run in labelled:
        changed = dict.fromkeys(_changes([run]))
        for pair in run.pairs:
            if pair.people:
                given[pair.query_lang, run.mode][pair.row, pair.passage] = pair.people
                differs[pair.query_lang, run.mode] |= changed
    out = []
    for (lang, mode), pairs in sorted(given.items()):
        agreed = cells(agreement_on(list(pairs), {}, human_labels(pairs)))
        out.append(_row(f"{named_language(lang)}, {mode}", agreed, differs[lang, mode]))
    return out


def _changes(labelled: Iterable[LabelledRun]) -> list[str]:
    """Return how the runs whose documents were labelled differ from their tasks as shipped."""
    return [text for run in labelled for text in unlike(run.measurement, OF_THE_ANSWER)]


def _counts(found: Mapping[str, Any]) -> list[Cell]:
    return [Cell(float(found["pairs_before"])), Cell(float(found["pairs_after"]))]


def _alphas(found: Mapping[str, Any]) -> list[Cell]:
    none = {"reason": "no viewpoint was labelled"}
    both: list[Mapping[str, Any]] = [found.get(name) or none for name in ("alpha_relevance", "alpha_viewpoint")]
    known = [(one.get("value"), one) for one in both]
    return [Cell(v, None if v is not None else str(one.get("reason")), n=one.get("n") or None) for v, one in known]


def _confusions(labelled: Sequence[LabelledRun]) -> list[ModeRow]:
    """Return Table 9: each labelling model's counts by language, over all modes, and their weighted mean F1."""
    out = []
    for by in dict.fromkeys(f"{run.by}, {run.prompts}" for run in labelled):
        cells: dict[str, dict[Pair, Any]] = defaultdict(dict)
        runs = [run for run in labelled if f"{run.by}, {run.prompts}" == by]
        differs = _changes(runs)
        for pair in (pair for run in runs for pair in run.pairs):
            if pair.people:
                cells[pair.query_lang][pair.row, pair.passage] = pair
        for what, key, source in _COUNTED:
            counts = {}
            for lang, pairs in sorted(cells.items()):
                model = {name: pair.label for name, pair in pairs.items() if pair.label is not None}
                people = human_labels({name: pair.people for name, pair in pairs.items()})
                counts[lang] = agreement_on(list(pairs), model, people)[key]
            made = {f"{named_language(lang)}, {what} ({by})": _f1_cells(found) for lang, found in counts.items()}
            made |= {f"weighted mean, {what} ({by})": _weighted(list(counts.values()))} if counts else {}
            out += [_row(label, row, differs, source) for label, row in made.items()]
    return out


def _f1_cells(counts: Mapping[str, int]) -> list[Cell]:
    tp, fp, fn = counts["true_positive"], counts["false_positive"], counts["false_negative"]
    shares = ((tp, tp + fp, "nothing was labelled so"), (tp, tp + fn, "people labelled nothing so"))
    f1 = (2 * tp, 2 * tp + fp + fn, "neither labelled anything so")
    return [
        *(Cell(float(counts[name]), digits=0) for name in _COUNTS),
        *(Cell(part / whole) if whole else Cell(None, why) for part, whole, why in (*shares, f1)),
    ]


def _weighted(counts: Sequence[Mapping[str, int]]) -> list[Cell]:
    """Return the F1 of all languages weighted by what people found (TP + FN), with summed counts."""
    sums = [Cell(float(sum(found[name] for found in counts)), digits=0) for name in _COUNTS]
    weights = [found["true_positive"] + found["false_negative"] for found in counts]
    total = sum(weights)
    # one of which neither found anything weighs nothing
    scores = [(w, _f1_cells(found)[-1].value) for w, found in zip(weights, counts, strict=True)]
    mean = sum(w * f1 for w, f1 in scores if f1 is not None) / total if total else None
    return [*sums, Cell(None, ""), Cell(None, ""), Cell(mean, None if total else "people labelled nothing so")]


def _relevant(labelled: Sequence[LabelledRun]) -> list[ModeRow]:
    """Return Table 10: the share of labelled documents that a model found relevant."""
    out = []
    for by in dict.fromkeys(run.by for run in labelled):
        for mode in dict.fromkeys(run.mode for run in labelled if run.by == by):
            runs = [run for run in labelled if (run.by, run.mode) == (by, mode)]
            of_column = {c: [run for run in runs if (run.embedder, run.prompts) == c] for c in _COLUMNS}
            found = {column: _as_shipped(runs)[-1] for column, runs in of_column.items() if runs}
            cells = [_share(found.get(column)) for column in _COLUMNS]
            if any(cell.value is not None for cell in cells):
                out.append(_row(f"{mode} ({by})", cells, _changes(found.values())))
    return out


def _share(run: LabelledRun | None) -> Cell:
    if run is None:
        return Cell(None, "not labelled")
    labels = [pair.label.relevant for pair in run.pairs if pair.label is not None]
    if not labels:
        return Cell(None, "no document has a label")
    return percent_cell(wilson(sum(labels), len(labels)), run.task, scale=1.0)


def _by_rank(labelled: Sequence[LabelledRun]) -> list[ModeRow]:
    """Return Figures 8 and 9: the share of relevant documents at each rank, by people and by each model.

    A document at one rank for one question counts once, in whatever modes it was retrieved there.
    """
    by_people: dict[str, list[LabelledRun]] = defaultdict(list)
    by_model: dict[str, list[LabelledRun]] = defaultdict(list)
    for run in labelled:
        by_model[f"{run.by}, {run.prompts} ({run.embedder})"].append(run)
        if any(pair.people for pair in run.pairs):
            by_people[f"people ({run.embedder})"].append(run)
    return [
        _row(name, _shares_by_rank(runs, _labels_of(runs, people=group is by_people)), _changes(runs))
        for group in (by_people, by_model)
        for name, runs in ((name, _as_shipped(runs)) for name, runs in sorted(group.items()))
    ]


def _as_shipped(runs: Sequence[LabelledRun]) -> list[LabelledRun]:
    """Return the runs with the fewest differences from their tasks."""
    fewest = min(len(_changes([run])) for run in runs)
    return [run for run in runs if len(_changes([run])) == fewest]


def _labels_of(runs: Sequence[LabelledRun], *, people: bool) -> Mapping[Pair, Label]:
    pairs = {(pair.row, pair.passage): pair for run in runs for pair in run.pairs}
    if people:
        return human_labels({key: pair.people for key, pair in pairs.items()}).labels
    return {key: pair.label for key, pair in pairs.items() if pair.label is not None}


def _shares_by_rank(runs: Sequence[LabelledRun], labels: Mapping[Pair, Label]) -> list[Cell]:
    found: dict[int, set[Pair]] = defaultdict(set)
    for pair in (pair for run in runs for pair in run.pairs):
        if (pair.row, pair.passage) in labels:
            found[pair.rank].add((pair.row, pair.passage))
    return [
        percent_cell(wilson(sum(labels[pair].relevant for pair in at), len(at)), scale=100.0)
        if (at := found.get(rank))
        else Cell(None, "no document has a label")
        for rank in _RANKS
    ]
