"""The harness's sample files: reading each once in a command, and finding them and what lies beside them."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.platform import (
    DataError,
    beside,
    hidden,
    json_value,
    names_of_models,
    readable,
    regular,
    task_and_date,
    with_names_of_one_line,
    write_whole,
)
from mrag_eval.report.files._results import LaterVerdicts, ResultFile, read_result_file, with_later_verdicts
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import RowRecord


@dataclass(eq=False)
class Samples(Sequence[Sample]):
    """The lines of a sample file: ``records`` are in memory, the rest of a line is read whenever it is iterated over.

    ``keys`` are those of its lines, ``places`` the number and the first byte of each, and whether a name in it had to
    be changed. ``numbers`` are the harness's, ``requests`` how many it made of each row, and ``prompted`` tells whether
    a row has a prompt. ``held`` has whole samples if the file is small: then it is read once.
    """

    path: Path
    records: list[RowRecord] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    places: array[int] = field(default_factory=lambda: array("q"))
    numbers: list[Any] = field(default_factory=list)
    requests: array[int] = field(default_factory=lambda: array("l"))
    held: list[Sample] = field(default_factory=list)
    size: int = 0
    prompted: bool = False

    @classmethod
    def of(cls, path: Path, room: int = 0) -> Samples:
        """Read every line once; hold them if they have no more bytes than ``room``; errors as :func:`read_samples`."""
        size = path.stat().st_size if path.is_file() else 0
        out = cls(path, size=size if size <= room else 0)
        for number, start, text in _lines(path):
            where = f"{path}, line {number}"
            try:
                line = json_value(text, lax="all")
                sample = with_names_of_one_line(line)
            except ValueError:
                raise DataError(
                    f"{where}: not JSON", "the run may have been cut off while it wrote: run it again"
                ) from None
            if not isinstance(sample, dict) or not isinstance(sample.get("rows"), dict) or "row" not in sample["rows"]:
                raise DataError(
                    f"{where}: not a scored sample of one of our tasks",
                    "run with --log_samples --output_path FOLDER, without --predict_only",
                )
            if (key := _misshapen(sample)) is not None:
                raise DataError(
                    f"{where}: {key} is not of the type that a run writes", "name the samples as the run wrote them"
                )
            found = Sample(RowRecord.from_dict(sample["rows"], where), sample, where)
            out.prompted = out.prompted or found.prompt is not None
            out.records.append(found.record)
            out.keys.update(sample)
            out.places.extend((number, start, sample != line))
            out.numbers.append(sample.get("doc_id"))
            asked = sample.get("arguments")
            out.requests.append(len(asked) if isinstance(asked, dict | list) else 0)
            if out.size:
                out.held.append(found)
        if not out.records:
            raise DataError(f"{path} holds no samples", "run again with --log_samples --output_path FOLDER")
        return out

    @cached_property
    def scored(self) -> ScoredSamples:
        """Return the scored rows."""
        return ScoredSamples.of(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.held or (self._at(at, text) for at, (_, _, text) in enumerate(_lines(self.path))))

    def __getitem__(self, at: Any) -> Any:
        at = range(len(self))[at]
        if self.held:
            return self.held[at]
        with regular(self.path).open("rb") as file:
            file.seek(self.places[3 * at + 1])
            return self._at(at, file.readline().decode())

    def _at(self, at: int, text: str) -> Sample:
        number, _, renamed = self.places[3 * at : 3 * at + 3]
        line = json_value(text, lax="all")
        line = with_names_of_one_line(line) if renamed else line
        return Sample(self.records[at], line, f"{self.path}, line {number}")


# Bytes of the files whose samples a command holds in memory.
_ROOM = 64_000_000
# What a command has read, by absolute path.
_READ: ContextVar[dict[Path, Samples] | None] = ContextVar("read", default=None)


@contextmanager
def read_once() -> Iterator[None]:
    """Keep the records of each sample file that is read inside, and the lines of small ones: each is read once."""
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def read_samples(path: Path, *, repeated: bool = False) -> list[Sample]:
    """Return the lines of a sample file, all in memory; :func:`open_samples` leaves their texts in the file.

    Raises DataError, naming the line, for a line that is not a sample of one of our tasks, or has another schema, and
    for a row that is there twice, unless ``repeated`` rows are looked for.
    """
    return [*open_samples(path, repeated=repeated)]


def open_samples(path: Path, *, repeated: bool = False) -> Samples:
    """Return the lines of a sample file, which are read when they are iterated over; errors as :func:`read_samples`."""
    read, place = _READ.get(), path.absolute()
    samples = (read or {}).get(place)
    if samples is None:
        samples = Samples.of(path, _ROOM - sum(known.size for known in (read or {}).values()))
    if read is not None:
        read[place] = samples
    times = Counter(record.row for record in (() if repeated else samples.records))
    if twice := sum(number > 1 for number in times.values()):
        raise DataError(
            f"{path}: rows that are there more than once: {twice:,}, such as '{times.most_common(1)[0][0]}'",
            "name the samples as the run wrote them (mrag-eval verify compares them with the results)",
        )
    return samples


def _lines(path: Path) -> Iterator[tuple[int, int, str]]:
    """Yield the number, the first byte and the text of each line that is not blank."""
    start = 0
    with readable(path, "name a samples_*.jsonl of a run"), regular(path).open("rb") as file:
        # a sample may hold characters that end a line elsewhere
        for number, line in enumerate(file, 1):
            text = line.decode()
            if text.strip():
                yield number, start, text
            start += len(line)


_DOC: Mapping[str, type] = {"query": str, "answers": list, "passages": list, "trace": dict}


def _misshapen(sample: Mapping[str, Any]) -> str | None:
    """Return the first key of a sample whose value has another type than a run writes; None if there is none."""
    for key in ("doc", "votes"):
        if sample.get(key) is not None and not isinstance(sample[key], dict):
            return f"'{key}'"
    doc = sample.get("doc") or {}
    for key, kind in _DOC.items():
        if doc.get(key) is not None and not isinstance(doc[key], kind):
            return f"'doc.{key}'"
    for i, passage in enumerate(doc.get("passages") or ()):
        if not isinstance(passage, dict) or "id" not in passage:
            return f"'doc.passages[{i}]'"
        if not isinstance(passage.get("score") or 0.0, int | float):
            return f"'doc.passages[{i}].score'"
    return None


def write_samples(path: Path, samples: Sequence[Sample]) -> None:
    """Write samples to ``path``, with known secrets hidden in their texts; create its folder if it is missing."""
    text = "".join(json.dumps(hidden(sample.line), ensure_ascii=False) + "\n" for sample in samples)
    # half a surrogate pair, which a model may write, becomes a JSON escape, as in the run's file
    write_whole(path, text, errors="backslashreplace")


def result_beside(path: Path) -> ResultFile | None:
    """Return the result file of the run that wrote the samples at ``path``; None if it is not in the same folder."""
    results = results_beside(path)
    try:
        changed = results.stat().st_mtime_ns
    except OSError:
        return None
    file = _result(results, changed)
    return with_later_verdicts(file) if path.name.startswith("judged_") else file


@lru_cache(maxsize=4)
def _result(path: Path, _modified: int) -> ResultFile:
    """Read the results once for all the tasks of a run."""
    return read_result_file(path)


def config_beside(path: Path) -> TaskConfig:
    """Return the task's configuration in the results next to the samples at ``path``; empty without one."""
    found = result_beside(path)
    return TaskConfig() if found is None else found.configs.get(task_of(path), TaskConfig())


def part_beside(path: Path) -> str | None:
    """Return how many of the rows the run of the samples at ``path`` was over; None for all, and without results."""
    found, task = result_beside(path), task_of(path)
    return None if found is None or task not in found.leaves else found.remark(task)


def models_beside(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the name of the model whose run wrote the samples at each path, as :func:`read_results` names models."""
    called = {path: "unnamed model" if (run := result_beside(path)) is None else run.called for path in paths}
    names = names_of_models(called.values())
    return {path: names[model] for path, model in called.items()}


def results_beside(path: Path) -> Path:
    """Return the path of the result file of the run that wrote the samples at ``path``, if it exists."""
    return path.parent / f"results_{task_and_date(path)[1]}.json"


def sample_files(paths: Sequence[Path], *, judged: bool = True) -> list[Path]:
    """Return the sample files at ``paths`` (files or folders): per task and folder the newest, a judged one first.

    Without ``judged``, those that runs wrote, and any that is named. Raises DataError as :func:`files_at` does.
    """
    newest: dict[tuple[Path, str], Path] = {}
    for file in files_at(paths, judged=judged):
        key = file.parent, task_of(file)
        newest[key] = max(newest.get(key, file), file, key=newest_last)
    return list(newest.values())


def files_at(paths: Sequence[Path], *, judged: bool = True) -> list[Path]:
    """Return the sample files among ``paths``, those beside result files and below folders among them, each once.

    Below a folder, ``judged`` ones are those that count, and samples that a run left without results do not if a later
    run of the task ended there. Raises DataError for a path without sample files.
    """
    files: dict[Path, None] = {}
    for path in paths:
        below = samples_of(path) if path.is_file() else sorted(path.rglob("*samples_*.jsonl"))
        kinds = ("samples_", "judged_") if judged else ("samples_",)
        found = [p for p in below if p.name.startswith(kinds) and counts(p)] or ([path] if path.is_file() else [])
        if not found:
            raise DataError(
                f"{path}: no sample files in this folder"
                if path.is_dir()
                else f"{path}: no such file or folder{beside(path)}",
                "run with --log_samples --output_path FOLDER, and name that folder",
            )
        files |= dict.fromkeys(found if path.is_file() else _without_interrupted(found))
    return list(files)


def samples_of(results: Path) -> list[Path]:
    """Return the sample files of the run that wrote a result file; empty for any other file."""
    return [file for file in sorted(results.parent.glob("*samples_*.jsonl")) if results_beside(file) == results]


def _without_interrupted(files: Sequence[Path]) -> list[Path]:
    """Return the sample files without those of runs that left no results, where a later run of the task did."""
    ended = {file: results_beside(file).is_file() for file in files}
    last: dict[tuple[Path, str], str] = {}
    for file in files:
        if ended[file]:
            task, date = task_and_date(file)
            last[file.parent, task] = max(last.get((file.parent, task), ""), date)
    return [f for f in files if ended[f] or task_and_date(f)[1] > last.get((f.parent, task_of(f)), "")]


def counts(path: Path) -> bool:
    """Return whether samples are those of their run: judged ones beside its results count with the scores they gave."""
    results = results_beside(path)
    if path.name != LaterVerdicts.samples_path(results, task_of(path)).name or not results.is_file():
        return True
    return LaterVerdicts.of(results, task_of(path)) is not None


def newest_last(path: Path) -> tuple[str, bool, str]:
    """Return the order in which sample files of one task replace each other: by date, a judged one last."""
    return task_and_date(path)[1], path.name.startswith("judged_"), str(path)


def task_of(path: Path) -> str:
    """Return the name of the task whose rows the sample file at ``path`` holds."""
    return task_and_date(path)[0]
