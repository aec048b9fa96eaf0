"""Difficulty of a built set: accuracy without documents, with supporting ones, with all (XRAG, Tables 3 to 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrag_eval.building.quality._quality_rows import BuiltSet
from mrag_eval.metrics import Estimate
from mrag_eval.platform import DataError
from mrag_eval.report import (
    Cell,
    LeafResult,
    ResultFile,
    Row,
    Table,
    TaskConfig,
    open_samples,
    percent_cell,
    read_results,
)
from mrag_eval.scoring import RESAMPLES, MetricScore

CLOSED, ORACLE, EVERYTHING = "no documents", "supporting documents", "all documents"
# Metrics of correctness, the most trustworthy first.
_METRICS = ("judged_accuracy", "judge_correct", "acc", "concurrence.KB_CS", "match", "char3gram_recall")
_PERCENT = 100.0
_NOT_RUN = "not run"
_FROM = "run"
# Separates the language of a question from that of its document.
_PAIR = "->"
# The cell of a task with a single language.
ALL_QUESTIONS = "all"


@dataclass(frozen=True)
class _Run:
    """One task of a run on the set; ``part`` and ``lang`` are those of its data block, if any."""

    model: str
    condition: str
    part: str
    lang: str
    leaf: LeafResult
    file: ResultFile


def difficulty_tables(built: BuiltSet, results: Sequence[Path], metric: str | None = None) -> list[Table]:
    """Return tables of accuracy in percent, with intervals, for the models that were run on the set.

    ``metric`` defaults to the first of judged accuracy, a judge's verdict, choice accuracy, concurrence, matching and
    character n-gram recall that a run has. If one model and task has several runs under the same conditions, the latest
    counts. Runs are matched to the set by the hash of its files. Raises DataError if no result belongs to a run on this
    set.
    """
    found = list(_runs(built, read_results(list(results))))
    if not found:
        raise DataError(
            f"{', '.join(map(str, results))}: no run on the set in {built.folder} is among the results",
            "runs are matched by the hash of the set's files: name runs with data.path of this folder",
        )
    latest = list({(r.model, r.condition, r.part, r.lang, r.leaf.task): r for r in found}.values())
    wanted = metric or next((m for m in _METRICS if any(r.leaf.score(m) is not None for r in latest)), None)
    if wanted is None:
        raise DataError(f"no run on the set in {built.folder} has one of {', '.join(_METRICS)}", "name one: --metric")
    tables = [_conditions(latest, wanted)]
    for part in dict.fromkeys(run.part for run in latest):
        tables += _languages([run for run in latest if run.part == part], part, wanted)
    for kind, title in (("q_type", "type of question"), ("crossdoc_type", "what the articles hold (0, 1, 2)")):
        by_kind = _kinds(latest, kind, title, wanted)
        if by_kind is not None:
            tables.append(by_kind)
    return tables


def _runs(built: BuiltSet, files: Sequence[ResultFile]) -> Iterator[_Run]:
    """Yield the runs on the set, ordered by date."""
    for file in files:
        for leaf in file.leaves.values():
            if built.hashes & set(_hashes(leaf.config.source)):
                data = leaf.config.data
                part, lang = str(data.get("setting") or ""), str(data.get("language") or "")
                yield _Run(file.model, _condition(leaf.config), part, lang, leaf, file)


def _hashes(source: Any) -> Iterator[str]:
    """Yield every text of 64 hexadecimal digits in a source, at any depth."""
    if isinstance(source, Mapping):
        for value in source.values():
            yield from _hashes(value)
    elif isinstance(source, str) and len(source) == 64:
        yield source


def _condition(config: TaskConfig) -> str:
    """Describe in words which documents the model was shown."""
    shown, subset = config.shows, config.setting("retrieval.given.subset") or "all"
    if shown == "nothing":
        return CLOSED
    if shown == "gold":
        name = ORACLE
    elif shown == "given":
        name = EVERYTHING if subset == "all" else f"given documents ({subset})"
    else:
        name = f"retrieved ({config.mode})"
    english = config.data.get("english")
    return f"{name}, in English: {', '.join(english)}" if english else name


def _order(conditions: Sequence[str]) -> list[str]:
    first = [CLOSED, ORACLE, EVERYTHING]
    there = dict.fromkeys(conditions)
    return [*(name for name in first if name in there), *(name for name in there if name not in first)]


def _cell(score: Estimate | None, run: _Run, metric: str) -> Cell:
    if score is None:
        reasons = ", ".join(f"{reason}: {n}" for reason, n in (run.leaf.unscored.get(metric) or {}).items())
        return Cell(None, f"no {metric}" + (f" ({reasons})" if reasons else ""), task=run.leaf.task)
    cell = percent_cell(score, run.leaf.task, metric)
    return cell if cell.value is not None else replace(cell, reason=score.reason or "no value")


def _questions(run: _Run) -> str:
    return " ".join(part for part in (run.part, run.lang) if part) or ALL_QUESTIONS


def _table(
    name: str,
    title: str,
    stub: Sequence[str],
    columns: Sequence[str],
    rows: Iterable[tuple[tuple[str, ...], Sequence[Cell]]],
    notes: Sequence[str] = (),
) -> Table:
    found = tuple(Row(key, _FROM, tuple(cells)) for key, cells in rows)
    return Table(name, title, tuple(stub), tuple(columns), found, 1, tuple(notes), intervals=True)


def _conditions(runs: Sequence[_Run], metric: str) -> Table:
    """Return XRAG's Table 3: one row per model and question type, one column per condition."""
    columns = _order([run.condition for run in runs])
    rows = {(_questions(run), run.model): [Cell(None, _NOT_RUN)] * len(columns) for run in runs}
    for run in runs:
        rows[_questions(run), run.model][columns.index(run.condition)] = _cell(run.leaf.score(metric), run, metric)
    title = f"Difficulty: {metric} in percent by what the model was shown"
    return _table("difficulty", title, ("questions", "model"), columns, rows.items())


# The condition and the model.
_Key = tuple[str, str]


def _languages(runs: Sequence[_Run], part: str, metric: str) -> list[Table]:
    """Return XRAG's Tables 4 and 5: one row per model and condition, one column per language, and the unweighted mean.

    If questions and documents differ in language, there is one row per question language and one column per document
    language, with unweighted means over same-language and cross-language pairs.
    """
    cells: dict[_Key, dict[str, Cell]] = {}
    members: dict[_Key, dict[str, _Run]] = {}
    for run in runs:
        key = (run.condition, run.model)
        for name, cell in _language_cells(run, metric):
            cells.setdefault(key, {})[name] = cell
            members.setdefault(key, {})[name] = run
    columns = sorted({name for found in cells.values() for name in found})
    order = _order([condition for condition, _ in cells])
    keys = sorted(cells, key=lambda key: (order.index(key[0]), key[1]))
    if any(_PAIR in name for name in columns):
        return [_by_pair(cells, keys, metric), _same_and_cross(cells, members, keys, metric)]
    averaged = [name for name in columns if part != "mono" or name != "en"]
    rows = {
        key: [cells[key].get(name, Cell(None, _NOT_RUN)) for name in columns]
        + [_average(cells[key], members[key], averaged, metric)]
        for key in keys
    }
    what = {"mono": " (monolingual retrieval)", "multi": " (multilingual retrieval)"}.get(part, "")
    title = f"{metric} in percent by language of the question{what}"
    note = "Avg.: plain mean over languages" + ("" if averaged == columns else ", without the English originals")
    name = f"difficulty by language: {part or 'all'}"
    return [_table(name, title, ("shown", "model"), [*columns, "Avg."], rows.items(), [note])]


def _by_pair(cells: Mapping[_Key, Mapping[str, Cell]], keys: Sequence[_Key], metric: str) -> Table:
    pairs = [name.split(_PAIR) for found in cells.values() for name in found if _PAIR in name]
    asked, documents = (sorted({pair[i] for pair in pairs}) for i in (0, 1))
    rows = {
        (*key, lang): [cells[key].get(f"{lang}{_PAIR}{other}", Cell(None, "no such question")) for other in documents]
        for key in keys
        for lang in asked
    }
    title = f"{metric} in percent by language of the question (rows) and of the document (columns)"
    return _table("difficulty by pair", title, ("shown", "model", "question"), documents, rows.items())


def _same_and_cross(
    cells: Mapping[_Key, Mapping[str, Cell]],
    members: Mapping[_Key, Mapping[str, _Run]],
    keys: Sequence[_Key],
    metric: str,
) -> Table:
    rows: list[tuple[_Key, list[Cell]]] = []
    for key in keys:
        pairs = [name for name in cells[key] if _PAIR in name]
        same = [name for name in pairs if len(set(name.split(_PAIR))) == 1]
        cross = [name for name in pairs if name not in same]
        rows.append((key, [_average(cells[key], members[key], names, metric) for names in (same, cross, pairs)]))
    title = f"{metric} in percent, plain means over pairs of languages"
    columns = ("same language", "cross-language", "all pairs")
    return _table("difficulty across languages", title, ("shown", "model"), columns, rows)


def _language_cells(run: _Run, metric: str) -> Iterator[tuple[str, Cell]]:
    """Yield the score of a task's language, or of every language (or pair) in it."""
    score = run.leaf.score(metric)
    if run.lang or score is None:
        yield run.lang or ALL_QUESTIONS, _cell(score, run, metric)
        return
    by = score.by if isinstance(score, MetricScore) else {}
    parts = by.get("pair") or by.get("query_lang")
    if parts is None:
        langs = list(run.leaf.scores.query_langs)
        parts = {langs[0] if len(langs) == 1 else ALL_QUESTIONS: score}
    for name, entry in parts.items():
        yield name, _cell(entry, run, metric)


def _average(cells: Mapping[str, Cell], runs: Mapping[str, _Run], columns: Sequence[str], metric: str) -> Cell:
    """Return the unweighted mean if every cell is present, with an interval from the sample files of the runs."""
    values = [value for name in columns if name in cells and (value := cells[name].value) is not None]
    missing = [name for name in columns if name not in cells or cells[name].value is None]
    if missing or not columns:
        return Cell(None, f"a mean needs all of its cells ({', '.join(missing) or 'there are no cells'})")
    n = sum(cells[name].n or 0 for name in columns) or None
    mean = sum(values) / len(values)
    rows = [(name, *row) for name in columns for row in _sampled(runs[name], name, metric)]
    if {name for name, _, _ in rows} != set(columns):
        return Cell(mean, n=n)
    from mrag_eval.metrics import stratified_bootstrap

    cell_of, values_of, groups_of = zip(*rows, strict=True)
    found = stratified_bootstrap(values_of, cell_of, groups=groups_of, n_resamples=RESAMPLES)
    if found.value is None or found.low is None or found.high is None or abs(_PERCENT * found.value - mean) > 1e-6:
        return Cell(mean, found.reason, n=n)
    return Cell(mean, None, _PERCENT * found.low, _PERCENT * found.high, n, metric=metric)


def _sampled(run: _Run, cell: str, metric: str) -> list[tuple[float | None, str]]:
    """Return value and group of the rows of a cell, if the run logged them."""
    path = run.file.samples(run.leaf.task, judged=False)
    records = {sample.record.row: sample.record for sample in open_samples(path)} if path is not None else {}
    return [
        (record.values.get(metric), record.resampled_with)
        for record in records.values()
        if run.lang or cell in _cells_of(record.cell)
    ]


def _cells_of(cell: Mapping[str, str]) -> tuple[str, ...]:
    return (cell.get("query_lang", ""), f"{cell.get('query_lang')}{_PAIR}{cell.get('doc_lang')}", ALL_QUESTIONS)


def _kinds(runs: Sequence[_Run], kind: str, title: str, metric: str) -> Table | None:
    """Return accuracy by class of the rows; None if no run has several classes."""
    found = []
    for run in runs:
        score = run.leaf.score(metric)
        if isinstance(score, MetricScore) and score.cells(kind):
            found.append((run, score.cells(kind)))
    if not found:
        return None
    columns = sorted({name for _, by in found for name in by})
    none = Cell(None, "no such question")
    rows = [
        (
            (run.condition, _questions(run), run.model),
            [_cell(by[name], run, metric) if name in by else none for name in columns],
        )
        for run, by in found
    ]
    stub = ("shown", "questions", "model")
    return _table(f"difficulty by {kind}", f"{metric} in percent by {title}", stub, columns, rows)
