"""Our rows in the mRAG paper's Table 4: numbers of questions and median lengths, by language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from mrag_eval.core import is_language, language_name
from mrag_eval.report._table import Cell, Row
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import Sample, read_samples
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._row_runs import nearest_runs
from mrag_eval.report.tables._row_settings import OF_A_RUN, source_of

_TABLES = {"mkqa": "4 (MKQA)", "xor_tydi": "4 (XOR-TyDi QA)", "tydiqa": "4 (TyDi QA)"}


def length_rows(files: Sequence[ResultFile], paths: Sequence[Path]) -> dict[str, list[ModeRow]]:
    """Return, by table, a row for each language whose samples are next to the results.

    Every run asks a language the same questions, so one is read: the latest of those with the paper's questions, else
    the latest. Lengths are in Unicode characters; that of answers is the median over all reference answers.
    """

    def place(file: ResultFile, leaf: LeafResult) -> tuple[str, str] | None:
        table, lang = _TABLES.get(leaf.config.benchmark or ""), leaf.config.setting("data.language")
        return (table, str(lang)) if table and lang and file.samples(leaf.task) is not None else None

    out: dict[str, list[ModeRow]] = {}
    for (table, lang), run in sorted(nearest_runs(files, place, OF_A_RUN)[0].items()):
        path = run.file.samples(run.leaf.task)
        if path is not None:
            cells = _cells([*read_samples(path)], run.leaf.task)
            row = Row((language_name(lang) if is_language(lang) else lang,), source_of(run.differs), cells)
            out.setdefault(table, []).append(ModeRow(row, ()))
    return out


def _cells(samples: Sequence[Sample], task: str) -> tuple[Cell, ...]:
    questions = [len(sample.doc.query) for sample in samples]
    answers = [len(answer) for sample in samples for answer in sample.doc.answers]
    return (
        Cell(len(questions), task=task, digits=0),
        Cell(median(questions) if questions else None, None if questions else "no question", task=task),
        Cell(median(answers) if answers else None, None if answers else "no reference answer", task=task),
    )
