"""The answers in a run's samples, in a form that can be compared over languages, modes and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mrag_eval.config import Measurement, mode_named
from mrag_eval.core import CUT_OFF, failed_in
from mrag_eval.metrics import UNKNOWN_CONTROLLER
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import (
    config_beside,
    models_beside,
    open_samples,
    part_beside,
    result_beside,
    sample_files,
    task_of,
)
from mrag_eval.scoring import ANSWERED


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer. ``key`` is an option's index, or the normalised text; None if no option could be read.

    ``shown`` is the answer to read. ``correct`` is None if it is not known. Rows of one ``group`` are resampled
    together. ``question`` identifies versions of one question: its ``question_id`` if the benchmark has one, else the
    group.
    """

    row: str
    group: str
    question: str
    language: str
    key: str | None
    shown: str
    correct: bool | None


@dataclass(frozen=True)
class AnswerSheet:
    """The answers of one task of one run; ``mode`` is its IR mode, ``benchmark`` its benchmark.

    ``part`` says how many of the rows were run, if not all. ``failed`` counts the rows without an answer by reason.
    ``measured`` is the record of what was measured, None in results from before such records.
    """

    model: str
    task: str
    mode: str
    benchmark: str
    path: Path
    answers: tuple[GivenAnswer, ...]
    part: str | None = None
    failed: Mapping[str, int] = field(default_factory=dict)
    measured: Measurement | None = None


def read_answers(paths: Sequence[Path]) -> list[AnswerSheet]:
    """Return the answers in every sample file at ``paths``. Raise DataError for a file without answers."""
    out = []
    for path, model in models_beside(sample_files(paths)).items():
        config, task = config_beside(path), task_of(path)
        # an answer that failed is none
        rows = [(sample, failed_in(sample.record.failures, ANSWERED)) for sample in open_samples(path)]
        answers = tuple(_given(sample) for sample, failure in rows if failure is None)
        failed = dict(Counter(failure.why for _, failure in rows if failure is not None))
        run = result_beside(path)
        measured = None if run is None else run.measurement(task)
        benchmark = config.benchmark or task
        mode, part = config.mode or "?", part_beside(path)
        out.append(AnswerSheet(model, task, mode, benchmark, path, answers, part, failed, measured))
    return sorted(out, key=lambda sheet: (sheet.model, mode_named(sheet.mode).shows_passages, sheet.task))


def _given(sample: Sample) -> GivenAnswer:
    record = sample.record
    key, shown, correct = _answer(sample)
    question = record.resampled_with if record.question is None else str(record.question)
    return GivenAnswer(record.row, record.resampled_with, question, record.query_lang, key, shown, correct)


def _answer(sample: Sample) -> tuple[str | None, str, bool | None]:
    territory = sample.record.concurrence
    if territory is not None:
        known = territory.controller not in (UNKNOWN_CONTROLLER, "")
        correct = territory.country == territory.controller if known else None
        return territory.country, territory.country or "(none)", correct
    correct, text, choices = sample.record.right, sample.answer, sample.doc.choices
    if choices:
        from mrag_eval.metrics import extract_choice

        cut_off = sample.record.fate == CUT_OFF
        picked = extract_choice(text, len(choices), choices, sample.record.query_lang, cut_off=cut_off)
        return (None, "(none)", correct) if picked is None else (str(picked), choices[picked], correct)
    from mrag_eval.metrics import normalize_answer

    return normalize_answer(text, lang=sample.record.query_lang), text, correct
