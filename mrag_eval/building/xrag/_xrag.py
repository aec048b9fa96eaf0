"""Construction of a set in XRAG's format from dated news articles (XRAG, section 4 and Appendix B).

The steps: articles, entities of titles, related pairs, topic, summaries, simple pairs, linked questions, duplicates,
answers, models without documents, each article alone, human review, both filters for corrected answers, distractors,
translation and its review, rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.building.review._review_outcome import Review, review, sheet_to_write
from mrag_eval.building.steps._steps import Say, StepReport, read_records, run_steps, step_records, write_datasheet
from mrag_eval.building.xrag._articles import article_files
from mrag_eval.building.xrag._xrag_records import XragRow
from mrag_eval.building.xrag._xrag_rows import write_rows
from mrag_eval.building.xrag._xrag_settings import XragSettings
from mrag_eval.building.xrag._xrag_work import BEFORE_REVIEW, TRANSLATION, XragWork
from mrag_eval.core import pipe_table
from mrag_eval.models import AuxModel, get
from mrag_eval.platform import ConfigError, DataError
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


_CROSSDOC = {0: "one article suffices", 1: "one suffices, the other supports it", 2: "each holds part"}


def write_sheet_of(
    folder: Path,
    settings: XragSettings,
    facts: Mapping[str, Any],
    reports: Sequence[StepReport],
    rows: Sequence[XragRow],
    review: Review | None,
    translations: Review | None = None,
) -> Path:
    """Write the datasheet of a build, finished or not; return the path of the Markdown file."""
    sections: dict[str, str] = {}
    details: dict[str, Any] = {}
    if rows:
        sections["Rows"] = _row_table(rows)
        kinds = Counter(row.crossdoc_type for row in rows)
        counts = [(str(kind), meaning, f"{kinds[kind]:,}") for kind, meaning in _CROSSDOC.items()]
        sections["What the articles hold"] = pipe_table(("crossdoc_type", "", "rows"), counts, "rlr")
    if review is not None:
        details["people"] = review.as_dict()
        sections["People"] = _listed(review)
    elif not settings.models.closed_book:
        sections["Not checked"] = "No model was asked whether it knows the answers without documents (closed_book)."
    if translations is not None:
        details["people_on_translations"] = translations.as_dict()
        sections["People on translations"] = _listed(translations)
    facts = {**facts, "settings": settings.model_dump(mode="json", exclude={"title", "models", "prompts"})}
    return write_datasheet(folder, settings.title, facts, reports, sections=sections, details=details)


def _listed(review: Review) -> str:
    return "\n".join(f"- {' '.join(line.split())}" for line in review.lines())


def _row_table(rows: Sequence[XragRow]) -> str:
    """Return the number of rows by setting, language and question type, as in Table 2 of XRAG."""
    types = sorted({row.q_type for row in rows})
    lines = []
    for setting, language in sorted({(row.setting, row.language) for row in rows}):
        here = [row for row in rows if (row.setting, row.language) == (setting, language)]
        counts = Counter(row.q_type for row in here)
        corrected = sum(row.a_type == "corrected" for row in here)
        numbers = (len(here), *(counts[kind] for kind in types), corrected)
        lines.append((setting, language, *(f"{n:,}" for n in numbers)))
    return pipe_table(("setting", "language", "rows", *types, "corrected"), lines, "ll" + "r" * (len(types) + 2))


def nothing_left(
    settings: XragSettings, reports: Sequence[StepReport], sheet: Path, languages: Mapping[str, int]
) -> DataError:
    """Return the error for an empty set: the step that dropped everything, its reasons, and the next step."""
    report = next((report for report in reports if not report.made), reports[-1])
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in report.dropped.items()) or "nothing came in"
    if report.name == "pairs":
        if report.dropped.get("pair without older articles"):
            return DataError(
                f"no pair of articles has enough older articles to distract from it ({reasons})",
                "give older articles on the same topics, or lower distractors.count or distractors.older_days",
            )
        there = ", ".join(f"{lang} {count:,}" for lang, count in languages.items()) or "none"
        absent = [lang for lang in ("en", *settings.languages) if lang not in languages]
        why = f"no two articles are related (articles by language: {there}"
        if "multi" in settings.settings and absent:
            return DataError(
                f"{why}; none in {', '.join(absent)})",
                "add articles in those languages, or leave out what needs them: settings: [mono], languages: [...]",
            )
        return DataError(f"{why})", "widen pairs.max_days, lower pairs.shared, or give a larger corpus")
    steps = {
        "articles": "see what the corpus holds: articles.keys, articles.min_words, articles.since, languages",
        "closed_book": "use newer articles than the models of models.closed_book know",
        "closed_book_corrected": "the models of models.closed_book know the corrected answers",
        "review": "the sheet lets no question pass",
        "translation_review": "the sheet lets no translation pass",
        "distractors": "give older articles on the same topics, or lower distractors.count or distractors.older_days",
    }
    step = steps.get(report.name, f"the items dropped: {sheet.parent / 'steps'}/*_{report.name}.dropped.jsonl")
    return DataError(f"no row is left: step '{report.name}' took {report.taken:,} in and dropped all ({reasons})", step)
