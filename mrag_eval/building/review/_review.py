"""The sheet on which people check built questions, and what they wrote on it (XRAG, section 4.3 and Figure 17).

For every question an annotator says whether it is natural, whether its documents answer it, whether the answer is
right (and if not, what is), and how much of it each document holds. Each of the first three ends the work on a question
when it is answered with no.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mrag_eval.core import DataError, SheetRow, read_sheet, write_sheet

Holds = Literal["sufficient", "some", "none"]
Verdict = Literal["accepted", "corrected", "unnatural", "unanswerable", "wrong"]
PASSING: tuple[Verdict, ...] = ("accepted", "corrected")

_YES, _NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
_HOLDS: tuple[Holds, ...] = ("sufficient", "some", "none")
_STEPS = ("natural", "answerable", "correct")
# Enough of the item's hash to tell two versions of one id apart.
_VERSION_DIGITS = 8


@dataclass(frozen=True, slots=True)
class ReviewDocument:
    """A document that a question was made from, as it stands on the sheet."""

    text: str
    lang: str
    title: str = ""
    date: str = ""

    def shown(self) -> str:
        head = " · ".join(part for part in (f"[{self.lang}]", self.title, self.date) if part)
        return f"{head}\n\n{self.text}"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One question to be checked; ``kind`` is its type in words (``comparison``, ``factoid``)."""

    id: str
    question: str
    answer: str
    language: str
    documents: tuple[ReviewDocument, ...]
    kind: str = ""

    @property
    def version(self) -> str:
        """What an annotation of this item must bear: a rebuilt question keeps its id, but not what was said of it."""
        digest = hashlib.sha256()
        for text in (self.question, self.answer, *(document.shown() for document in self.documents)):
            digest.update(text.encode("utf-8", "backslashreplace") + b"\0")
        return digest.hexdigest()[:_VERSION_DIGITS]


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one annotator says of one item; None where the work on it had ended before."""

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
    """All annotations of some sheets.

    ``missing`` counts, by annotator, the items that have no row or an empty one; ``incomplete`` those whose row ends
    before its end (they count as missing, too).
    """

    items: tuple[ReviewItem, ...]
    given: tuple[Annotation, ...]
    annotators: tuple[str, ...]
    missing: Mapping[str, int] = field(default_factory=dict)
    incomplete: Mapping[str, int] = field(default_factory=dict)


def _document_columns(n: int) -> list[str]:
    return [f"document_{i}" for i in range(1, n + 1)]


def write_review(path: Path, items: Sequence[ReviewItem]) -> None:
    """Write the sheet: a row a question, its documents beside it, the columns to fill in at the end.

    Raises DataError where there is nothing to review, and for an id that two items share.
    """
    if not items:
        raise DataError("there is no question to review: every item was dropped before", "look at the yield table")
    twice = next((name for name, count in Counter(item.id for item in items).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two questions to review have the id '{twice}'", "give every question an id of its own")
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
    """Read one or several sheets back.

    An annotator is who stands in the row's column ``annotator``, else the name of the sheet's file. Raises DataError
    naming sheet, row and column for an id that is no item's, a row of another version of the question, a label that is
    none, a correction of an answer that is called right, and an item that one annotator has twice; and where nothing
    is filled in at all.
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
                    f"{where}: '{item.id}' was annotated by '{annotator}' before ({where_given[key]})",
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
        near = difflib.get_close_matches(name, items, n=1)  # of all the others there may be thousands
        raise DataError(
            f"{where}: '{name}' is no question of this build" + (f"; did you mean '{near[0]}'?" if near else ""),
            "read the sheet that this build wrote",
        )
    version = row.cells.get("version", "")
    if version and version != items[name].version:
        raise DataError(
            f"{where}: '{name}' is another question now than the one on the sheet (version {version}, now "
            f"{items[name].version})",
            "write the sheet anew, under another name",
        )
    return items[name]


def _annotation(row: SheetRow, item: ReviewItem, annotator: str, where: str) -> Annotation | bool:
    """The annotation; True for one that was begun, False for an empty row."""
    cells = row.cells
    steps = {name: _yes(cells[name], name, where) for name in _STEPS}
    correction = cells["corrected_answer"]
    columns = [f"{name}_holds" for name in _document_columns(len(item.documents))]
    holds = tuple(_held(cells.get(name, ""), name, where) for name in columns)
    if steps["correct"] and correction:
        raise DataError(
            f"{where}: the answer is called correct, and there is a corrected one", "correct: no, or no correction"
        )
    if not (correction or any(value is not None for value in steps.values()) or any(holds)):
        return False
    # the guideline stops at the first no; what stands behind it is not looked at
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


def _yes(value: str, column: str, where: str) -> bool | None:
    word = value.casefold().strip(" .")
    if not word:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise DataError(
        f"{where}, column '{column}': '{value}' is neither yes nor no", "write yes or no, or leave the cell empty"
    )


def _held(value: str, column: str, where: str) -> Holds | None:
    word = value.casefold().strip(" .")
    found = next((label for label in _HOLDS if label == word), None)
    if word and found is None:
        raise DataError(
            f"{where}, column '{column}': '{value}' is none of {', '.join(_HOLDS)}",
            "write one of them, or leave the cell empty",
        )
    return found
