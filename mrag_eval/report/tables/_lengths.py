"""Our rows in the mRAG paper's Table 4: numbers of questions, and median lengths of texts, by language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from mrag_eval.core import named_language
from mrag_eval.datasets import answers_of_the_file
from mrag_eval.report._table import Cell
from mrag_eval.report.files._passage_lengths import PassageLengths, read_lengths
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import Samples, open_samples
from mrag_eval.report.tables._by_mode import ModeRow
from mrag_eval.report.tables._layout_cells import own_row
from mrag_eval.report.tables._requirements import chunker_name, edition
from mrag_eval.report.tables._row_runs import nearest_runs
from mrag_eval.report.tables._row_settings import OF_A_RUN

_WIKIPEDIA = "4 (Wikipedia)"
# The paper's passages: of KILT in English, of one dump in the other languages.
_CORPORA, _OTHER, _CHUNKER = {"en": "KILT"}, "Wikipedia 20231101", "words 100"
_TABLES = {"mkqa": "4 (MKQA)", "xor_tydi": "4 (XOR-TyDi QA)", "tydiqa": "4 (TyDi QA)"}


def length_rows(files: Sequence[ResultFile], paths: Sequence[Path]) -> dict[str, list[ModeRow]]:
    """Return, by table, a row for each language whose samples are next to the results, or whose passages were measured.

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
            # the loader adds words for yes and no in the question's language, which are not in the file
            own = answers_of_the_file if run.leaf.config.benchmark == "xor_tydi" else None
            cells = _cells(open_samples(path), run.leaf.task, own)
            row = own_row((named_language(lang),), cells, run.differs, [run.leaf])
            out.setdefault(table, []).append(ModeRow(row, ()))
    measured = [row for found in read_lengths(paths) for row in _passages(found)]
    return out | ({_WIKIPEDIA: measured} if measured else {})


def _passages(found: PassageLengths) -> Iterator[ModeRow]:
    """Yield the median length of an index's passages in each language, and how they are not the paper's."""
    for lang, length in sorted(found.characters.items()):
        wanted = _CORPORA.get(lang, _OTHER)
        corpus = " and ".join(edition(lang, one) for one in found.sources.get(lang, "own").split("; "))
        chunker = chunker_name(found.chunker)
        differs = [f"corpus={corpus}, not {wanted}"] if corpus != wanted else []
        differs += [f"a part of the source in {lang}"] if lang in found.parts else []
        differs += [f"chunker={chunker or 'none'}, not {_CHUNKER}"] if chunker != _CHUNKER else []
        cell = Cell(length, n=found.passages[lang])
        yield ModeRow(own_row((named_language(lang),), (cell,), differs, source=f"index '{found.index}'"), ())


def _cells(samples: Samples, task: str, own: Callable[[Sequence[str], str], Sequence[str]] | None) -> tuple[Cell, ...]:
    questions: list[int] = []
    answers: list[int] = []
    for doc in (sample.doc for sample in samples):
        questions.append(len(doc.query))
        answers += map(len, doc.answers if own is None else own(doc.answers, doc.query_lang))
    return (
        Cell(len(questions), task=task, digits=0),
        Cell(median(questions) if questions else None, None if questions else "no question", task=task),
        Cell(median(answers) if answers else None, None if answers else "no reference answer", task=task),
    )
