"""Our rows in the mRAG paper's Table 4: numbers of questions and median lengths, by language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from mrag_eval.core import language_name
from mrag_eval.report._table import Cell, Row
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import Sample, read_samples
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._row_settings import STATED, fit

_TABLES = {"mkqa": "4 (MKQA)", "xor_tydi": "4 (XOR-TyDi QA)", "tydiqa": "4 (TyDi QA)"}
# Questions and answers do not depend on the mode, the model or the prompt.
_STATED = {**STATED, "data.split": None, "data.subset": "kilt"}


def length_rows(files: Sequence[ResultFile], paths: Sequence[Path]) -> dict[str, list[ModeRow]]:
    """Return, by table, a row for each language whose samples are next to the results.

    Every run asks a language the same questions, so one is read: the latest of those with the paper's questions, else
    the latest. Lengths are in Unicode characters; that of answers is the median over all reference answers.
    """
    found: dict[tuple[str, str], tuple[tuple[str, ...], ResultFile, LeafResult]] = {}
    for file in reversed(files):
        for leaf in file.leaves.values():
            table, lang = _TABLES.get(leaf.config.benchmark or ""), leaf.config.setting("data.language")
            if table is None or not lang or file.samples(leaf.task) is None:
                continue
            differs = fit(leaf.config, _STATED).differs
            known = found.get((table, str(lang)))
            if known is None or len(differs) < len(known[0]):
                found[table, str(lang)] = (differs, file, leaf)
    out: dict[str, list[ModeRow]] = {}
    for (table, lang), (differs, file, leaf) in sorted(found.items()):
        path = file.samples(leaf.task)
        if path is not None:
            source = f"this run, other settings: {'; '.join(differs)}" if differs else "this run"
            cells = _cells([*read_samples(path)], leaf.task)
            row = Row((language_name(lang),), source, cells)
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
