"""Construction of a set in XRAG's format from dated news articles (XRAG, section 4 and Appendix B).

The steps: articles, entities of titles, related pairs, topic, summaries, simple pairs, linked questions, duplicates,
answers, models without documents, each article alone, human review, both filters for corrected answers, distractors,
translation and its review, rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrag_eval.building.review._review_outcome import review, sheet_to_write
from mrag_eval.building.steps._steps import Say, StepReport, read_records, run_steps, step_records
from mrag_eval.building.xrag._articles import article_files
from mrag_eval.building.xrag._xrag_datasheet import nothing_left, write_sheet_of
from mrag_eval.building.xrag._xrag_records import XragRow
from mrag_eval.building.xrag._xrag_rows import write_rows
from mrag_eval.building.xrag._xrag_settings import XragSettings
from mrag_eval.building.xrag._xrag_work import BEFORE_REVIEW, TRANSLATION, XragWork
from mrag_eval.models import AuxModel, get
from mrag_eval.platform import ConfigError
from mrag_eval.retrievers import Embedder


@dataclass(frozen=True)
class Built:
    """Result of a build: the set and its datasheet, or the sheet for human review."""

    rows: int
    reports: tuple[StepReport, ...]
    output: Path | None
    datasheet: Path
    sheet: Path | None = None


def build_xrag(
    corpus: Path,
    folder: Path,
    settings: XragSettings,
    *,
    review_sheets: Sequence[Path] = (),
    translation_sheets: Sequence[Path] = (),
    model_named: Callable[[str], AuxModel] = get,
    embedder: Embedder | None = None,
    say: Say = lambda line: None,
) -> Built:
    """Build the set in ``folder``: ``xrag.<split>.jsonl``, ``datasheet.md`` and ``.json``, the steps under ``steps``.

    A repeated call resumes the build; steps whose settings changed are repeated, with those after them.

    Args:
        corpus: a file or folder of articles, see :mod:`mrag_eval.building.xrag._articles`.
        review_sheets: the sheets for annotators. If one does not exist, it is written and the build ends; run again
            with the filled-in sheets to continue with the questions that passed.
        translation_sheets: the same for the translations, which are reviewed after the questions.
        model_named: returns a model by its name.
        embedder: replaces the embedder of the settings.

    Raises ConfigError and DataError before the first step for invalid input, and DataError at the end, in one line, if
    no row is left. The datasheet is written in either case.
    """
    files = article_files(corpus)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file, but the set needs a folder", "name another one: --output FOLDER")
    questions, translations = sheet_to_write(review_sheets), sheet_to_write(translation_sheets)
    new = questions or translations
    work = XragWork(files, folder, settings, review_sheets, translation_sheets, model_named, embedder, say)
    steps = work.steps()
    last = [step.name for step in steps].index(TRANSLATION if translations and not questions else BEFORE_REVIEW) + 1
    reports = run_steps(steps[:last] if new else steps, folder / "steps", say=say)
    if not reports[last - 1].made:
        sheet = write_sheet_of(folder, settings, work.facts(), reports, [], None)
        raise nothing_left(settings, reports, sheet, work.languages())
    if new:
        review([new], work.translations_to_review() if questions is None else work.questions_to_review())
        sheet = write_sheet_of(folder, settings, work.facts(), reports, [], work.outcome)
        return Built(0, tuple(reports), None, sheet, new)
    if review_sheets and work.outcome is None:  # the step already exists
        work.read_reviews()
    if translation_sheets and work.translations is None:
        work.read_translation_reviews()
    rows = list(read_records(step_records(folder / "steps", "rows"), XragRow))
    if not rows:
        sheet = write_sheet_of(folder, settings, work.facts(), reports, [], work.outcome)
        raise nothing_left(settings, reports, sheet, work.languages())
    output = folder / f"xrag.{settings.split}.jsonl"
    count, digest = write_rows(rows, output)
    facts = {**work.facts(), "file": {"name": output.name, "rows": count, "sha256": digest}}
    sheet = write_sheet_of(folder, settings, facts, reports, rows, work.outcome, work.translations)
    return Built(count, tuple(reports), output, sheet)
