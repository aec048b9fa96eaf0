"""Manual inspection of predictions, as in Table 8 of the mRAG paper: a sheet of drawn samples for people to fill in.

A prediction may have several categories; a person writes their numbers (or names) into one cell, 0 where there is
nothing to note. Every row has a mark that reveals lost, foreign or altered rows.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import points
from mrag_eval.platform import Count, DataError, Natural, write_sheet
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import models_beside, open_samples, sample_files, task_of

SYSTEM, DATA = "system performance", "data"
# The categories of Table 8 in its order, by their numbers in a sheet.
CATEGORIES: dict[int, tuple[str, str]] = {
    1: (SYSTEM, "retrieved documents do not contain the correct response"),
    2: (SYSTEM, "wrong response with correct retrieval"),
    3: (SYSTEM, "correct response with named entities in English"),
    4: (SYSTEM, "correct response with different transliteration of named entities"),
    5: (SYSTEM, "correct response with code switching"),
    6: (SYSTEM, "correct response with fluency issues"),
    7: (SYSTEM, "extra generated irrelevant text"),
    8: (DATA, "ambiguous question (time-changing fact)"),
    9: (DATA, "ambiguous question (other)"),
    10: (DATA, "typo in question"),
    11: (DATA, "fluency error in question"),
    12: (DATA, "labels incomplete"),
    13: (DATA, "wrong labels"),
    14: (DATA, "labels in English"),
}
NOTHING = "nothing to note"


@dataclass(frozen=True)
class Scheme:
    """The categories of a sheet: their numbers, and whether a row has exactly one of them (else several, or 0)."""

    name: str
    categories: Mapping[int, tuple[str, str]]
    single: bool = False

    @property
    def known(self) -> dict[int, tuple[str, str]]:
        """Return everything that a person may write."""
        return {**({} if self.single else {0: ("", NOTHING)}), **self.categories}


TABLE_8 = Scheme("", CATEGORIES)
COLUMNS: tuple[str, ...] = (
    *("draw", "language", "categories", "comment", "question", "reference answers", "reply", "passages", "scores"),
    *("model", "sample", "legend"),
)
# Columns that the person who fills in the sheet must not change, because the counts depend on them.
IDENTITY = ("draw", "language", "model", "sample")
_PASSAGE_CHARS = 1_500


@dataclass(frozen=True)
class DrawnSample:
    """One sample of the sheet."""

    model: str
    task: str
    row: str
    language: str
    sample: Sample

    @property
    def name(self) -> str:
        """Return task and row as one name: a spreadsheet may rewrite an id alone that looks like a number or a date."""
        return f"{self.task}: {self.row}".strip()

    @property
    def key(self) -> tuple[str, ...]:
        """Return the sample's identity in the sheet, in the order of :data:`IDENTITY`."""
        return self.language, self.model, self.name


def write_inspection(
    paths: Sequence[Path],
    out: Path,
    *,
    n: Count = 50,
    seed: Natural = 0,
    per_language: bool = False,
    wrong: bool = False,
    task: str | None = None,
    scheme: Scheme = TABLE_8,
) -> list[DrawnSample]:
    """Draw predictions from the sample files at ``paths`` and write the sheet; see :func:`draw`.

    Args:
        n: Number of predictions to draw, the same number from each language.
        seed: Random seed of the draw.
        per_language: Draw --n predictions from each language, as in the mRAG paper.
        wrong: Draw only predictions that are scored as wrong.
        task: Draw only from this task.

    Raises DataError if ``out`` exists: somebody may have filled it in.
    """
    if out.exists():
        raise DataError(f"{out}: is already there and may have been filled in", "name another file, or remove it")
    drawn = draw(paths, n=n, seed=seed, per_language=per_language, wrong=wrong, task=task)
    total, seal = len(drawn), _digest(*("\x1f".join(key) for key in sorted(one.key for one in drawn)))
    legend = [f"{number}: {name}" for number, (_, name) in scheme.known.items()]
    rows = [_cells(one, draw_mark(i, total, seal, one.key, scheme)) for i, one in enumerate(drawn, 1)]
    for i, cells in enumerate(rows):
        cells["legend"] = "\n".join(legend[i:]) if i == total - 1 else legend[i] if i < len(legend) else ""
    write_sheet(out, COLUMNS, rows)
    return drawn


def draw(
    paths: Sequence[Path],
    *,
    n: int = 50,
    seed: int = 0,
    per_language: bool = False,
    wrong: bool = False,
    task: str | None = None,
) -> list[DrawnSample]:
    """Draw ``n`` predictions, spread evenly over languages of questions; a language with fewer contributes all it has.

    Args:
        per_language: ``n`` of each language, as in the paper (50 in each of three).
        wrong: only predictions that a metric of 0 and 1 calls wrong.
        task: only this task.

    The draw depends on the seed and the rows, not on the order of files. Raises DataError if nothing can be drawn.
    """
    by_language: dict[str, list[DrawnSample]] = defaultdict(list)
    for one in _candidates(paths, wrong, task):
        by_language[one.language].append(one)
    if not by_language:
        wanted = f" of the task '{task}'" if task else ""
        raise DataError(
            f"{', '.join(map(str, paths))}: no {'wrong ' if wrong else ''}prediction{wanted} to draw from",
            "leave out --wrong or --task, or name other samples",
        )
    sizes = {language: len(found) for language, found in by_language.items()}
    share = {language: min(n, size) for language, size in sizes.items()} if per_language else _shares(sizes, n, seed)
    out = []
    for language in sorted(by_language):
        # one generator per language, so that another language's rows do not change this one's draw
        rng = np.random.default_rng([seed, int.from_bytes(hashlib.sha256(language.encode()).digest()[:4], "big")])
        pool = sorted(by_language[language], key=lambda one: one.key)
        out += [pool[i] for i in rng.permutation(len(pool))[: share[language]]]
    return out


def _shares(sizes: dict[str, int], n: int, seed: int) -> dict[str, int]:
    """Return the number drawn of each language. They differ by one at most, and the seed decides who gets one more."""
    share = dict.fromkeys(sizes, 0)
    order = [sorted(sizes)[i] for i in np.random.default_rng(seed).permutation(len(sizes))]
    left = min(n, sum(sizes.values()))
    while left:
        for language in order:
            if left and share[language] < sizes[language]:
                share[language] += 1
                left -= 1
    return share


def _candidates(paths: Sequence[Path], wrong: bool, task: str | None) -> list[DrawnSample]:
    out = []
    for path, model in models_beside(sample_files(paths)).items():
        name = task_of(path)
        if task is not None and name != task:
            continue
        for sample in open_samples(path):
            record = sample.record
            if not wrong or record.right is False:
                out.append(DrawnSample(model, name, record.row, record.query_lang, sample))
    return out


def _cells(one: DrawnSample, mark: str) -> dict[str, Any]:
    sample, doc = one.sample, one.sample.doc
    return {
        "draw": mark,
        "language": one.language,
        "question": question_text(sample),
        "reference answers": "\n".join(doc.answers),
        "reply": sample.reply,
        "passages": passages_text(sample),
        "scores": "; ".join(f"{name} {points(value)}" for name, value in sample.record.values.items()),
        "model": one.model,
        "sample": one.name,
    }


def question_text(sample: Sample) -> str:
    """Return a question with its options."""
    options = [f"{chr(65 + i)}. {choice}" for i, choice in enumerate(sample.doc.choices or ())]
    return "\n".join([sample.doc.query, *options])


def passages_text(sample: Sample, *, gold: bool = False) -> str:
    """Return the passages that the model was shown, cut; with ``gold`` only the supporting ones, if any is known."""
    shown = [hit for hit in sample.passages if hit.is_gold] if gold else []
    most = None if gold else _PASSAGE_CHARS
    numbered = enumerate(shown or sample.passages, 1)
    return "\n\n".join(f"[{i}] ({hit.lang}) {hit.title}\n{hit.text[:most]}" for i, hit in numbered)


def draw_mark(number: int, total: int, seal: str, key: tuple[str, ...], scheme: Scheme = TABLE_8) -> str:
    """Return ``number of total seal-check``; the check covers all of it, the row's identity and the categories."""
    check = _digest(str(number), str(total), seal, *key, *filter(None, [scheme.name]))
    return f"{number} of {total} {seal}-{check}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1e".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:8]
