"""Review sheet for built questions, and its annotations (XRAG, section 4.3 and Figure 17).

For every question an annotator states whether it is natural, whether its documents answer it, whether the answer is
right (and if not, the correct one), and how much of it each document contains. A "no" to any of the first three ends
the work on that question.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mrag_eval.platform import DataError, SheetRow, read_sheet, write_sheet

Holds = Literal["sufficient", "some", "none"]
Verdict = Literal["accepted", "corrected", "unnatural", "unanswerable", "wrong"]
PASSING: tuple[Verdict, ...] = ("accepted", "corrected")

_YES, _NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
_HOLDS: tuple[Holds, ...] = ("sufficient", "some", "none")
_STEPS = ("natural", "answerable", "correct")
# Enough of the item's hash to distinguish two versions of one id.
_VERSION_DIGITS = 8


@dataclass(frozen=True, slots=True)
class ReviewDocument:
    """A source document of a question, as shown on the sheet."""

    text: str
    lang: str
    title: str = ""
    date: str = ""

    def shown(self) -> str:
        head = " · ".join(part for part in (f"[{self.lang}]", self.title, self.date) if part)
        return f"{head}\n\n{self.text}"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One question to review; ``kind`` is its type in words (``comparison``, ``factoid``)."""

    id: str
    question: str
    answer: str
    language: str
    documents: tuple[ReviewDocument, ...]
    kind: str = ""

    @property
    def version(self) -> str:
        """Return the version that an annotation of this item must have.

        A rebuilt question keeps its id, but its old annotations do not apply.
        """
        digest = hashlib.sha256()
        for text in (self.question, self.answer, *(document.shown() for document in self.documents)):
            digest.update(text.encode("utf-8", "backslashreplace") + b"\0")
        return digest.hexdigest()[:_VERSION_DIGITS]


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's labels for one item; None for questions after the one that ended the work on it."""

    item: str
    annotator: str
    natural: bool
    answerable: bool | None
    correct: bool | None
    correction: str
    holds: tuple[Holds | None, ...]
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        if not self.natural:
            return "unnatural"
        if not self.answerable:
            return "unanswerable"
        if self.correct:
            return "accepted"
        return "corrected" if self.correction else "wrong"


@dataclass(frozen=True)
class Annotations:
    """All annotations of one or more sheets.

    ``missing`` counts, by annotator, the items without a row or with an empty one. ``incomplete`` counts those with a
    partly filled row (they count as missing, too).
    """

    items: tuple[ReviewItem, ...]
    given: tuple[Annotation, ...]
    annotators: tuple[str, ...]
    missing: Mapping[str, int] = field(default_factory=dict)
    incomplete: Mapping[str, int] = field(default_factory=dict)


def _document_columns(n: int) -> list[str]:
    return [f"document_{i}" for i in range(1, n + 1)]


def write_review(path: Path, items: Sequence[ReviewItem]) -> None:
    """Write the sheet: one row per question, with its documents, and the columns to fill in at the end.

    Raises DataError if there is nothing to review, or if two items share an id.
    """
    if not items:
        raise DataError("there is no question to review: every item was already dropped", "see the yield table")
    twice = next((name for name, count in Counter(item.id for item in items).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two questions to review share the id '{twice}'", "give every question a unique id")
    documents = _document_columns(max(len(item.documents) for item in items))
    shown = ["id", "version", "language", "kind", "question", "answer", *documents]
    asked = ["annotator", *_STEPS, "corrected_answer", *(f"{name}_holds" for name in documents), "note"]
    rows: list[Mapping[str, object]] = [
        {
            "id": item.id,
            "version": item.version,
            "language": item.language,
            "kind": item.kind,
            "question": item.question,
            "answer": item.answer,
            **{name: document.shown() for name, document in zip(documents, item.documents, strict=False)},
        }
        for item in items
    ]
    write_sheet(path, [*shown, *asked], rows)


def read_reviews(paths: Sequence[Path], items: Sequence[ReviewItem]) -> Annotations:
    """Read one or more sheets.

    The annotator is named in the row's column ``annotator``, else by the file name of the sheet. Raises DataError
    naming sheet, row and column for an unknown id, a row of another version of the question, an invalid label, a
    correction of an answer marked correct, or an item that one annotator has twice; and if nothing is filled in at all.
    """
    by_id = {item.id: item for item in items}
    given: dict[tuple[str, str], Annotation] = {}
    where_given: dict[tuple[str, str], str] = {}
    incomplete: Counter[str] = Counter()
    annotators: dict[str, None] = {}
    for path in paths:
        for row in read_sheet(path, ("id", *_STEPS, "corrected_answer")):
            where = f"{path}, row {row.line}"
            item = _item(row, by_id, where)
            annotator = row.cells.get("annotator") or path.stem
            annotators[annotator] = None
            key = (item.id, annotator)
            if key in where_given:
                raise DataError(
                    f"{where}: '{item.id}' was already annotated by '{annotator}' ({where_given[key]})",
                    "keep one of the two rows, or name the second annotator in the column 'annotator'",
                )
            where_given[key] = where
            found = _annotation(row, item, annotator, where)
            if isinstance(found, Annotation):
                given[key] = found
            elif found:
                incomplete[annotator] += 1
    if not given:
        raise DataError(
            f"{', '.join(map(str, paths))}: no row is filled in",
            f"answer {', '.join(_STEPS)} with yes or no, and read the sheet again",
        )
    missing = {name: sum((item.id, name) not in given for item in items) for name in annotators}
    return Annotations(tuple(items), tuple(given.values()), tuple(annotators), missing, dict(incomplete))


def _item(row: SheetRow, items: Mapping[str, ReviewItem], where: str) -> ReviewItem:
    name = row.cells["id"]
    if name not in items:
        near = difflib.get_close_matches(name, items, n=1)  # there may be thousands of others
        raise DataError(
            f"{where}: '{name}' is not a question of this build" + (f"; did you mean '{near[0]}'?" if near else ""),
            "read the sheet that this build wrote",
        )
    version = row.cells.get("version", "")
    if version and version != items[name].version:
        raise DataError(
            f"{where}: '{name}' differs from the question on the sheet (version {version}, now {items[name].version})",
            "write a new sheet under another name",
        )
    return items[name]


def _annotation(row: SheetRow, item: ReviewItem, annotator: str, where: str) -> Annotation | bool:
    """Return the annotation; True for an incomplete one, False for an empty row."""
    cells = row.cells
    steps = {name: _yes_or_no(cells[name], name, where) for name in _STEPS}
    correction = cells["corrected_answer"]
    columns = [f"{name}_holds" for name in _document_columns(len(item.documents))]
    holds = tuple(_holds_label(cells.get(name, ""), name, where) for name in columns)
    if steps["correct"] and correction:
        raise DataError(
            f"{where}: the answer is called correct, and there is a corrected one", "correct: no, or no correction"
        )
    if not (correction or any(value is not None for value in steps.values()) or any(holds)):
        return False
    # the guideline stops at the first no; later labels are ignored
    for name in _STEPS:
        if steps[name] is None:
            return True
        if not steps[name]:
            break
    natural, answerable, correct = _until_no([steps[name] for name in _STEPS])
    reached = correct is not None
    return Annotation(
        item.id,
        annotator,
        bool(natural),
        answerable,
        correct,
        correction if reached else "",
        holds if reached else (None,) * len(holds),
        cells.get("note", ""),
    )


def _until_no(steps: Iterable[bool | None]) -> tuple[bool | None, ...]:
    out: list[bool | None] = []
    for step in steps:
        out.append(None if False in out else step)
    return tuple(out)


def _yes_or_no(value: str, column: str, where: str) -> bool | None:
    word = value.casefold().strip(" .")
    if not word:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise DataError(
        f"{where}, column '{column}': '{value}' is neither yes nor no", "write yes or no, or leave the cell empty"
    )


def _holds_label(value: str, column: str, where: str) -> Holds | None:
    word = value.casefold().strip(" .")
    found = next((label for label in _HOLDS if label == word), None)
    if word and found is None:
        raise DataError(
            f"{where}, column '{column}': '{value}' is not one of {', '.join(_HOLDS)}",
            "write one of them, or leave the cell empty",
        )
    return found
