"""People's answers to a benchmark's questions, judged as a model's are (XRAG, section 5.2 and Appendix B.4).

A sheet shows drawn questions with their supporting passages, without reference answers. The answers that come back take
the place of the model's replies in a copy of the samples, which the panel of the run judges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.core import ModelReply
from mrag_eval.platform import DataError, read_sheet, write_sheet
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import read_samples, sample_files, task_of
from mrag_eval.report.labels._inspection import DrawnSample, draw, passages_text, question_text
from mrag_eval.report.labels._rejudge import Rejudged, judge_answers
from mrag_eval.scoring import RowRecord

COLUMNS = ("id", "answer", "language", "question", "passages")
# What a sample has of the model's reply.
_OF_THE_REPLY = ("metrics", "votes", "resps", "filtered_resps", "arguments")
_WRITE = "mrag-eval judge people SAMPLES --write FILE   writes a sheet with the ids"


def write_questions(paths: Sequence[Path], out: Path, *, n: int = 200, seed: int = 0) -> list[DrawnSample]:
    """Draw ``n`` questions from the sample files at ``paths``, and write the sheet on which people answer them.

    A question comes with its supporting passages; one that names none, with those that the model was shown. Raises
    DataError if ``out`` exists: somebody may have filled it in.
    """
    if out.exists():
        raise DataError(f"{out}: is already there and may have been filled in", "name another file, or remove it")
    drawn = draw(paths, n=n, seed=seed)
    rows = [
        {
            "id": one.name,
            "language": one.language,
            "question": question_text(one.sample),
            "passages": passages_text(one.sample, gold=True),
        }
        for one in drawn
    ]
    write_sheet(out, COLUMNS, rows)
    return drawn


def judge_people(paths: Sequence[Path], answers: Path, **changes: Any) -> list[Rejudged]:
    """Judge the answers in a sheet with the columns ``id`` and ``answer``, task by task; rows without one are left out.

    The judged samples are written beside those of the run, with the prefix ``people_``; ``changes`` are as in
    :func:`~mrag_eval.report.judge_samples`. Raises DataError naming the line for an id that is not one of the samples',
    and for one that comes twice.
    """
    files = {task_of(path): path for path in sample_files(paths)}
    samples = {task: {sample.record.row: sample for sample in read_samples(path)} for task, path in files.items()}
    answered: dict[str, list[Sample]] = defaultdict(list)
    for (task, row), answer in _answers(answers, samples).items():
        answered[task].append(_answered(samples[task][row], answer))
    return [
        judge_answers(file, answered[task], file.with_name(f"people_{name}"), of_people=True, **changes)
        for task, file, name in ((task, files[task], files[task].name.removeprefix("judged_")) for task in answered)
    ]


def _answers(path: Path, samples: Mapping[str, Mapping[str, Sample]]) -> dict[tuple[str, str], str]:
    known = {f"{task}: {row}": (task, row) for task, rows in samples.items() for row in rows}
    found: dict[tuple[str, str], str] = {}
    for line in read_sheet(path, ("id", "answer")):
        where, key = f"{path}, line {line.line}", line.cells["id"]
        if key not in known:
            raise DataError(f"{where}: the id '{key}' is no row of these samples", _WRITE)
        if not line.cells["answer"]:
            continue
        if known[key] in found:
            raise DataError(f"{where}: the id '{key}' comes a second time", "keep one answer for every id")
        found[known[key]] = line.cells["answer"]
    if not found:
        raise DataError(f"{path} holds no answers", "write them into the column 'answer'")
    return found


def _answered(sample: Sample, answer: str) -> Sample:
    """Return the sample with a person's answer in place of the model's reply and all that was computed from it."""
    old = sample.record
    record = RowRecord(old.row, old.cell, {}, old.gold_positions, old.group, old.question, fate=ModelReply(answer).fate)
    stale = (*_OF_THE_REPLY, *old.values)
    line = {key: value for key, value in sample.line.items() if key not in stale}
    return Sample(record, {**line, "filtered_resps": [answer], "metrics": [], "rows": record.to_dict()})
