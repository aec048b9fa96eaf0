"""What the samples of a run answered, in a form that can be compared over languages, modes and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.config import mode_named
from mrag_eval.report.files._samples import (
    Sample,
    config_beside,
    model_beside,
    read_samples,
    reply_text,
    sample_files,
    verdict_of,
)


@dataclass(frozen=True, slots=True)
class Given:
    """One answer. ``key`` is an option's place, or the normalised text; None where no option could be read.

    ``shown`` is the answer to read, ``correct`` None where that is not known. ``group`` is resampled together;
    ``question`` ties versions of one question: its ``question_id`` where the benchmark names one, else the group.
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
    """The answers of one task of one run; ``mode`` is its IR mode, ``benchmark`` what was asked."""

    model: str
    task: str
    mode: str
    benchmark: str
    path: Path
    answers: tuple[Given, ...]

    @property
    def name(self) -> str:
        return self.task


def read_answers(paths: Sequence[Path]) -> list[AnswerSheet]:
    """The answers in every sample file at ``paths``; DataError for what is none."""
    out = []
    for path in sample_files(paths):
        config = config_beside(path)
        task = path.stem.removeprefix("judged_").removeprefix("samples_").rpartition("_")[0]
        mode = str((config.get("retrieval") or {}).get("mode") or "?")
        benchmark = str((config.get("data") or {}).get("benchmark") or task)
        answers = tuple(_given(sample) for sample in read_samples(path))
        out.append(AnswerSheet(model_beside(path), task, mode, benchmark, path, answers))
    return sorted(out, key=lambda sheet: (sheet.model, mode_named(sheet.mode).shows != "nothing", sheet.task))


def _given(sample: Sample) -> Given:
    record = sample["rows"]
    language = str((record.get("cell") or {}).get("query_lang", ""))
    row, group = str(record["row"]), str(record.get("group", record["row"]))
    key, shown, correct = _answer(sample, record, language)
    return Given(row, group, str(record.get("question", group)), language, key, shown, correct)


def _answer(sample: Sample, record: Mapping[str, Any], language: str) -> tuple[str | None, str, bool | None]:
    territory = record.get("concurrence")
    if territory is not None:
        index = int(territory["claimant_ind"])
        country = territory["claimants"][index] if index >= 0 else None
        known = territory["controller"] not in ("Unknown", "")
        return country, country or "(none)", country == territory["controller"] if known else None
    correct = verdict_of(record)
    text = str((record.get("answer") or {}).get("text") or reply_text(sample))
    choices = (sample.get("doc") or {}).get("choices")
    if choices:
        from mrag_eval.metrics import extract_choice

        picked = extract_choice(text, len(choices), choices)
        return (None, "(none)", correct) if picked is None else (str(picked), str(choices[picked]), correct)
    from mrag_eval.metrics import normalize_answer

    return normalize_answer(text, lang=language), text, correct
