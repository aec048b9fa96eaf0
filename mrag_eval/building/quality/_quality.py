"""Statistics of a built set: question types, languages, lengths, and lexical overlap of questions with their sources.

The layout follows XRAG's Table 2 and, with results of runs, its Tables 3 to 5
(:func:`mrag_eval.building.quality._quality_runs.difficulty_tables`).

Lexical overlap is measured by ``copied_share``, within one language: the share of a question's words, and of its word
4-grams (a shorter question is one gram), that occur in the sources of its own language. In scripts without spaces a
letter counts as a word. 0 means fully reworded, 100 fully copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mrag_eval.building.quality._quality_rows import BuiltRow, BuiltSet, read_built
from mrag_eval.building.quality._quality_runs import difficulty_tables
from mrag_eval.building.steps._words import copied_share, count_words
from mrag_eval.core import same_language
from mrag_eval.report import Cell, Row, Table
from mrag_eval.scoring import RESAMPLES

ALL = "all"
_FROM = "set"
_PERCENT = 100.0
_MEASURED = (
    "share of the question's words (of its word 4-grams) that occur in the sources of its own language; a letter is a "
    "word in scripts without spaces"
)
_NO_SOURCE = "no source in the question's language"
_KIND_NAMES = {"q_type": "question", "crossdoc_type": "articles", "a_type": "answer"}
_CROSSDOC = {"0": "one suffices", "1": "one suffices, one supports", "2": "each holds part"}


def quality_tables(folder: Path, results: Sequence[Path] = (), metric: str | None = None) -> list[Table]:
    """Return the tables of a built set and, given results of runs on it, its difficulty for their models.

    Raises DataError for a folder without a set, or if none of the results belongs to a run on it.
    """
    built = read_built(folder)
    tables = [table for part in dict.fromkeys(row.part for row in built.rows) for table in _of_part(built, part)]
    return [*tables, *(difficulty_tables(built, results, metric) if results else ())]


def _of_part(built: BuiltSet, part: str) -> list[Table]:
    rows = [row for row in built.rows if row.part == part]
    originals = part.endswith("originals")
    tables = [] if originals else [_types(rows, part)]
    if not originals and any(row.doc_langs for row in rows):
        tables.append(_pairs(rows, part))
    # without a source in the question's language there is no overlap to measure
    return [*tables, *(found for found in (_lengths(rows, part), _overlap(rows, part)) if found.rows)]


def _by_language(rows: Sequence[BuiltRow]) -> dict[str, list[BuiltRow]]:
    """Return the rows by question language, followed by all rows if there are several languages."""
    found = {lang: [row for row in rows if row.lang == lang] for lang in sorted({row.lang for row in rows})}
    return found | ({ALL: list(rows)} if len(found) > 1 else {})


def _count(n: int) -> Cell:
    return Cell(float(n), digits=0)


def _types(rows: Sequence[BuiltRow], part: str) -> Table:
    """Return XRAG's Table 2: questions by type, answers as written and as corrected, by language."""
    columns = _by_language(rows)
    lines = [Row(("number", ""), _FROM, tuple(_count(len(members)) for members in columns.values()))]
    for kind in dict.fromkeys(name for row in rows for name in row.kinds):
        for label in sorted({row.kinds[kind] for row in rows if kind in row.kinds}):
            counts = tuple(_count(sum(row.kinds.get(kind) == label for row in members)) for members in columns.values())
            shown = _CROSSDOC.get(label, label) if kind == "crossdoc_type" else label
            lines.append(Row((_KIND_NAMES.get(kind, kind), shown), _FROM, counts))
    title = f"Questions by type and language ({part})"
    return Table(f"types: {part}", title, ("", "type"), tuple(columns), tuple(lines), 0)


def _pairs(rows: Sequence[BuiltRow], part: str) -> Table:
    """Return the number of questions by their language and the languages of their sources."""
    counts = Counter((row.lang, "+".join(row.doc_langs)) for row in rows)
    documents = tuple(sorted({docs for _, docs in counts}))
    langs = sorted({lang for lang, _ in counts})
    lines = [Row((lang,), _FROM, tuple(_count(counts[lang, docs]) for docs in documents)) for lang in langs]
    title = f"Questions by their language (rows) and that of their sources (columns) ({part})"
    return Table(f"pairs: {part}", title, ("question",), documents, tuple(lines), 0)


def _lengths(rows: Sequence[BuiltRow], part: str) -> Table:
    measures: Mapping[str, Callable[[BuiltRow], float | None]] = {
        "question": lambda row: count_words(row.question),
        "answer": lambda row: count_words(row.answer) if row.answer else None,
        "each source": lambda row: (
            sum(count_words(text) for _, text in row.sources) / len(row.sources) if row.sources else None
        ),
    }
    return _means(rows, measures, "lengths", f"Words, mean ({part})", "no text", 1.0)


def _overlap(rows: Sequence[BuiltRow], part: str) -> Table:
    measures: Mapping[str, Callable[[BuiltRow], float | None]] = {
        "words of the question in its sources": lambda row: _copied(row, row.question, 1),
        "4-grams of the question in its sources": lambda row: _copied(row, row.question, 4),
        "words of the answer in the sources": lambda row: _copied(row, row.answer, 1),
    }
    title = f"Lexical overlap with sources of the question's own language, % ({part})"
    return replace(_means(rows, measures, "overlap", title, _NO_SOURCE, _PERCENT), notes=(_MEASURED,))


def _copied(row: BuiltRow, text: str, n: int) -> float | None:
    own = [source for lang, source in row.sources if same_language(lang, row.lang)]
    return copied_share(text, "\n".join(own), n) if own and text else None


def _means(
    rows: Sequence[BuiltRow],
    measures: Mapping[str, Callable[[BuiltRow], float | None]],
    name: str,
    title: str,
    blank: str,
    scale: float,
) -> Table:
    """Return means by language, with intervals that resample questions by source or original."""
    columns = _by_language(rows)
    lines = []
    for measure, of in measures.items():
        values = {row.id: of(row) for row in rows}
        if all(value is None for value in values.values()):
            continue
        cells = tuple(_mean([values[row.id] for row in members], members, scale, blank) for members in columns.values())
        lines.append(Row((measure,), _FROM, cells))
    return Table(f"{name}: {rows[0].part}", title, ("",), tuple(columns), tuple(lines), 1, intervals=True)


def _mean(values: Sequence[float | None], rows: Sequence[BuiltRow], scale: float, blank: str) -> Cell:
    from mrag_eval.metrics import interval_for

    if all(value is None for value in values):
        return Cell(None, blank)
    groups = [row.group or row.id for row in rows]
    grouped = groups if len(set(groups)) < len(groups) else None
    # shares are bounded by 1, lengths are not
    bounds = (0.0, 1.0 if scale == _PERCENT else float("inf"))
    found = interval_for(values, groups=grouped, n_resamples=RESAMPLES, bounds=bounds)
    value, low, high = (None if x is None else scale * x for x in (found.value, found.low, found.high))
    return Cell(value, found.reason if value is None else None, low, high, found.n)
