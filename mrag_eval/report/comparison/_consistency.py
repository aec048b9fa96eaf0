"""Consistency of a model's answers across languages, for any task with parallel questions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

from mrag_eval.config import Measurement
from mrag_eval.core import pipe_table, score_text
from mrag_eval.metrics import Estimate
from mrag_eval.platform import DataError, number_of
from mrag_eval.report.files._answers import AnswerSheet, GivenAnswer, read_answers
from mrag_eval.report.files._leaves import labelled, variants
from mrag_eval.report.files._systems import PARTS, are_parts, between_parts

By = Literal["question", "group", "row"]


@dataclass(frozen=True)
class Consistency:
    """The consistency of one model, benchmark and mode.

    ``answers`` and ``correctness`` are estimates with intervals over questions. ``questions`` were answered in two
    languages or more, ``single`` in one. ``ambiguous`` ones occur twice in one language, so they are not versions of
    one question. ``unread`` answers agree with nothing. ``parts``: task -> how many of its rows were run, if not all.
    ``failed`` counts rows without an answer by reason. ``differs``: setting -> values, of wording that
    is not the same in all tasks. ``variant`` names the settings in which runs of the same model,
    benchmark and mode differ, which are not pooled.
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
    failed: Mapping[str, int]
    differs: Mapping[str, str]
    variant: str = ""


def consistency(paths: Sequence[Path], *, by: By = "question") -> list[Consistency]:
    """Return the share of agreeing language pairs, averaged over questions, as BordIRlines' Cst CS over territories.

    Two answers agree if they choose the same option, or are equal once normalised. Two correctnesses agree if both are
    right or both wrong. Tasks of one model, benchmark, mode and
    settings are pooled (one task per language). ``by`` decides what
    versions of a question share: their ``question_id`` (their ``group_id`` if the benchmark has no question ids), their
    ``group_id``, or their row id. Questions of one group (on one paragraph) are resampled together.

    Raises DataError if no question is asked in two languages.
    """
    cells: dict[tuple[str, str, str, str], list[list[AnswerSheet]]] = defaultdict(list)
    for sheet in read_answers(paths):
        # BordIRlines has several forms and retrievers of one mode
        form = sheet.task if sheet.task.startswith("bordirlines_") else ""
        systems = cells[sheet.model, sheet.benchmark, sheet.mode, form]
        here = sheet.measured
        # of results without a record of what was measured, no more is known than model and mode
        own = next((s for s in systems if here is s[0].measured is None or are_parts(here, s[0].measured)), None)
        if own is None:
            systems.append([sheet])
        else:
            own.append(sheet)
    found = []
    for cell, systems in cells.items():
        names = variants([system[0].measured for system in systems], [None] * len(systems), allowed=PARTS)
        named = zip(systems, names, strict=True)
        found += [replace(_consistency(cell, sheets, by), variant=name) for sheets, name in named]
    if not any(entry.questions for entry in found):
        apart = [f"{entry.model}, {_mode(entry)}" for entry in found] if len(found) > 1 else []
        raise DataError(
            "no question is answered in two languages" + (f" by one of {' | '.join(apart)}" if apart else ""),
            "name the runs of several languages; --by row where versions share their row's id",
        )
    return found


def _differing(records: Sequence[Measurement]) -> dict[str, str]:
    found: dict[str, str] = {}
    for record in records[1:]:
        found = between_parts(records[0], record) | found
    return found


def _consistency(cell: tuple[str, str, str, str], sheets: Sequence[AnswerSheet], by: By) -> Consistency:
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
    groups = [rows[0].group for rows in parallel]
    model, benchmark, mode, form = cell
    return Consistency(
        model,
        form or benchmark,
        mode,
        tuple(sorted({given.language for rows in parallel for given in rows})),
        interval_for(same, groups=groups),
        interval_for(right, groups=groups),
        len(parallel),
        single,
        len(ambiguous),
        sum(given.key is None for rows in parallel for given in rows),
        {sheet.task: sheet.part for sheet in sheets if sheet.part},
        dict(sum((Counter(sheet.failed) for sheet in sheets), Counter())),
        _differing([sheet.measured for sheet in sheets if sheet.measured is not None]),
    )


def shown_consistency(found: Sequence[Consistency]) -> str:
    """Return a Markdown table, with figures times 100."""
    head = ["model", "task", "mode", "languages", "same answer", "same correctness", "questions", "left out"]
    rows = []
    for entry in found:
        left = [f"{entry.single} in one language"] if entry.single else []
        left += [f"{number_of(n, 'row')} without an answer ({why})" for why, n in entry.failed.items()]
        left += [f"{entry.ambiguous} twice in one language"] if entry.ambiguous else []
        rows.append(
            [
                entry.model,
                entry.benchmark,
                _mode(entry),
                str(len(entry.languages)),
                score_text(entry.answers.value, entry.answers.low, entry.answers.high),
                score_text(entry.correctness.value, entry.correctness.low, entry.correctness.high),
                f"{entry.questions:,}",
                ", ".join([*left, *(labelled(task, part) for task, part in entry.parts.items())]),
            ]
        )
    lines = [
        f"{entry.model}, {entry.benchmark}, {_mode(entry)}: differ in {key}: {values}"
        for entry in found
        for key, values in entry.differs.items()
    ]
    return "\n".join([pipe_table(head, rows, "llllrrrl"), *([""] if lines else []), *lines])


def _mode(entry: Consistency) -> str:
    return f"{entry.mode} ({entry.variant})" if entry.variant else entry.mode
