"""Our rows in BordIRlines' tables of documents, labels and citations, which no metric of a task fills."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from mrag_eval.core import RESOURCE_GROUPS, base_language, is_language, language_name
from mrag_eval.metrics import LanguageCitations, wilson
from mrag_eval.report._table import Cell, Row, percent_cell
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import read_samples
from mrag_eval.report.labels._agreement import agreement_on, human_labels
from mrag_eval.report.labels._documents import Pair
from mrag_eval.report.labels._labelled import LabelledRun, read_labelled
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._row_runs import Nearest, nearest_runs
from mrag_eval.report.tables._row_settings import OF_THE_ANSWER, source_of, unlike
from mrag_eval.scoring import CitationTable, LanguageTable

_PUBLISHED_MODES = ("qlang", "qlang+en", "en_only", "rel_langs")
_CITING = ("qlang", "qlang+en", "rel_langs")
_COLUMNS = (("openai", "zero-shot"), ("openai", "few-shot"), ("m3", "zero-shot"), ("m3", "few-shot"))
_COUNTS = ("true_positive", "true_negative", "false_positive", "false_negative")
# What Table 9 is about, its counts, and whose scheme counts.
_COUNTED = (("relevance", "confusion", "this run"), ("viewpoint", "viewpoint_confusion", "this run, our scheme"))


def bordirlines_rows(files: Sequence[ResultFile], paths: Sequence[Path]) -> dict[str, list[ModeRow]]:
    """Return, by table, our rows that the results, samples and labels at ``paths`` fill."""
    labelled = read_labelled(paths)
    return {
        "2": _documents(files),
        "6": _by_language_and_mode(labelled, _counts),
        "7": _by_language_and_mode(labelled, _alphas),
        "9": _confusions(labelled),
        "10": _relevant(labelled),
        "Figure 4": _rates(files),
        "Figure 10": _distribution(files),
        "Figures 15, 16": _preferences(files),
    }


def _row(
    label: str, cells: Sequence[Cell], *notes: str, differs: Iterable[str] = (), source: str = "this run"
) -> ModeRow:
    return ModeRow(Row((label,), source_of(differs, source), tuple(cells)), notes)


def _name(lang: str) -> str:
    return language_name(lang) if is_language(lang) else lang


# ------------------------------------------------------------------------------------------------------- documents


def _documents(files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return Table 2: territories asked in a language, and articles, passages and pairs among the documents in it."""

    def place(file: ResultFile, leaf: LeafResult) -> str | None:
        config = leaf.config
        shows = leaf.task.startswith("bordirlines_") and config.mode in _PUBLISHED_MODES
        found = f"{config.mode} ({config.data.get('embedder') or config.corpus})"
        return found if shows and file.samples(leaf.task) is not None else None

    territories: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    counted, lines = nearest_runs(files, place, OF_THE_ANSWER)
    differs = [change for run in counted.values() for change in run.differs]
    for run in counted.values():
        path = run.file.samples(run.leaf.task)
        for sample in read_samples(path) if path is not None else ():
            territories[sample.record.query_lang].add(sample.record.resampled_with)
            for hit in sample.passages:
                shown[hit.lang][sample.record.row, hit.id] = hit.doc_id
    if not counted:
        return []
    rows: list[tuple[str, tuple[int, ...]]] = [
        (_name(lang), (len(territories.get(lang, ())), *_sizes(shown.get(lang, {}))))
        for lang in {**territories, **shown}
    ]
    rows.sort(key=lambda row: (-row[1][0], row[0]))
    rows.append(("Totals", tuple(sum(numbers[i] for _, numbers in rows) for i in range(4))))
    note = f"this run counts the documents shown in: {', '.join(sorted(counted))}"
    return [_row(label, [Cell(float(n)) for n in numbers], note, *lines, differs=differs) for label, numbers in rows]


def _sizes(pairs: Mapping[tuple[str, str], str]) -> tuple[int, int, int]:
    return len(set(pairs.values())), len({passage for _, passage in pairs}), len(pairs)


# ---------------------------------------------------------------------------------------------------------- labels


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
        out.append(_row(f"{_name(lang)}, {mode}", agreed, differs=differs[lang, mode]))
    return out


def _changes(labelled: Iterable[LabelledRun]) -> list[str]:
    """Return how the runs whose documents were labelled differ from their tasks as shipped."""
    return [text for run in labelled for text in unlike(run.measurement, OF_THE_ANSWER)]


def _counts(found: Mapping[str, Any]) -> list[Cell]:
    return [Cell(float(found["pairs_before"])), Cell(float(found["pairs_after"]))]


def _alphas(found: Mapping[str, Any]) -> list[Cell]:
    none = {"reason": "no viewpoint was labelled"}
    return [_alpha(found.get(name) or none) for name in ("alpha_relevance", "alpha_viewpoint")]


def _alpha(estimate: Mapping[str, Any]) -> Cell:
    value = estimate.get("value")
    return Cell(value, None if value is not None else str(estimate.get("reason")), n=estimate.get("n") or None)


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
            counts = {lang: _agreed(pairs)[key] for lang, pairs in sorted(cells.items())}
            made = {f"{_name(lang)}, {what} ({by})": _f1_cells(found) for lang, found in counts.items()}
            made |= {f"weighted mean, {what} ({by})": _weighted(list(counts.values()))} if counts else {}
            out += [_row(label, row, differs=differs, source=source) for label, row in made.items()]
    return out


def _agreed(pairs: Mapping[Pair, Any]) -> dict[str, Any]:
    model = {key: pair.label for key, pair in pairs.items() if pair.label is not None}
    return agreement_on(list(pairs), model, human_labels({key: pair.people for key, pair in pairs.items()}))


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
    scores = [_f1_cells(found)[-1].value or 0.0 for found in counts]
    total = sum(weights)
    mean = sum(w * f for w, f in zip(weights, scores, strict=True)) / total if total else None
    return [*sums, Cell(None, ""), Cell(None, ""), Cell(mean, None if total else "people labelled nothing so")]


def _relevant(labelled: Sequence[LabelledRun]) -> list[ModeRow]:
    """Return Table 10: the share of labelled documents that a model found relevant."""
    out = []
    for by in dict.fromkeys(run.by for run in labelled):
        for mode in dict.fromkeys(run.mode for run in labelled if run.by == by):
            found = {(run.embedder, run.prompts): run for run in labelled if (run.by, run.mode) == (by, mode)}
            cells = [_share(found.get(column)) for column in _COLUMNS]
            if any(cell.value is not None for cell in cells):
                out.append(_row(f"{mode} ({by})", cells, differs=_changes(found.values())))
    return out


def _share(run: LabelledRun | None) -> Cell:
    if run is None:
        return Cell(None, "not labelled")
    labels = [pair.label.relevant for pair in run.pairs if pair.label is not None]
    if not labels:
        return Cell(None, "no document has a label")
    return percent_cell(wilson(sum(labels), len(labels)), run.task, scale=1.0)


# ------------------------------------------------------------------------------------------------------- citations


def _citing(files: Sequence[ResultFile], modes: Sequence[str]) -> tuple[dict[tuple[str, str], Nearest], list[str]]:
    """Return (model, mode) -> the run with citations of the OpenAI embeddings' documents, and lines on other runs."""

    def place(file: ResultFile, leaf: LeafResult) -> tuple[str, str] | None:
        named = leaf.task.startswith("bordirlines_") and leaf.task.endswith("_citation_openai")
        mode = str(leaf.config.mode)
        return (file.model, mode) if named and leaf.scores.citations and mode in modes else None

    return nearest_runs(files, place)


def _inline(run: Nearest) -> CitationTable:
    return (run.leaf.scores.citations or {})["inline"]


def _rates(files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return Figure 4: inclusion and citation of documents in the question's language, in rel_langs."""
    out = []
    found, lines = _citing(files, ("rel_langs",))
    for (model, _), run in found.items():
        table = _inline(run)
        rates = {lang: _own_rates(table, lang) for lang in sorted(table.by_query_language)}
        for group, codes in RESOURCE_GROUPS.items():
            within = [pair for lang, pair in rates.items() if is_language(lang) and base_language(lang) in set(codes)]
            columns = [[value for pair in within if (value := pair[i].value) is not None] for i in (0, 1)]
            statistics: dict[str, Callable[[list[float]], float]] = {"median": median, "lowest": min, "highest": max}
            for name, statistic in statistics.items():
                if within:
                    cells = [Cell(statistic(c), n=len(c)) if c else Cell(None, _UNCITED) for c in columns]
                    label = f"{group}-resource, {name} ({model})"
                    out.append(_row(label, cells, _GROUPED, *lines, differs=run.differs))
        out += [_row(f"{_name(lang)} ({model})", pair, *lines, differs=run.differs) for lang, pair in rates.items()]
    return out


_GROUPED = (
    "this run's groups are the classes of Joshi et al. (2020) in three steps, and n counts their languages; "
    "the paper does not list its groups"
)
_UNCITED = "no reply cites a document"


def _own_rates(table: CitationTable, lang: str) -> list[Cell]:
    """Return inclusion and citation of the documents in a question's language, with intervals where there are some."""
    figures = table.preference.get("query_lang", {}).get("own", {}).get(lang, {})
    inclusion, citation = table.own_rates(lang)
    return [_rate(inclusion, figures.get("inclusion") or {}), _rate(citation, figures.get("citation") or {})]


def _rate(value: float | None, figure: Mapping[str, Any]) -> Cell:
    if value is None:
        return Cell(None, _UNCITED)
    low, high = (None if figure.get(end) is None else 100 * float(figure[end]) for end in ("low", "high"))
    return Cell(100 * value, None, low, high)


def _distribution(files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return Figure 10: the languages of all citations, by mode."""
    found, lines = _citing(files, _CITING)
    out = []
    for model in dict.fromkeys(model for model, _ in found):
        runs = {mode: run for (of, mode), run in found.items() if of == model}
        tables: dict[str, Mapping[str, LanguageCitations]] = {m: _inline(run).by_language for m, run in runs.items()}
        differs = [change for run in runs.values() for change in run.differs]
        languages = sorted({lang for table in tables.values() for lang in table})
        for lang in sorted(languages, key=lambda code: -max(_pooled(t, code).value or 0 for t in tables.values())):
            cells = [_pooled(tables[mode], lang) if mode in tables else Cell(None, "not run") for mode in _CITING]
            out.append(_row(f"{_name(lang)} ({model})", cells, *lines, differs=differs))
    return out


def _pooled(table: Mapping[str, LanguageCitations], lang: str) -> Cell:
    total = sum(entry.citations for entry in table.values())
    if not total:
        return Cell(None, "nothing is cited")
    cited = table[lang].citations if lang in table else 0
    return Cell(100 * cited / total, n=cited)


# -------------------------------------------------------------------------------------------------------- retrieval


def _preferences(files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return Figures 15 and 16: how much likelier a document in the question's language is retrieved in rel_langs."""

    def place(_: ResultFile, leaf: LeafResult) -> str | None:
        found = leaf.task.startswith("bordirlines_rel_langs_") and leaf.scores.languages is not None
        return str(leaf.config.data.get("embedder")) if found else None

    runs, lines = nearest_runs(files, place, OF_THE_ANSWER)
    shown = [runs.get(name) for name in ("openai", "m3")]
    tables = [None if run is None else run.leaf.scores.languages for run in shown]
    notes = [
        f"{run.leaf.task}: searched passages are {run.leaf.config.source.get('searchable') or 'not known'}"
        for run in shown
        if run is not None
    ]
    differs = [change for run in shown if run is not None for change in run.differs]
    languages = sorted(
        {lang for table in tables if table for lang in table.preference}, key=lambda x: (x != "overall", x)
    )
    return [
        _row(
            "overall" if lang == "overall" else _name(lang),
            [*(_ratio(table, lang) for table in tables), *(_normalised(table, lang) for table in tables)],
            *notes,
            *lines,
            differs=differs,
        )
        for lang in languages
    ]


def _ratio(table: LanguageTable | None, lang: str) -> Cell:
    if table is None or lang not in table.preference:
        return Cell(None, "not run")
    ratio = table.preference[lang].ratio
    return percent_cell(ratio, scale=1.0) if ratio.value is not None else Cell(None, ratio.reason)


def _normalised(table: LanguageTable | None, lang: str) -> Cell:
    if table is None or lang not in table.preference:
        return Cell(None, "not run")
    value = table.preference[lang].normalised
    return Cell(value, None if value is not None else table.preference[lang].ratio.reason)
