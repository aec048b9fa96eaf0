"""Agreement of a panel with people's labels of answers, of one run or pooled from several.

XRAG, Appendix C.2; The Cross-Lingual Cost, Appendix A.1.1, whose people also say of which answers one could argue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mrag_eval.core import YES_NO, VerdictScale, VerdictValue, as_verdict
from mrag_eval.platform import DataError, read_sheet, write_sheet
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import models_beside, read_samples, task_of
from mrag_eval.scoring import HumanAgreement, HumanLabel, RowRecord, against_human

_WORDS = {"1": True, "0": False}
_COLUMNS = ("id", "label", "debatable", "annotator", "language", "question", "reference answers", "reply")


def agreement(paths: Sequence[Path], human: Sequence[Path]) -> HumanAgreement:
    """Compare the panel whose votes are in the sample files ``paths``, and each judge, with the labels in ``human``.

    The answers of several runs are pooled; those to one question are resampled together. The label of an answer is that
    of most annotators. See :func:`mrag_eval.scoring.against_human`. Raises DataError if samples hold no votes, if no
    label belongs to one of their rows, for an id that several runs have, and for runs that are judged on several
    scales.
    """
    pooled = pooled_answers(paths)
    scale = _scale([sample for _, sample in pooled.values()], paths)
    labels = _of_runs(read_labels(human, scale), pooled, human)
    found = against_human(records_of(paths, pooled), labels, scale=scale)
    if not found.rows and not found.split:
        raise no_row(paths, human, pooled, len(labels), "judged")
    return found


def no_row(
    paths: Sequence[Path], human: Sequence[Path], pooled: Mapping[str, tuple[str, Sample]], count: int, what: str
) -> DataError:
    """Return the error of labels of which none belongs to an answer that can be compared."""
    return DataError(
        f"{', '.join(map(str, human))}: none of its {count} ids is a {what} row of "
        f"{', '.join(map(str, paths))} (one is '{next(iter(pooled))}')",
        "use the row ids of the sample file (rows.row)",
    )


def records_of(paths: Sequence[Path], pooled: Mapping[str, tuple[str, Sample]]) -> list[RowRecord]:
    """Return the records by the names of answers; of several runs, answers to one question are one group."""
    return [
        replace(sample.record, row=name, group=sample.record.resampled_with) if len(paths) > 1 else sample.record
        for name, (_, sample) in pooled.items()
    ]


def write_pooled_sheet(paths: Sequence[Path], out: Path) -> tuple[int, VerdictScale]:
    """Write a sheet of all answers that the panel judged, for one annotator to label.

    Return their number, and the scale of the labels.

    Verdicts are not shown. Raises DataError if ``out`` exists, and if samples hold no votes.
    """
    if out.exists():
        raise DataError(f"{out}: is already there and may have been filled in", "name another file, or remove it")
    pooled = pooled_answers(paths)
    rows = [sheet_row(name, sample) for name, (_, sample) in pooled.items() if _is_judged(sample)]
    scale = _scale([sample for _, sample in pooled.values()], paths)
    write_sheet(out, _COLUMNS, rows)
    return len(rows), scale


def sheet_row(name: str, sample: Sample) -> dict[str, str]:
    """Return the cells by which a person judges an answer, without its verdict."""
    return {
        "id": name,
        "language": sample.record.query_lang,
        "question": sample.doc.query,
        "reference answers": "\n".join(sample.doc.answers),
        "reply": sample.reply,
    }


def _scale(samples: Sequence[Sample], paths: Sequence[Path]) -> VerdictScale:
    """Return the scale of the verdicts on samples."""
    found = {sample.record.panel.scale for sample in samples if sample.record.panel is not None} or {YES_NO}
    if len(found) > 1:
        told = " | ".join(sorted(scale.words for scale in found))
        raise DataError(f"{', '.join(map(str, paths))}: verdicts on several scales: {told}", "name runs of one scale")
    return found.pop()


def read_labels(paths: Sequence[Path], scale: VerdictScale = YES_NO) -> dict[str, dict[str, HumanLabel]]:
    """Return people's labels from sheets with the columns ``id`` and ``label``: id -> annotator -> label.

    The annotator is named in the row's column ``annotator``, else by the sheet. Labels are correct/incorrect,
    true/false, yes/no or 1/0, or the verdicts of another ``scale``; rows without one are left out. A column
    ``debatable`` holds yes or no, an empty cell no. Raises DataError naming the line for another word, and for an id
    that one annotator has twice.
    """
    labels: dict[str, dict[str, HumanLabel]] = defaultdict(dict)
    for path in paths:
        for row in read_sheet(path, ("id", "label")):
            where, key = f"{path}, line {row.line}", row.cells["id"]
            if not row.cells["label"]:
                continue
            annotator = row.cells.get("annotator") or str(path)
            if annotator in labels[key]:
                raise DataError(
                    f"{where}: the id '{key}' comes a second time",
                    "keep one label for every id, or name the annotators in a column 'annotator'",
                )
            mark = row.cells.get("debatable") or "no"
            labels[key][annotator] = HumanLabel(label_of(row.cells["label"], where, scale), _is_yes(mark, where))
    found = {key: given for key, given in labels.items() if given}
    if not found:
        raise DataError(
            f"{', '.join(map(str, paths))} holds no labels", "a header line 'id,label', then one row a line"
        )
    return found


def _is_yes(word: str, where: str) -> bool:
    mark = _WORDS.get(word.strip(), as_verdict(word))
    if mark is None:
        raise DataError(f"{where}: debatable is '{word}', neither yes nor no", "write yes or no, or leave it empty")
    return mark


def label_of(word: str, where: str, scale: VerdictScale = YES_NO) -> VerdictValue:
    """Return the verdict that a word of people's labels means; raise DataError for another word, naming its place."""
    label = scale.read(_WORDS.get(word.strip(), word) if scale == YES_NO else word)
    if label is None:
        what = "is neither correct nor incorrect" if scale == YES_NO else "is not on the judges' scale"
        raise DataError(f"{where}: label '{word}' {what}", f"write {scale.words}")
    return label


def _is_judged(sample: Sample) -> bool:
    return sample.record.judge is not None and bool(sample.record.judge.votes)


def _unjudged(path: Path, samples: Iterable[Sample]) -> DataError:
    """Return the error of answers that no panel judged as a whole."""
    judge = f"mrag-eval judge answers {path}   judges them"
    if all(sample.record.grounding is None for sample in samples):
        return DataError(f"{path}: no panel judged these answers", judge)
    return DataError(
        f"{path}: the claims of these answers were checked, and no panel judged the answers as a whole",
        f"--human FILE.jsonl of sentences or spans, without --write, compares the claims; {judge}",
    )


def pooled_answers(
    paths: Sequence[Path], compared: Callable[[Sample], bool] = _is_judged, lack: str = "", fix: str = ""
) -> dict[str, tuple[str, Sample]]:
    """Return every answer with its row id, by its name: the row id in one run, ``run: row id`` in several.

    Raises DataError for a run without an answer that can be ``compared``, with ``lack`` and ``fix``: by default that no
    panel judged the answers.
    """
    found: dict[str, tuple[str, Sample]] = {}
    for path, run in zip(paths, _runs(paths), strict=True):
        samples = read_samples(path)
        if not any(map(compared, samples)):
            raise DataError(f"{path}: {lack}", fix) if lack else _unjudged(path, samples)
        for sample in samples:
            row = sample.record.row
            found[f"{run}: {row}" if len(paths) > 1 else row] = row, sample
    return found


def _runs(paths: Sequence[Path]) -> list[str]:
    """Return a name for every run: its model, its task, both, or its file, whichever is the first to tell all apart."""
    repeated = next((path for n, path in enumerate(paths) if path.resolve() in {p.resolve() for p in paths[:n]}), None)
    if repeated is not None:
        raise DataError(f"{repeated}: this run is named twice", "name every sample file once")
    named = models_beside(paths)
    models, tasks = [named[path] for path in paths], [task_of(path) for path in paths]
    both = [f"{model}: {task}" for model, task in zip(models, tasks, strict=True)]
    return next((names for names in (models, tasks, both) if len(set(names)) == len(paths)), [str(p) for p in paths])


def _of_runs(
    labels: Mapping[str, Mapping[str, HumanLabel]], pooled: Mapping[str, tuple[str, Sample]], human: Sequence[Path]
) -> dict[str, Mapping[str, HumanLabel]]:
    """Return the labels by the names of answers."""
    names = names_of(labels, pooled, human)
    out: dict[str, Mapping[str, HumanLabel]] = {}
    for key, given in labels.items():
        out[names[key]] = {**out.get(names[key], {}), **given}
    return out


def names_of(keys: Iterable[str], pooled: Mapping[str, tuple[str, Sample]], human: Sequence[Path]) -> dict[str, str]:
    """Return the name of the answer of each id in people's labels; an id alone names that of the only run with it.

    An id of no answer is its own name.
    """
    of_row: dict[str, list[str]] = defaultdict(list)
    for name, (row, _) in pooled.items():
        of_row[row].append(name)
    out = {}
    for key in keys:
        found = [key] if key in pooled else of_row.get(key, [key])
        if len(found) > 1:
            raise DataError(
                f"{', '.join(map(str, human))}: the id '{key}' is a row of {len(found)} runs",
                f"write run and row, such as '{found[0]}'",
            )
        out[key] = found[0]
    return out
