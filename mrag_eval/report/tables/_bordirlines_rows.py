"""Our rows in BordIRlines' tables of documents and citations, which no metric of a task fills."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from mrag_eval.core import RESOURCE_GROUPS, base_language, is_language, named_language
from mrag_eval.metrics import LanguageCitations
from mrag_eval.report._table import Cell, percent_cell
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import open_samples
from mrag_eval.report.labels._labelled import read_labelled
from mrag_eval.report.tables._bordirlines_labels import label_rows
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._layout_cells import NOT_RUN, own_row
from mrag_eval.report.tables._row_runs import Nearest, nearest_runs
from mrag_eval.report.tables._row_settings import OF_THE_ANSWER
from mrag_eval.scoring import CitationTable, LanguageTable

_PUBLISHED_MODES = ("qlang", "qlang+en", "en_only", "rel_langs")
_CITING = ("qlang", "qlang+en", "rel_langs")


def bordirlines_rows(files: Sequence[ResultFile], paths: Sequence[Path]) -> dict[str, list[ModeRow]]:
    """Return, by table, our rows that the results, samples and labels at ``paths`` fill."""
    return {
        "2": _documents(files),
        **label_rows(read_labelled(paths)),
        "Figure 4": _rates(files),
        "Figure 5": _retrieved(files),
        "Figure 10": _distribution(files),
        "Figures 15, 16": _preferences(files),
    }


def _row(label: str, cells: Sequence[Cell], *notes: str, runs: Iterable[Nearest]) -> ModeRow:
    listed = list(runs)
    differs = (text for run in listed for text in run.differs)
    return ModeRow(own_row((label,), cells, differs, [run.leaf for run in listed]), notes)


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
    for run in counted.values():
        path = run.file.samples(run.leaf.task)
        for sample in open_samples(path) if path is not None else ():
            territories[sample.record.query_lang].add(sample.record.resampled_with)
            for hit in sample.passages:
                shown[hit.lang][sample.record.row, hit.id] = hit.doc_id
    if not counted:
        return []
    rows: list[tuple[str, tuple[int, ...]]] = [
        (named_language(lang), (len(territories.get(lang, ())), len({*of.values()}), len({p for _, p in of}), len(of)))
        for lang, of in ((lang, shown.get(lang, {})) for lang in {**territories, **shown})
    ]
    rows.sort(key=lambda row: (-row[1][0], row[0]))
    rows.append(("Totals", tuple(sum(numbers[i] for _, numbers in rows) for i in range(4))))
    note = f"this run counts the documents shown in: {', '.join(sorted(counted))}"
    told = (note, *lines)
    return [_row(label, [Cell(float(n)) for n in numbers], *told, runs=counted.values()) for label, numbers in rows]


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
                    out.append(_row(label, cells, _GROUPED, *lines, runs=[run]))
        out += [_row(f"{named_language(lang)} ({model})", pair, *lines, runs=[run]) for lang, pair in rates.items()]
    return out


_GROUPED = (
    "this run's groups are the classes of Joshi et al. (2020) in three steps, and n counts their languages; "
    "the paper does not list its groups"
)
_UNCITED = "no explanation cites a document"


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
        languages = sorted({lang for table in tables.values() for lang in table})
        most = dict.fromkeys(languages, 0.0)
        for code, share in ((code, _pooled(t, code).value) for t in tables.values() for code in languages):
            most[code] = max(most[code], 0.0 if share is None else share)
        for lang in sorted(languages, key=lambda code: -most[code]):
            cells = [_pooled(tables[mode], lang) if mode in tables else Cell(None, "not run") for mode in _CITING]
            out.append(_row(f"{named_language(lang)} ({model})", cells, *lines, runs=runs.values()))
    return out


def _pooled(table: Mapping[str, LanguageCitations], lang: str) -> Cell:
    total = sum(entry.citations for entry in table.values())
    if not total:
        return Cell(None, "nothing is cited")
    cited = table[lang].citations if lang in table else 0
    return Cell(100 * cited / total, n=cited)


# -------------------------------------------------------------------------------------------------------- retrieval


def _searching(files: Sequence[ResultFile]) -> tuple[list[Nearest | None], list[str]]:
    """Return the runs of rel_langs with the documents of both retrievers, and lines on other runs."""

    def place(_: ResultFile, leaf: LeafResult) -> str | None:
        found = leaf.task.startswith("bordirlines_rel_langs_") and leaf.scores.languages is not None
        return str(leaf.config.data.get("embedder")) if found else None

    runs, lines = nearest_runs(files, place, OF_THE_ANSWER)
    return [runs.get(name) for name in ("openai", "m3")], lines


def _retrieved(files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return Figure 5: the languages of the documents retrieved in rel_langs, by language of the question."""
    shown, lines = _searching(files)
    counts = [None if run is None else _by_question(run.leaf.scores.languages) for run in shown]
    found = [count for count in counts if count is not None]
    out = []
    for query in dict.fromkeys(("all questions", *sorted({query for count in found for query in count}))):
        documents = sum((count[query] for count in found if query in count), Counter[str]())
        for lang in sorted(documents, key=lambda code: (-documents[code], code)):
            of_query = [None if count is None else count.get(query, Counter()) for count in counts]
            numbers = (Cell(None, NOT_RUN) if n is None else Cell(float(n[lang]), digits=0) for n in of_query)
            cells = [*(_part(one, lang) for one in of_query), *numbers]
            out.append(
                _row(f"{named_language(query)}, {named_language(lang)}", cells, *lines, runs=filter(None, shown))
            )
    return out


def _by_question(table: LanguageTable | None) -> dict[str, Counter[str]]:
    """Return language of the question, or ``all questions`` -> language of the documents -> their number."""
    out: dict[str, Counter[str]] = defaultdict(Counter)
    for pair, n in (table.retrieved if table is not None else {}).items():
        query, _, lang = pair.partition("->")
        out[query][lang] += n
        out["all questions"][lang] += n
    return out


def _part(documents: Counter[str] | None, lang: str) -> Cell:
    if documents is None or not documents:
        return Cell(None, "not run" if documents is None else "no document was retrieved")
    return Cell(100 * documents[lang] / documents.total(), n=documents.total())


def _preferences(files: Sequence[ResultFile]) -> list[ModeRow]:
    """Return Figures 15 and 16: how much likelier a document in the question's language is retrieved in rel_langs."""
    shown, lines = _searching(files)
    tables = [None if run is None else run.leaf.scores.languages for run in shown]
    notes = [
        f"{run.leaf.task}: searched passages are {run.leaf.config.source.get('searchable') or 'not known'}"
        for run in shown
        if run is not None
    ]
    languages = sorted(
        {lang for table in tables if table for lang in table.preference}, key=lambda x: (x != "overall", x)
    )
    return [
        _row(
            "overall" if lang == "overall" else named_language(lang),
            [*(_ratio(table, lang) for table in tables), *(_normalised(table, lang) for table in tables)],
            *notes,
            *lines,
            runs=filter(None, shown),
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
