"""Consistency of a model's answers across languages, for any task with parallel questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from mrag_eval.core import pipe_table, score_text
from mrag_eval.metrics import Estimate
from mrag_eval.platform import DataError
from mrag_eval.report.files._answers import AnswerSheet, GivenAnswer, read_answers
from mrag_eval.report.files._leaves import labelled

By = Literal["question", "group", "row"]


@dataclass(frozen=True)
class Consistency:
    """The consistency of one model, benchmark and mode.

    ``answers`` and ``correctness`` are estimates with intervals over questions. ``questions`` were answered in two
    languages or more, ``single`` in one. ``ambiguous`` ones occur twice in one language, so they are not versions of
    one question. ``unread`` answers agree with nothing. ``parts``: task -> how many of its rows were run, if not all.
    """

    model: str
    benchmark: str
    mode: str
    languages: tuple[str, ...]
    answers: Estimate
    correctness: Estimate
    questions: int
    single: int
    ambiguous: int
    unread: int
    parts: Mapping[str, str]


def consistency(paths: Sequence[Path], *, by: By = "question", seed: int = 0) -> list[Consistency]:
    """Return the share of agreeing language pairs, averaged over questions, as BordIRlines' Cst CS over territories.

    Two answers agree if they choose the same option, or are equal once normalised. Two correctnesses agree if both are
    right or both wrong. Tasks of one model, benchmark and mode are pooled (one task per language). ``by`` decides what
    versions of a question share: their ``question_id`` (their ``group_id`` if the benchmark has no question ids), their
    ``group_id``, or their row id. Questions of one group (on one paragraph) are resampled together.

    Raises DataError if no question is asked in two languages.
    """
    cells: dict[tuple[str, str, str, str], list[AnswerSheet]] = defaultdict(list)
    for sheet in read_answers(paths):
        cells[sheet.model, sheet.benchmark, sheet.mode, _form(sheet.task)].append(sheet)
    found = [_consistency(cell, sheets, by, seed) for cell, sheets in cells.items()]
    if not any(entry.questions for entry in found):
        raise DataError(
            "no question is answered in two languages",
            "name the runs of several languages; --by row where versions share their row's id",
        )
    return found


def _form(task: str) -> str:
    """Return the key that separates runs of one benchmark and mode: BordIRlines' forms and retrievers."""
    return task if task.startswith("bordirlines_") else ""


def _consistency(cell: tuple[str, str, str, str], sheets: Sequence[AnswerSheet], by: By, seed: int) -> Consistency:
    from mrag_eval.metrics import interval_for

    versions: dict[str, list[GivenAnswer]] = defaultdict(list)
    for given in (given for sheet in sheets for given in sheet.answers):
        versions[getattr(given, by)].append(given)
    ambiguous = {name for name, rows in versions.items() if len({g.language for g in rows}) < len(rows)}
    single = sum(len(rows) == 1 for rows in versions.values())
    parallel = [rows for name, rows in versions.items() if len(rows) > 1 and name not in ambiguous]
    same, right = [], []
    for rows in parallel:
        pairs = list(combinations(rows, 2))
        same.append(sum(a.key is not None and a.key == b.key for a, b in pairs) / len(pairs))
        known = [a.correct == b.correct for a, b in pairs if a.correct is not None and b.correct is not None]
        right.append(sum(known) / len(known) if known else None)
    units = [rows[0].group for rows in parallel]
    groups = units if len(set(units)) < len(units) else None
    model, benchmark, mode, form = cell
    return Consistency(
        model,
        form or benchmark,
        mode,
        tuple(sorted({given.language for rows in parallel for given in rows})),
        interval_for(same, groups=groups, seed=seed),
        interval_for(right, groups=groups, seed=seed),
        len(parallel),
        single,
        len(ambiguous),
        sum(given.key is None for rows in parallel for given in rows),
        {sheet.task: sheet.part for sheet in sheets if sheet.part},
    )


def shown_consistency(found: Sequence[Consistency]) -> str:
    """Return a Markdown table, with figures times 100."""
    head = ["model", "task", "mode", "languages", "same answer", "same correctness", "questions", "left out"]
    rows = []
    for entry in found:
        left = [f"{entry.single} in one language"] if entry.single else []
        left += [f"{entry.ambiguous} twice in one language"] if entry.ambiguous else []
        rows.append(
            [
                entry.model,
                entry.benchmark,
                entry.mode,
                str(len(entry.languages)),
                score_text(entry.answers.value, entry.answers.low, entry.answers.high),
                score_text(entry.correctness.value, entry.correctness.low, entry.correctness.high),
                f"{entry.questions:,}",
                ", ".join([*left, *(labelled(task, part) for task, part in entry.parts.items())]),
            ]
        )
    return pipe_table(head, rows, "llllrrrl")
